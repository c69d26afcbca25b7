//! Reads JSON values that are whole in memory, as Python's `json` does.
//!
//! NaN and infinite numbers are numbers, and of equal keys the last counts. A value of another kind
//! than its caller expects is `None`. There is no recursion and no limit to check: values are no
//! longer than what their caller read.

use std::borrow::Cow;

use super::json_frame::ValueFrame;

/// What is wrong with the structure of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueFault {
    pub(super) what: &'static str,
    /// Bytes before it.
    pub(super) at: usize,
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a byte may be part of a number or of a word such as `true`.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

struct ValueReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ValueReader<'a> {
    fn fault<T>(&self, what: &'static str) -> Result<T, ValueFault> {
        Err(ValueFault { what, at: self.at })
    }

    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !is_blank(*byte) {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// The bytes of the next value.
    fn value(&mut self) -> Result<&'a [u8], ValueFault> {
        let bytes = self.bytes;
        let first = self.peek();
        let rest = &bytes[self.at..];
        let len = match first {
            Some(b'{' | b'[' | b'"') => match ValueFrame::default().pass(rest) {
                Ok(Some(len)) => len,
                Ok(None) => return self.fault("a value without an end"),
                Err(e) => return self.fault(e.text()),
            },
            _ => rest.iter().take_while(|b| is_word(**b)).count(),
        };
        if len == 0 {
            return self.fault("no value");
        }
        self.at += len;
        Ok(&rest[..len])
    }

    /// After a value: whether another one follows, and not `close`.
    fn goes_on(&mut self, close: u8) -> Result<bool, ValueFault> {
        match self.take(b',') {
            true => Ok(true),
            false if self.take(close) => Ok(false),
            false => self.fault("no comma after a value"),
        }
    }
}

/// Calls `each` with the keys and values of an object. The bytes of a key have no quotes.
///
/// # Errors
/// It is no object, or a damaged one.
pub(super) fn members<'a>(
    object: &'a [u8],
    mut each: impl FnMut(Cow<'a, [u8]>, &'a [u8]),
) -> Result<(), ValueFault> {
    let mut reader = ValueReader {
        bytes: object,
        at: 0,
    };
    if !reader.take(b'{') {
        return reader.fault("no object");
    }
    if reader.take(b'}') {
        return Ok(());
    }
    loop {
        if reader.peek() != Some(b'"') {
            return reader.fault("no key in double quotes");
        }
        let key = key(reader.value()?);
        if !reader.take(b':') {
            return reader.fault("no colon after a key");
        }
        each(key, reader.value()?);
        if !reader.goes_on(b'}')? {
            return Ok(());
        }
    }
}

/// Calls `each` with the values of a list.
///
/// # Errors
/// It is no list, or a damaged one.
pub(super) fn elements<'a>(
    list: &'a [u8],
    mut each: impl FnMut(&'a [u8]),
) -> Result<(), ValueFault> {
    let mut reader = ValueReader { bytes: list, at: 0 };
    if !reader.take(b'[') {
        return reader.fault("no list");
    }
    if reader.take(b']') {
        return Ok(());
    }
    loop {
        each(reader.value()?);
        if !reader.goes_on(b']')? {
            return Ok(());
        }
    }
}

/// A key from its bytes in quotes.
pub(super) fn key(quoted: &[u8]) -> Cow<'_, [u8]> {
    let inside = &quoted[1..quoted.len().max(2) - 1];
    match inside.contains(&b'\\') {
        true => text(quoted).map_or(Cow::Borrowed(inside), |text| Cow::Owned(text.into())),
        false => Cow::Borrowed(inside),
    }
}

/// A text. None if it is another kind of value, is no UTF-8, or has half a character.
pub(super) fn text(value: &[u8]) -> Option<String> {
    serde_json::from_slice(value).ok()
}

/// A number, which may be infinite or NaN. `true` and `false` are 1 and 0, as in Python.
pub(super) fn number(value: &[u8]) -> Option<f64> {
    match value {
        [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..] => parse(value),
        b"NaN" => Some(f64::NAN),
        b"Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        b"true" => Some(1.0),
        b"false" => Some(0.0),
        _ => None,
    }
}

fn parse(word: &[u8]) -> Option<f64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A number at the start of `bytes`, and its length, if it is short: at most 15 digits and no
/// exponent. Then digits and power of ten are exact, and so is their quotient.
fn short_number(bytes: &[u8]) -> Option<(f64, usize)> {
    let start = usize::from(bytes.first() == Some(&b'-'));
    let (mut digits, mut value, mut decimals) = (0, 0u64, None);
    let mut at = start;
    loop {
        match bytes.get(at) {
            Some(byte @ b'0'..=b'9') if digits < 15 => {
                value = value * 10 + u64::from(byte - b'0');
                digits += 1;
                decimals = decimals.map(|n: usize| n + 1);
            }
            Some(b'.') if decimals.is_none() && digits > 0 => decimals = Some(0),
            Some(byte) if is_word(*byte) => return None,
            _ if digits == 0 => return None,
            _ => break,
        }
        at += 1;
    }
    let value = value as f64 / POWERS[decimals.unwrap_or(0)];
    Some((if start == 1 { -value } else { value }, at))
}

const POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// A whole number: `7`, also as `7.0`.
pub(super) fn integer(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    text.parse().ok().or_else(|| {
        // Above, a float does not have every whole number.
        const MOST: f64 = (1u64 << 53) as f64;
        let n = number(value)?;
        (n.fract() == 0.0 && n.abs() <= MOST).then_some(n as i64)
    })
}

/// Appends the numbers of a list. False if it is no list of numbers.
pub(super) fn numbers(list: &[u8], to: &mut Vec<f64>) -> bool {
    let Some(mut rest) = list.strip_prefix(b"[") else {
        return false;
    };
    let mut is_first = true;
    loop {
        rest = rest.trim_ascii_start();
        if let Some((n, len)) = short_number(rest) {
            to.push(n);
            is_first = false;
            match rest[len..].trim_ascii_start() {
                [b',', after @ ..] => rest = after,
                [b']', ..] => return true,
                _ => return false,
            }
            continue;
        }
        let len = rest.iter().take_while(|b| is_word(**b)).count();
        let (word, after) = rest.split_at(len);
        if is_first && word.is_empty() {
            return after.starts_with(b"]");
        }
        is_first = false;
        match number(word) {
            Some(n) => to.push(n),
            None => return false,
        }
        match after.trim_ascii_start() {
            [b',', after @ ..] => rest = after,
            [b']', ..] => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_python() {
        for (text, want) in [
            ("0.1", Some(0.1)),
            ("-3", Some(-3.0)),
            ("1e999", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("280.79", Some(280.79)),
            ("true", Some(1.0)),
            ("null", None),
            ("\"1\"", None),
            ("[1]", None),
            ("1.2.3", None),
            ("inf", None),
            ("+1", None),
            ("", None),
        ] {
            assert_eq!(number(text.as_bytes()), want, "{text}");
        }
        assert!(number(b"NaN").unwrap().is_nan());
        for (text, want) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("7.5", None),
            ("NaN", None),
            ("\"7\"", None),
        ] {
            assert_eq!(integer(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn short_numbers_are_those_of_the_parser() {
        let mut state = 1u64;
        let mut draw = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % most
        };
        for _ in 0..200_000 {
            let (whole, decimals) = (draw(1 << 30), draw(9) as usize);
            let sign = ["", "-"][draw(2) as usize];
            let rest = draw(10u64.pow(decimals as u32));
            let text = match decimals {
                0 => format!("{sign}{whole}"),
                _ => format!("{sign}{}.{rest:0decimals$}", whole >> draw(30)),
            };
            let want: f64 = text.parse().unwrap();
            if let Some((got, len)) = short_number(text.as_bytes()) {
                assert_eq!((got.to_bits(), len), (want.to_bits(), text.len()), "{text}");
            }
        }
        for (text, want) in [
            ("-0,", Some((0.0, 2))),
            ("7.", Some((7.0, 2))),
            ("999999999999999]", Some((999_999_999_999_999.0, 15))),
            ("9999999999999999", None),
            ("1e5", None),
            ("1.2.3", None),
            (".5", None),
            ("-", None),
            ("", None),
            ("NaN", None),
        ] {
            assert_eq!(short_number(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn lists_of_numbers() {
        let of = |text: &str| {
            let mut numbers_read = Vec::new();
            numbers(text.as_bytes(), &mut numbers_read).then_some(numbers_read)
        };
        assert_eq!(of("[1, 2.5 ,\n-3]"), Some(vec![1.0, 2.5, -3.0]));
        assert_eq!(of("[ ]"), Some(vec![]));
        for bad in [
            "1", "[1", "[1,]", "[,1]", "[[1]]", "[1 2]", "[\"1\"]", "[null]", "[",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[test]
    fn keys_and_values_of_an_object() {
        let of = |text: &str| {
            let mut found = Vec::new();
            let read = members(text.as_bytes(), |key, value| {
                let key = String::from_utf8_lossy(&key).into_owned();
                found.push((key, String::from_utf8_lossy(value).into_owned()));
            });
            read.map(|()| found).map_err(|e| e.what)
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            of("{ \"a\" : [1, {}], \"\\u0062\":NaN , \"\\\"\": \"}\" } "),
            Ok(vec![
                pair("a", "[1, {}]"),
                pair("b", "NaN"),
                pair("\"", "\"}\"")
            ])
        );
        assert_eq!(of("{}"), Ok(vec![]));
        for (text, what) in [
            ("[]", "no object"),
            ("{\"a\" 1}", "no colon after a key"),
            ("{\"a\": 1 \"b\": 2}", "no comma after a value"),
            ("{a: 1}", "no key in double quotes"),
            ("{\"a\": }", "no value"),
            ("{\"a\": [1}", "a closing bracket that fits no opening one"),
            ("{\"a\": 1", "no comma after a value"),
            ("{\"a\": \"", "a value without an end"),
            ("{\"", "a value without an end"),
        ] {
            assert_eq!(of(text), Err(what), "{text}");
        }
    }
}
