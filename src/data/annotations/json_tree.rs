//! A JSON text as nested values.

use super::json_value::{self, ValueFault};
use crate::data::columns::row_value::{MOST_VALUES, RowValue};

/// Brackets that may be open at once.
const MOST_OPEN: usize = 16;

/// The values of a JSON text. Of objects, the fields of `wanted` names alone.
///
/// # Errors
/// It is no JSON, too deep, or has too many values.
pub(super) fn read(text: &[u8], wanted: &dyn Fn(&str) -> bool) -> Result<RowValue, ValueFault> {
    let trimmed = text.trim_ascii();
    let mut left = MOST_VALUES;
    value(trimmed, wanted, MOST_OPEN, &mut left)
}

fn value(
    text: &[u8],
    wanted: &dyn Fn(&str) -> bool,
    open: usize,
    left: &mut usize,
) -> Result<RowValue, ValueFault> {
    let fault = |what| Err(ValueFault { what, at: 0 });
    let Some(rest) = left.checked_sub(1) else {
        return fault("too many values");
    };
    *left = rest;
    match text.first() {
        Some(b'{' | b'[') if open == 0 => fault("too many brackets inside of each other"),
        Some(b'{') => {
            let (mut fields, mut result) = (Vec::new(), Ok(()));
            json_value::members(text, |key, inner| {
                let Ok(key) = str::from_utf8(&key) else {
                    return;
                };
                if result.is_err() || !wanted(key) {
                    return;
                }
                match value(inner, wanted, open - 1, left) {
                    Ok(value) => fields.push((key.to_owned(), value)),
                    Err(e) => result = Err(e),
                }
            })?;
            result.map(|()| RowValue::Fields(fields))
        }
        Some(b'[') => {
            let (mut values, mut result) = (Vec::new(), Ok(()));
            json_value::elements(text, |inner| {
                if result.is_ok() {
                    match value(inner, wanted, open - 1, left) {
                        Ok(value) => values.push(value),
                        Err(e) => result = Err(e),
                    }
                }
            })?;
            result.map(|()| RowValue::List(values))
        }
        Some(b'"') => match json_value::text(text) {
            Some(text) => Ok(RowValue::Text(text)),
            None => fault("a text that is damaged"),
        },
        _ if text == b"null" => Ok(RowValue::Null),
        _ => {
            let whole = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            match (whole, json_value::number(text)) {
                (Some(n), Some(_)) => Ok(RowValue::Whole(n)),
                (None, Some(n)) if matches!(text, b"true" | b"false") => {
                    Ok(RowValue::Whole(n as i64))
                }
                (None, Some(n)) => Ok(RowValue::Fraction(n)),
                (_, None) => fault("a value that is no number"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_kinds() {
        let text = br#" {"a": [1, -2.5, true, null, "x\"", {"b": [], "c": 7}], "d": [9]} "#;
        let found = read(text, &|name| name != "d" && name != "c").unwrap();
        let a = RowValue::List(vec![
            RowValue::Whole(1),
            RowValue::Fraction(-2.5),
            RowValue::Whole(1),
            RowValue::Null,
            RowValue::Text("x\"".into()),
            RowValue::Fields(vec![("b".into(), RowValue::List(vec![]))]),
        ]);
        assert_eq!(found, RowValue::Fields(vec![("a".into(), a)]));
        let RowValue::List(odd) = read(b"[NaN, 1e999, 9223372036854775808]", &|_| true).unwrap()
        else {
            panic!("no list");
        };
        assert!(odd[0].number().unwrap().is_nan());
        assert_eq!(odd[1], RowValue::Fraction(f64::INFINITY));
        assert_eq!(odd[2], RowValue::Fraction(9_223_372_036_854_775_808.0));
    }

    #[test]
    fn damaged_and_deep_texts_are_faults() {
        for text in [
            "",
            "[",
            "{",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "x",
            "[\"\\ud800\"]",
            "[+1]",
            "{\"a\": x}",
        ] {
            assert!(read(text.as_bytes(), &|_| true).is_err(), "{text}");
        }
        let deep = |n: usize| ["[".repeat(n), "]".repeat(n)].concat();
        assert!(read(deep(MOST_OPEN).as_bytes(), &|_| true).is_ok());
        let e = read(deep(MOST_OPEN + 1).as_bytes(), &|_| true).unwrap_err();
        assert!(e.what.contains("brackets"), "{}", e.what);
        let many = format!("[{}1]", "1,".repeat(MOST_VALUES));
        let e = read(many.as_bytes(), &|_| true).unwrap_err();
        assert!(e.what.contains("too many values"), "{}", e.what);
    }
}
