//! Values of `transforms.json` as programs write them: NaN and Infinity, numbers in quotes.
//!
//! Runs in the consumer. Pure. [`quote_words`] replaces words that JSON does not have by marked
//! strings of the same length, so that lines and columns stay correct. Keys that are not read skip
//! them. [`JsonNumber`] and [`JsonText`] reject them.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// Words of Python and C for numbers that are not finite.
const WORDS: [&[u8]; 7] = [b"NaN", b"nan", b"NAN", b"Infinity", b"inf", b"Inf", b"INF"];

/// Error for a marked string in a key that is read.
pub(super) const NOT_FINITE: &str = "NaN and Infinity are not JSON, and this key is read: write \
                                     the number, or remove the key or its frame";

/// Start of serde_json's message for a marked string instead of another type.
pub(super) const MARKED: &str = "invalid type: string \"\\u{7f}";

/// First byte of a marked string: DEL, which occurs in no number or path.
const MARK: u8 = 0x7f;

/// Puts quotes and [`MARK`] into each bare NaN or Infinity, in place.
pub(super) fn quote_words(json: &mut [u8]) {
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => at = string_end(json, at + 1),
            b'N' | b'n' | b'I' | b'i' => {
                let end = json[at..].iter().position(|b| !b.is_ascii_alphanumeric());
                let end = end.map_or(json.len(), |len| at + len);
                if WORDS.contains(&&json[at..end]) {
                    let signed = at > 0 && matches!(json[at - 1], b'-' | b'+');
                    mark_word(&mut json[at - usize::from(signed)..end]);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
}

/// End of a string with its content starting at `at`: the position after its closing quote.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

fn mark_word(word: &mut [u8]) {
    let last = word.len() - 1;
    word.copy_within(0..last - 2, 2);
    word[0] = b'"';
    word[1] = MARK;
    word[last] = b'"';
}

fn not_finite<E: de::Error>() -> E {
    E::custom(NOT_FINITE)
}

/// A number, with or without quotes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct JsonNumber(pub(super) f64);

impl<'de> Deserialize<'de> for JsonNumber {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = JsonNumber;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<JsonNumber, E> {
                Ok(JsonNumber(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<JsonNumber, E> {
                Ok(JsonNumber(value as f64))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<JsonNumber, E> {
                Ok(JsonNumber(value as f64))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<JsonNumber, E> {
                if text.as_bytes().first() == Some(&MARK) {
                    return Err(not_finite());
                }
                match text.trim().parse::<f64>() {
                    Ok(value) if value.is_finite() => Ok(JsonNumber(value)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        d.deserialize_any(Either)
    }
}

/// A text without the mark.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct JsonText(pub(super) String);

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        match text.as_bytes().first() {
            Some(&MARK) => Err(not_finite()),
            _ => Ok(Self(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(json: &str) -> String {
        let mut bytes = json.as_bytes().to_vec();
        quote_words(&mut bytes);
        assert_eq!(bytes.len(), json.len(), "columns stay");
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn bare_words_become_strings_and_strings_stay() {
        for json in [
            r#"{"NaN": "a \" NaN", "b\\": [null, 1e5, true]}"#,
            r#"{"a": nanny, "b": Infinit, "c": "#,
            "\"",
            "\"\\",
            "",
        ] {
            assert_eq!(quoted(json), json);
        }
        let json = quoted("{\"a\": NaN, \"b\": [-Infinity,Infinity], \"c\":nan,\"d\":-inf}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(
            value["a"].is_string() && value["b"][0].is_string(),
            "{value}"
        );
        assert!(value["c"].is_string() && value["d"].is_string(), "{value}");
    }

    #[test]
    fn a_number_may_stand_in_quotes() {
        let number = |json: &str| serde_json::from_str::<JsonNumber>(&quoted(json));
        for (json, expected) in [
            ("7", 7.0),
            ("-7.5", -7.5),
            ("\"7.5\"", 7.5),
            ("\" 1e-3 \"", 1e-3),
        ] {
            assert_eq!(number(json).unwrap().0, expected);
        }
        for json in [
            "\"\"",
            "\"7px\"",
            "\"NaN\"",
            "\"inf\"",
            "NaN",
            "-Infinity",
            "null",
            "[1]",
        ] {
            assert!(number(json).is_err(), "{json}");
        }
    }
}
