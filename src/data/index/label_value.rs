//! The value of a label in a shard or in a table: a class number, a class name or a vector.
//!
//! Used in the consumer, on bytes that were read.

use serde_json::Value as Json;

use crate::data::index::lines::BOM;
use crate::data::index::{lenient_json, numbers, record_keys};

/// The place of a label that is a whole document, for messages.
const DOCUMENT: &str = "the document";

/// The label of one sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LabelValue {
    Number(i64),
    /// A class name.
    Name(Vec<u8>),
    Vector(Vec<f32>),
}

/// Parses a text. A whole number is a class number. A fraction, or numbers separated by blanks or
/// commas, are a vector. Any other text is a class name.
///
/// # Errors
/// A fragment to put after "the label".
pub(crate) fn of_text(text: &[u8]) -> Result<LabelValue, String> {
    let text = text.strip_prefix(BOM).unwrap_or(text).trim_ascii();
    // A text of separators only is neither a vector nor a name.
    if text.iter().all(|b| *b == b',' || b.is_ascii_whitespace()) {
        return Err("is empty".into());
    }
    if let Ok(text) = std::str::from_utf8(text) {
        if let Ok(whole) = text.parse() {
            return Ok(LabelValue::Number(whole));
        }
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err("is a whole number of more than 64 bits".into());
        }
        if let Some(vector) = numbers::vector(text)? {
            return Ok(LabelValue::Vector(vector));
        }
        // pandas and Python write this for a missing number.
        if digits.eq_ignore_ascii_case("nan") {
            return Err(format!("is {text}, which is neither a number nor a name"));
        }
    }
    match text {
        _ if text.contains(&b'\n') => Err("has several lines".into()),
        // A hole of a sparse file reads as zero bytes. It is not a name, whatever its length.
        _ if text.contains(&0) => Err("has a zero byte".into()),
        _ => Ok(LabelValue::Name(text.to_vec())),
    }
}

/// Reads the label at `pointer` (RFC 6901) of a JSON document. A whole number is a class number. A
/// string is a class name. A fraction is a vector of one number, and an array of numbers is a
/// vector. Returns `None` if there is nothing or `null`.
///
/// # Errors
/// A fragment to put after "the label".
pub(crate) fn of_json(text: &[u8], pointer: &str) -> Result<Option<LabelValue>, String> {
    let place = || match pointer {
        "" => DOCUMENT.to_owned(),
        pointer => format!("'{pointer}'"),
    };
    let found = lenient_json::find(text, pointer).map_err(|e| format!("is not JSON: {e}"))?;
    let json = found.map(|found| lenient_json::parse(found, place));
    json.map_or(Ok(None), |json| of_json_value(&json?, place))
}

/// Like [`of_json`], for the value that was found at `place`.
pub(crate) fn of_json_value(
    json: &Json,
    place: impl Fn() -> String,
) -> Result<Option<LabelValue>, String> {
    match json {
        Json::Null => Ok(None),
        Json::String(name) if name.is_empty() => Err(format!("has an empty string at {}", place())),
        Json::String(name) => Ok(Some(LabelValue::Name(name.as_bytes().to_vec()))),
        Json::Number(number) => {
            let fraction = || {
                let number = number.as_f64().filter(|_| number.is_f64());
                number.map(|n| n as f32).filter(|n| n.is_finite())
            };
            match (number.as_i64(), fraction()) {
                (Some(number), _) => Ok(Some(LabelValue::Number(number))),
                (None, Some(fraction)) => Ok(Some(LabelValue::Vector(vec![fraction]))),
                (None, None) => Err(format!("has {number} at {}, which is too large", place())),
            }
        }
        Json::Array(all) if !all.is_empty() => {
            let number = |n: &Json| n.as_f64().map(|n| n as f32).filter(|n| n.is_finite());
            match all.iter().map(number).collect() {
                Some(vector) => Ok(Some(LabelValue::Vector(vector))),
                None => Err(format!(
                    "has an array at {} that is not of numbers",
                    place()
                )),
            }
        }
        other => {
            let place = place();
            let name = match place.as_str() {
                DOCUMENT => "",
                name => name.trim_matches('\''),
            };
            Err(match record_keys::list_inner_keys(other, name) {
                Some(inside) => format!("has an object at {place}: {inside}"),
                None => format!("has no number, string or array of numbers at {place}"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for (text, want) in [
            ("7\n", LabelValue::Number(7)),
            (" -1 ", LabelValue::Number(-1)),
            ("0.5", LabelValue::Vector(vec![0.5])),
            ("2.0", LabelValue::Vector(vec![2.0])),
            ("1,0,1\n", LabelValue::Vector(vec![1.0, 0.0, 1.0])),
            ("1 2", LabelValue::Vector(vec![1.0, 2.0])),
            ("007", LabelValue::Number(7)),
            ("\u{feff}3", LabelValue::Number(3)),
            ("\u{feff}cat", LabelValue::Name(b"cat".to_vec())),
            ("True", LabelValue::Name(b"True".to_vec())),
            ("tabby cat", LabelValue::Name(b"tabby cat".to_vec())),
            ("n01440764", LabelValue::Name(b"n01440764".to_vec())),
        ] {
            assert_eq!(of_text(text.as_bytes()), Ok(want), "{text}");
        }
        assert_eq!(of_text(b"\xff"), Ok(LabelValue::Name(vec![0xff])));
        for text in ["", " \n", ",", " , ,\n"] {
            assert_eq!(of_text(text.as_bytes()), Err("is empty".into()), "{text}");
        }
        for text in [
            "99999999999999999999",
            "-99999999999999999999",
            "+9999999999999999999",
        ] {
            let e = of_text(text.as_bytes()).unwrap_err();
            assert!(e.contains("more than 64 bits"), "{e}");
        }
        assert_eq!(of_text(b"a\nb"), Err("has several lines".into()));
        for (text, says) in [
            ("NaN", "is NaN, which is neither a number nor a name"),
            (
                "0,5",
                "has '0,5', which is one number with a decimal comma or two",
            ),
            ("1e99", "has '1e99', which is too large"),
        ] {
            let e = of_text(text.as_bytes()).unwrap_err();
            assert!(e.starts_with(says), "{e}");
        }
    }

    #[test]
    fn json() {
        let text = br#"{"a":{"b/c":[1,0.5],"s":"cat"},"n":3,"f":0.5,"h":18446744073709551615,"i":1e300,"z":null,"t":true,"e":"","m":[1,"x"],"l":99999999999999999999,"y":NaN,"w":[0,NaN]}"#;
        let at = |pointer| of_json(text, pointer);
        assert_eq!(at("/n"), Ok(Some(LabelValue::Number(3))));
        assert_eq!(at("/f"), Ok(Some(LabelValue::Vector(vec![0.5]))));
        assert_eq!(at("/a/s"), Ok(Some(LabelValue::Name(b"cat".to_vec()))));
        assert_eq!(at("/a/b~1c"), Ok(Some(LabelValue::Vector(vec![1.0, 0.5]))));
        assert_eq!(at("/a/b~1c/0"), Ok(Some(LabelValue::Number(1))));
        assert_eq!((at("/z"), at("/gone")), (Ok(None), Ok(None)));
        for (pointer, want) in [
            ("/h", "has 18446744073709551615 at '/h', which is too large"),
            ("/i", "has 1e+300 at '/i', which is too large"),
            ("/l", "has 99999999999999999999 at '/l', which is too large"),
            ("/y", "has NaN at '/y', which is not a number"),
            ("/w", "has NaN at '/w', which is not a number"),
            ("/t", "has no number, string or array"),
            ("/e", "has an empty string at '/e'"),
            ("/m", "has an array at '/m' that is not of numbers"),
            (
                "",
                "has an object at the document: name a place in it, one of '/a', '/e'",
            ),
        ] {
            let e = at(pointer).unwrap_err();
            assert!(e.starts_with(want), "{e}");
        }
        assert_eq!(of_json(b"5", ""), Ok(Some(LabelValue::Number(5))));
        assert!(of_json(b"{", "").unwrap_err().starts_with("is not JSON"));
        assert!(of_json(&b"[".repeat(100_000), "").is_err());
    }
}
