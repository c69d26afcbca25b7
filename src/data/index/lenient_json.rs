//! Finds one value of a JSON text by its place. Of the rest, only the structure is parsed.
//!
//! Used in the consumer, on untrusted texts. Like Python's readers, it skips invalid JSON in values
//! that are not requested: NaN and Infinity, numbers that are too large, strings that are not
//! UTF-8, lone surrogates, deep nesting, duplicate keys, a byte order mark. A requested value must
//! be strict JSON. There is no recursion. Memory is one byte for each open bracket.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value as Json;

use crate::data::index::lines::BOM;
use crate::data::index::names::shown;

/// Why a text has no valid structure.
#[derive(Debug, PartialEq)]
pub(crate) struct JsonFault {
    what: String,
    /// Offset of the byte, from 0.
    pub(crate) at: usize,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at byte {}", self.what, self.at)
    }
}

/// The text of the value at `pointer` (RFC 6901). `None` if there is no such value.
///
/// # Errors
/// The structure is invalid, or a key of the pointer has two different values.
pub(crate) fn find<'a>(text: &'a [u8], pointer: &str) -> Result<Option<&'a [u8]>, JsonFault> {
    let mut value = whole(text)?;
    if pointer.is_empty() {
        return Ok(Some(value));
    }
    for token in pointer.strip_prefix('/').unwrap_or(pointer).split('/') {
        let token = token.replace("~1", "/").replace("~0", "~");
        let found = match value.first() {
            Some(b'{') => member(value, &token)?,
            Some(b'[') => element(value, &token)?,
            _ => None,
        };
        match found {
            Some(found) => value = found,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// Calls `each` with each key of an object and the text of its value. Bytes of a key that are not
/// UTF-8 are replaced.
///
/// # Errors
/// The structure is invalid, or the text is not an object.
pub(crate) fn members<'a>(
    text: &'a [u8],
    mut each: impl FnMut(Cow<'a, str>, &'a [u8]),
) -> Result<(), JsonFault> {
    let mut scan = JsonScanner::new(text);
    if scan.peek() != Some(b'{') {
        let what = match scan.peek() {
            None => "it is empty",
            Some(b'[') => "it is an array",
            Some(_) => "it does not begin with {",
        };
        return Err(scan.fault(what));
    }
    scan.at += 1;
    let mut ends = scan.is_closed(b'}');
    while !ends {
        let key = scan.key()?;
        each(key_text(key), scan.value()?);
        ends = scan.pass_comma_or(b'}')?;
    }
    scan.end()
}

/// Parses the text of a value strictly. Of an object only the keys are kept, with `null` as their
/// values. Messages use `place` as the name of the value.
pub(crate) fn parse(value: &[u8], place: impl Fn() -> String) -> Result<Json, String> {
    if value.starts_with(b"{") {
        let mut keys = serde_json::Map::new();
        let found = members(value, |key, _| {
            keys.insert(key.into_owned(), Json::Null);
        });
        let failed = |fault: JsonFault| format!("has no JSON object at {}: {fault}", place());
        return found.map(|()| Json::Object(keys)).map_err(failed);
    }
    let Ok(text) = std::str::from_utf8(value) else {
        return Err(format!("has text at {} that is not UTF-8", place()));
    };
    let is_whole = || {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    if text.parse::<i64>().is_err() && is_whole() {
        return Err(too_large(text, place()));
    }
    serde_json::from_str(text).map_err(|e| {
        let what = e.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        let is_none = |word: &&str| word.contains("NaN") || word.contains("Infinity");
        let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
        match words.find(is_none) {
            Some(word) if !text.starts_with('"') => {
                format!("has {word} at {}, which is not a number", place())
            }
            _ if what.contains("out of range") => too_large(text, place()),
            _ if what.contains("surrogate") || what.contains("hex escape") => {
                format!(
                    "has half a character (a lone surrogate) in the text at {}",
                    place()
                )
            }
            _ => format!(
                "has '{}' at {}: {}",
                shown(value),
                place(),
                shown(what.as_bytes())
            ),
        }
    })
}

fn too_large(text: &str, place: String) -> String {
    format!(
        "has {} at {place}, which is too large",
        shown(text.as_bytes())
    )
}

/// The text of the only value of a text.
fn whole(text: &[u8]) -> Result<&[u8], JsonFault> {
    let mut scan = JsonScanner::new(text);
    let value = scan.value()?;
    scan.end()?;
    Ok(value)
}

fn member<'a>(object: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, JsonFault> {
    let mut found: Option<&[u8]> = None;
    let mut has_two = false;
    members(object, |key, value| {
        if key == name {
            has_two |= found.replace(value).is_some_and(|first| first != value);
        }
    })?;
    match has_two {
        false => Ok(found),
        true => Err(JsonFault {
            what: duplicate_key_text(name),
            at: 0,
        }),
    }
}

/// The message for a key that has two values.
pub(crate) fn duplicate_key_text(name: &str) -> String {
    format!("'{}' appears in it twice", shown(name.as_bytes()))
}

fn element<'a>(array: &'a [u8], token: &str) -> Result<Option<&'a [u8]>, JsonFault> {
    let is_number = token == "0" || !token.starts_with(['0', '+']);
    let Some(wanted) = token.parse::<usize>().ok().filter(|_| is_number) else {
        return Ok(None);
    };
    let mut scan = JsonScanner::new(array);
    scan.at += 1;
    let mut ends = scan.is_closed(b']');
    for at in 0.. {
        if ends {
            break;
        }
        let value = scan.value()?;
        if at == wanted {
            return Ok(Some(value));
        }
        ends = scan.pass_comma_or(b']')?;
    }
    Ok(None)
}

/// The text of a key, from the bytes between its quotes.
fn key_text(raw: &[u8]) -> Cow<'_, str> {
    if raw.contains(&b'\\') {
        let quoted = [b"\"", raw, b"\""].concat();
        if let Ok(text) = serde_json::from_slice::<String>(&quoted) {
            return Cow::Owned(text);
        }
    }
    String::from_utf8_lossy(raw)
}

struct JsonScanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> JsonScanner<'a> {
    /// Starts at the first byte after a byte order mark and blanks.
    fn new(text: &'a [u8]) -> Self {
        let at = if text.starts_with(BOM) { BOM.len() } else { 0 };
        let mut scan = Self { text, at };
        scan.pass_blanks();
        scan
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn pass_blanks(&mut self) {
        let is_blank = |b: &&u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.text[self.at..].iter().take_while(is_blank).count();
    }

    fn fault(&self, what: impl Into<String>) -> JsonFault {
        JsonFault {
            what: what.into(),
            at: self.at,
        }
    }

    /// Reads one value of any kind, and the blanks after it.
    fn value(&mut self) -> Result<&'a [u8], JsonFault> {
        self.pass_blanks();
        let start = self.at;
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.pass_blanks();
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    // In ASCII each closing bracket is two after its opening bracket.
                    let close = bracket + 2;
                    self.at += 1;
                    if !self.is_closed(close) {
                        if close == b'}' {
                            self.key()?;
                        }
                        open.push(close);
                        continue;
                    }
                }
                Some(b'"') => self.pass_string()?,
                _ => self.pass_word()?,
            }
            // A value has ended. Close every bracket that ends with it.
            loop {
                let Some(close) = open.last().copied() else {
                    let end = self.at;
                    self.pass_blanks();
                    return Ok(&self.text[start..end]);
                };
                if !self.pass_comma_or(close)? {
                    if close == b'}' {
                        self.key()?;
                    }
                    break;
                }
                open.pop();
            }
        }
    }

    /// After an opening bracket: skips the closing bracket if it follows, and returns whether it
    /// did.
    fn is_closed(&mut self, close: u8) -> bool {
        self.pass_blanks();
        let ends = self.peek() == Some(close);
        self.at += usize::from(ends);
        ends
    }

    /// After a value in brackets: skips the next character. Returns true at the closing bracket,
    /// and false after a comma.
    fn pass_comma_or(&mut self, close: u8) -> Result<bool, JsonFault> {
        self.pass_blanks();
        let inside = if close == b'}' {
            "an object"
        } else {
            "an array"
        };
        let ends = match self.peek() {
            Some(b',') => false,
            Some(byte) if byte == close => true,
            None => return Err(self.fault(format!("it ends inside {inside}"))),
            Some(_) => {
                let close = char::from(close);
                return Err(self.fault(format!("no comma and no {close} after a value")));
            }
        };
        self.at += 1;
        Ok(ends)
    }

    /// Reads a key and the colon after it. Returns the key without its quotes.
    fn key(&mut self) -> Result<&'a [u8], JsonFault> {
        self.pass_blanks();
        match self.peek() {
            Some(b'"') => {}
            None => return Err(self.fault("it ends inside an object")),
            Some(_) => return Err(self.fault("no key in double quotes")),
        }
        let start = self.at + 1;
        self.pass_string()?;
        let key = &self.text[start..self.at - 1];
        self.pass_blanks();
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(key)
            }
            None => Err(self.fault("it ends inside an object")),
            Some(_) => Err(self.fault("no colon after a key")),
        }
    }

    fn pass_string(&mut self) -> Result<(), JsonFault> {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += match byte {
                b'\\' => 2,
                _ => 1,
            };
            if byte == b'"' {
                return Ok(());
            }
        }
        self.at = self.text.len();
        Err(self.fault("it ends inside a text"))
    }

    /// Skips a number, or a word such as `true` and `NaN`.
    fn pass_word(&mut self) -> Result<(), JsonFault> {
        let is_part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'_');
        let bytes = self.text[self.at..].iter().take_while(is_part).count();
        if bytes == 0 {
            return Err(match self.peek() {
                None => self.fault("it ends before a value"),
                Some(_) => self.fault("no value"),
            });
        }
        self.at += bytes;
        Ok(())
    }

    fn end(&mut self) -> Result<(), JsonFault> {
        self.pass_blanks();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("more text follows")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &[u8], pointer: &str) -> Option<String> {
        let found = find(text, pointer).unwrap_or_else(|e| panic!("{pointer}: {e}"));
        found.map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// Python's `json.loads` reads all of these.
    #[test]
    fn what_nobody_asks_for_is_passed_over() {
        for odd in [
            &b"NaN"[..],
            b"-Infinity",
            b"1e999",
            b"123456789012345678901234567890",
            b"\"\\ud800\"",
            b"\"\xff\xe4\"",
            b"\"\\\"}]\\\\\"",
            b"\"\t\"",
            b"{\"a\": [NaN, {}], \"a\": []}",
        ] {
            let text = [
                b"\xef\xbb\xbf {\"x\": ",
                odd,
                b" , \"label\":\t3, \"y\": [",
                odd,
                b"]}\n",
            ];
            assert_eq!(at(&text.concat(), "/label").as_deref(), Some("3"));
        }
        let deep = [&b"[".repeat(100_000)[..], &b"]".repeat(100_000)].concat();
        let text = [b"{\"x\":", &deep[..], b",\"label\":3}"].concat();
        assert_eq!(at(&text, "/label").as_deref(), Some("3"));
        assert_eq!(
            at(b"{\"x\":1,\"x\":2,\"label\":3}", "/label").as_deref(),
            Some("3")
        );
        assert_eq!(
            at(br#"{"l\u0061bel": 3, "\ud800": 1}"#, "/label").as_deref(),
            Some("3")
        );
    }

    #[test]
    fn a_key_with_two_values_is_refused_and_one_that_stands_twice_is_not() {
        assert_eq!(at(br#"{"a":1,"a":1}"#, "/a").as_deref(), Some("1"));
        let e = find(br#"{"a":1,"a":2}"#, "/a").unwrap_err();
        assert!(e.to_string().starts_with("'a' appears in it twice"), "{e}");
    }

    #[test]
    fn what_is_asked_for_is_strict() {
        for (text, says) in [
            (&b"NaN"[..], "has NaN at 'x', which is not a number"),
            (
                b"[1, -Infinity]",
                "has Infinity at 'x', which is not a number",
            ),
            (b"1e999", "has 1e999 at 'x', which is too large"),
            (
                b"99999999999999999999",
                "has 99999999999999999999 at 'x', which is too large",
            ),
            (b"\"\xff\"", "has text at 'x' that is not UTF-8"),
            (b"\"\\ud800\"", "has half a character"),
            (b"cat", "has 'cat' at 'x'"),
            (b"1.2.3", "has '1.2.3' at 'x'"),
        ] {
            let e = parse(text, || "'x'".into()).unwrap_err();
            assert!(e.starts_with(says), "{e}");
        }
    }

    #[test]
    fn a_text_without_structure_is_named_by_its_byte() {
        for (text, says) in [
            (&b""[..], "it ends before a value, at byte 0"),
            (b"{", "it ends inside an object, at byte 1"),
            (b"{\"a\": 1", "it ends inside an object, at byte 7"),
            (b"{\"a\": \"", "it ends inside a text, at byte 7"),
            (b"{\"a\": \"\\", "it ends inside a text, at byte 8"),
            (b"{'a': 1}", "no key in double quotes, at byte 1"),
            (b"{\"a\" 1}", "no colon after a key, at byte 5"),
            (
                b"{\"a\": 1 \"b\": 2}",
                "no comma and no } after a value, at byte 8",
            ),
            (b"{\"a\": 1,}", "no key in double quotes, at byte 8"),
            (b"{\"a\": }", "no value, at byte 6"),
            (b"[1, 2}", "no comma and no ] after a value, at byte 5"),
            (b"{} {}", "more text follows, at byte 3"),
        ] {
            assert_eq!(find(text, "").unwrap_err().to_string(), says);
        }
        assert!(find(&b"[".repeat(1 << 20), "").is_err());
        let e = members(b"[1]", |_, _| {}).unwrap_err();
        assert_eq!(e.to_string(), "it is an array, at byte 0");
    }

    fn document() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f32>().prop_map(|n| Json::from(f64::from(n))),
            "[a~/\"\\\\\u{e4}\n]{0,3}".prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                proptest::collection::btree_map("[a~/0\"\\\\]{0,2}", inner, 0..4)
                    .prop_map(|all| Json::Object(all.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// In strict JSON each pointer finds the same value as serde's pointer.
        #[test]
        fn pointers_are_those_of_rfc_6901(
            json in document(), pointer in "(/[a~01\"\\\\]{0,2}){0,3}", pretty: bool
        ) {
            let text = match pretty {
                true => serde_json::to_vec_pretty(&json).unwrap(),
                false => serde_json::to_vec(&json).unwrap(),
            };
            let found = find(&text, &pointer).unwrap();
            let found = found.map(|value| serde_json::from_slice::<Json>(value).unwrap());
            prop_assert_eq!(found.as_ref(), json.pointer(&pointer));
        }

        #[test]
        fn any_bytes_are_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = find(&text, "/a/0");
            let _ = members(&text, |_, value| drop(parse(value, String::new)));
        }
    }
}
