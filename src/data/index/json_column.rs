//! A column of JSON values: its type, by all values or by the first ones, and its values.
//!
//! In the consumer. Reads no file.

use serde_json::Value as Json;

use crate::data::columns::values::{ColumnBuilder, ColumnKind, NumberKind};

/// What the values of a column are, as far as they were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum JsonKind {
    /// Only missing values.
    #[default]
    None,
    Truth,
    Whole,
    Fraction,
    Text,
    /// Lists, by what is inside: empty lists only, numbers, groups of numbers, or texts.
    List(InnerKind),
}

/// What is inside of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum InnerKind {
    #[default]
    Empty,
    /// Numbers; whether one is a fraction.
    Numbers(bool),
    /// Lists of this many numbers; whether one is a fraction.
    Groups(usize, bool),
    Texts,
}

impl JsonKind {
    /// The kind of a value. `None` if no column has it.
    pub(super) fn of(value: &Json) -> Option<Self> {
        Some(match value {
            Json::Null => Self::None,
            Json::Bool(_) => Self::Truth,
            Json::Number(number) if number.is_i64() => Self::Whole,
            Json::Number(_) => Self::Fraction,
            Json::String(_) => Self::Text,
            Json::Array(all) => {
                let mut inner = InnerKind::Empty;
                for value in all {
                    inner = inner.and(InnerKind::of(value)?)?;
                }
                Self::List(inner)
            }
            Json::Object(_) => return None,
        })
    }

    /// The kind of a column that has values of both. `None` if there is none.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::None, kind) | (kind, Self::None) => kind,
            (Self::Whole | Self::Fraction, Self::Whole | Self::Fraction) if self != other => {
                Self::Fraction
            }
            (Self::List(a), Self::List(b)) => Self::List(a.and(b)?),
            (a, b) if a == b => a,
            _ => return None,
        })
    }

    /// The kind of column. `has_missing`: whether a value is missing.
    pub(super) fn column(self, has_missing: bool) -> ColumnKind {
        let number = |is_fraction| match is_fraction {
            true => NumberKind::F64,
            false => NumberKind::I64,
        };
        match self {
            Self::None | Self::Text => ColumnKind::Text,
            Self::Truth => ColumnKind::Numbers(NumberKind::Bool, None),
            Self::Whole => ColumnKind::Numbers(number(has_missing), None),
            Self::Fraction => ColumnKind::Numbers(NumberKind::F64, None),
            Self::List(InnerKind::Empty) => ColumnKind::Ragged(NumberKind::F64, None),
            Self::List(InnerKind::Numbers(fraction)) => ColumnKind::Ragged(number(fraction), None),
            Self::List(InnerKind::Groups(width, fraction)) => {
                ColumnKind::Ragged(number(fraction), Some(width))
            }
            Self::List(InnerKind::Texts) => ColumnKind::TextLists,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Truth => "true or false",
            Self::Whole | Self::Fraction => "a number",
            Self::Text => "text",
            Self::List(InnerKind::Texts) => "a list of text",
            Self::List(InnerKind::Groups(..)) => "a list of lists",
            Self::List(_) => "a list of numbers",
        }
    }

    /// The same kind with fractions for whole numbers, for columns of which not all values were
    /// seen.
    pub(super) fn with_fractions(self) -> Self {
        match self {
            Self::Whole => Self::Fraction,
            Self::List(InnerKind::Numbers(_)) => Self::List(InnerKind::Numbers(true)),
            Self::List(InnerKind::Groups(width, _)) => Self::List(InnerKind::Groups(width, true)),
            kind => kind,
        }
    }
}

impl InnerKind {
    fn of(value: &Json) -> Option<Self> {
        Some(match value {
            Json::Number(number) => Self::Numbers(!number.is_i64()),
            Json::String(_) => Self::Texts,
            Json::Array(group) => {
                let mut is_fraction = false;
                for value in group {
                    let Json::Number(number) = value else {
                        return None;
                    };
                    is_fraction |= !number.is_i64();
                }
                (!group.is_empty()).then_some(Self::Groups(group.len(), is_fraction))?
            }
            _ => return None,
        })
    }

    fn and(self, other: Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::Empty, kind) | (kind, Self::Empty) => kind,
            (Self::Numbers(a), Self::Numbers(b)) => Self::Numbers(a || b),
            (Self::Groups(width, a), Self::Groups(same, b)) if width == same => {
                Self::Groups(width, a || b)
            }
            (Self::Texts, Self::Texts) => Self::Texts,
            _ => return None,
        })
    }
}

/// Whether `f64` holds a whole number exactly.
pub(super) fn is_exact(number: i64) -> bool {
    (number as f64) as i128 == i128::from(number)
}

/// The first number in a value that `of` chooses.
fn first_number(value: &Json, of: fn(&serde_json::Number) -> bool) -> Option<&serde_json::Number> {
    match value {
        Json::Number(number) => of(number).then_some(number),
        Json::Array(all) => all.iter().find_map(|value| first_number(value, of)),
        _ => None,
    }
}

/// Words for the first whole number that float64 does not hold exactly. `why`: why the column is
/// float64, and the fix.
pub(super) fn inexact(value: &Json, why: &str) -> Option<String> {
    let is_inexact = |number: &serde_json::Number| number.as_i64().is_some_and(|n| !is_exact(n));
    let number = first_number(value, is_inexact)?;
    Some(format!(
        "has the number {number}, which has more digits than float64. {why}"
    ))
}

/// Why a column of a table has float64.
pub(super) const OF_FRACTIONS: &str =
    "Its column has fractions or missing values, so it is float64: write it as text";
/// Why a value in the JSON of tar shards is float64.
pub(super) const OF_SHARDS: &str = "Numbers in the JSON of tar shards are float64: name the column \
                                    json, which has the whole text";

/// Words for the first whole number of a JSON text that `i64` does not hold. A parsed value does
/// not show it: from 2^64 on it is a fraction.
pub(super) fn beyond_whole(text: &str) -> Option<String> {
    let mut rest = text.as_bytes();
    let mut is_text = false;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, is_text) {
            (b'\\', true) => rest = rest.get(1..).unwrap_or_default(),
            (b'"', _) => is_text = !is_text,
            (b'-' | b'0'..=b'9', false) => {
                let of_number = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
                let more = rest.iter().take_while(|b| of_number(b)).count();
                let end = text.len() - rest.len() + more;
                let number = &text[end - more - 1..end];
                rest = &rest[more..];
                // Anything else, such as -Infinity, is reported by the parser.
                let digits = number.strip_prefix('-').unwrap_or(number);
                let is_whole =
                    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
                if is_whole && number.parse::<i64>().is_err() {
                    let shown: String = number.chars().take(40).collect();
                    return Some(format!(
                        "has the number {shown}, which is more than int64 has: write it as text"
                    ));
                }
            }
            _ => {}
        }
    }
    None
}

/// Adds a value to a column.
///
/// # Errors
/// The value is of another kind than the column, or a whole number that float64 does not hold
/// exactly.
pub(super) fn push(value: &Json, into: &mut ColumnBuilder) -> Result<(), String> {
    let unlike = || {
        let kind = JsonKind::of(value).map_or("an object", JsonKind::text);
        format!("is {kind}, and the column has {}", into.kind())
    };
    let number = |value: &Json, kind| -> Option<[u8; 8]> {
        match kind {
            NumberKind::I64 => value.as_i64().map(i64::to_le_bytes),
            NumberKind::F64 => value.as_f64().map(f64::to_le_bytes),
            _ => None,
        }
    };
    if into.kind().is_of_fractions()
        && let Some(what) = inexact(value, OF_FRACTIONS)
    {
        return Err(what);
    }
    match (into.kind(), value) {
        (_, Json::Null) => into.push_null(),
        (ColumnKind::Text, Json::String(text)) => {
            into.push_text(text.clone());
            Ok(())
        }
        (ColumnKind::Numbers(NumberKind::Bool, None), Json::Bool(truth)) => {
            into.push_numbers(&[u8::from(*truth)])
        }
        (ColumnKind::Numbers(kind, None), value) => {
            let bytes = number(value, kind).ok_or_else(unlike)?;
            into.push_numbers(&bytes)
        }
        (ColumnKind::TextLists, Json::Array(all)) => {
            let texts = all.iter().map(|value| value.as_str().map(str::to_owned));
            let texts: Option<Vec<String>> = texts.collect();
            let texts = texts.ok_or_else(unlike)?;
            into.push_list(texts.into_iter().map(Some).collect());
            Ok(())
        }
        (ColumnKind::Ragged(kind, width), Json::Array(all)) => {
            let mut bytes = Vec::new();
            for value in all {
                match (width, value) {
                    (None, value) => bytes.extend(number(value, kind).ok_or_else(unlike)?),
                    (Some(width), Json::Array(group)) if group.len() == width => {
                        for value in group {
                            bytes.extend(number(value, kind).ok_or_else(unlike)?);
                        }
                    }
                    _ => return Err(unlike()),
                }
            }
            into.push_numbers(&bytes)
        }
        _ => Err(unlike()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::data::columns::values::ColumnValues;

    fn column(values: &[Json]) -> Option<ColumnKind> {
        let mut kind = JsonKind::None;
        for value in values {
            kind = kind.and(JsonKind::of(value)?)?;
        }
        Some(kind.column(values.contains(&Json::Null)))
    }

    #[test]
    fn the_kind_of_a_column_follows_from_all_values() {
        use NumberKind::{Bool, F64, I64};
        for (values, want) in [
            (vec![json!(1), json!(-3)], ColumnKind::Numbers(I64, None)),
            (vec![json!(1), json!(0.5)], ColumnKind::Numbers(F64, None)),
            (vec![json!(1), json!(null)], ColumnKind::Numbers(F64, None)),
            (vec![json!(true)], ColumnKind::Numbers(Bool, None)),
            (vec![json!(null), json!("a")], ColumnKind::Text),
            (
                vec![json!([]), json!([1, 2])],
                ColumnKind::Ragged(I64, None),
            ),
            (
                vec![json!([1]), json!([0.5])],
                ColumnKind::Ragged(F64, None),
            ),
            (
                vec![json!([[1, 2], [3, 4]]), json!([])],
                ColumnKind::Ragged(I64, Some(2)),
            ),
            (vec![json!(["a"]), json!([])], ColumnKind::TextLists),
            (vec![json!([])], ColumnKind::Ragged(F64, None)),
        ] {
            assert_eq!(column(&values), Some(want), "{values:?}");
            let mut builder = ColumnBuilder::new(want);
            for value in &values {
                push(value, &mut builder).unwrap();
            }
        }
        for values in [
            vec![json!(1), json!("a")],
            vec![json!({"a": 1})],
            vec![json!([1, "a"])],
            vec![json!([[1, 2], [3]])],
            vec![json!([[[1]]])],
            vec![json!(true), json!(1)],
        ] {
            assert_eq!(column(&values), None, "{values:?}");
        }
    }

    #[test]
    fn whole_numbers_of_more_than_63_bits_are_found_in_the_text() {
        for (text, number) in [
            ("9223372036854775808", "9223372036854775808"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("18446744073709551616", "18446744073709551616"),
            ("[1, 2.5, [18446744073709551617]]", "18446744073709551617"),
            (r#"["a\"", 99999999999999999999]"#, "99999999999999999999"),
        ] {
            let what = beyond_whole(text).unwrap();
            assert!(what.contains(&format!("number {number},")), "{what}");
        }
        for text in [
            "9223372036854775807",
            "-9223372036854775808",
            "1e30",
            "18446744073709551616.0",
            "-0",
            "-Infinity",
            "-",
            "1-2",
            r#""18446744073709551616""#,
            r#"["\" 18446744073709551616", 1]"#,
            "",
        ] {
            assert_eq!(beyond_whole(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_of_another_kind_is_named() {
        let mut builder = ColumnBuilder::new(ColumnKind::Numbers(NumberKind::F64, None));
        push(&json!(2), &mut builder).unwrap();
        push(&json!(null), &mut builder).unwrap();
        let e = push(&json!("x"), &mut builder).unwrap_err();
        assert_eq!(e, "is text, and the column has float64");
        let ColumnValues::Numbers { values, .. } = builder.finish() else {
            panic!("no numbers");
        };
        let values: Vec<f64> = values.to_f64().collect();
        assert!(values[0] == 2.0 && values[1].is_nan() && values.len() == 2);
    }
}
