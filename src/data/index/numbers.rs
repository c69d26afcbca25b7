//! Parses several numbers in one text, for a label that is a vector. Rejects texts that may mean
//! one number or several.
//!
//! Used in the consumer. Numbers are separated by blanks (`0 1`), by commas (`0,1`), or by commas
//! and blanks (`0, 1`). A text uses one of these ways. The parser does not guess: `0,5` means one
//! half in many countries, and two numbers in others.

use crate::data::index::column_names::quoted;
use crate::data::index::names::shown;

/// The separator between two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum NumberSeparator {
    Blanks,
    Comma,
    CommaAndBlanks,
}

/// The numbers of a text. `None` if the text has other words than numbers.
///
/// # Errors
/// The text is ambiguous, or it has only numbers but is not a vector.
pub(crate) fn vector(text: &str) -> Result<Option<Vec<f32>>, String> {
    let is_gap = |c: char| c == ',' || c.is_ascii_whitespace();
    let words: Vec<&str> = text.split(is_gap).filter(|word| !word.is_empty()).collect();
    let parsed = words.iter().map(|word| word.parse::<f32>().ok());
    // Words such as `inf` and `nan` are not numbers. `1e99` is a number that is too large.
    let is_number = |(n, word): (f32, &str)| n.is_finite() || word.contains(is_digit);
    let all: Option<Vec<f32>> = parsed
        .zip(&words)
        .map(|(n, word)| n.filter(|n| is_number((*n, word))))
        .collect();
    let Some(all) = all.filter(|all| !all.is_empty()) else {
        return Ok(None);
    };
    if let Some(at) = all.iter().position(|n| !n.is_finite()) {
        return Err(format!("has {}, which is too large", quoted(words[at])));
    }
    check(text, &words)?;
    Ok(Some(all))
}

/// Whether a text is either one number with a decimal comma, or two whole numbers.
pub(crate) fn is_comma_pair(text: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.chars().all(is_digit);
    let parts = text.trim_ascii().split_once(',');
    parts.is_some_and(|(whole, fraction)| {
        let (fraction, exponent) = fraction.split_once(['e', 'E']).unwrap_or((fraction, "0"));
        is_digits(unsigned(whole)) && is_digits(fraction) && is_digits(unsigned(exponent))
    })
}

/// The error for such a text.
pub(crate) fn ambiguity_text(text: &str) -> String {
    let text = text.trim_ascii();
    let (whole, fraction) = text.split_once(',').unwrap_or((text, ""));
    let second = match fraction.trim_start_matches('0') {
        "" => "0",
        second => second,
    };
    let has_digits = |part: &str| part.chars().all(is_digit);
    let is_group = fraction.len() == 3 && has_digits(fraction);
    let is_first = has_digits(unsigned(whole)) && !unsigned(whole).starts_with('0');
    let thousands = match is_group && is_first {
        true => format!("{whole}{fraction}, "),
        false => String::new(),
    };
    let meanings = format!("{thousands}{whole}.{fraction} or {whole} {second}");
    format!(
        "has {}, which is one number with a decimal comma or two numbers (write {})",
        quoted(text),
        shown(meanings.as_bytes())
    )
}

fn check(text: &str, words: &[&str]) -> Result<(), String> {
    let text = text.trim_ascii();
    let mut found: Option<NumberSeparator> = None;
    let mut rest = text;
    for (at, word) in words.iter().enumerate() {
        let (gap, after) = rest.split_once(word).unwrap_or((rest, ""));
        rest = after;
        let kind = match (at, gap.matches(',').count()) {
            (0, 0) => continue,
            (0, _) | (_, 2..) => return Err(without_number(text)),
            (_, 0) => NumberSeparator::Blanks,
            (_, 1) if gap.len() == 1 => NumberSeparator::Comma,
            (_, 1) => NumberSeparator::CommaAndBlanks,
        };
        if *found.get_or_insert(kind) != kind {
            return Err(format!(
                "has {}, whose numbers are separated in two ways (use one of them, and a point \
                 before a fraction)",
                quoted(text)
            ));
        }
    }
    if !rest.is_empty() {
        return Err(without_number(text));
    }
    // `0,1` and `1,0` are flags of two classes. A column of decimal fractions has other numbers
    // too.
    let is_flags = words.iter().all(|word| matches!(*word, "0" | "1"));
    if is_comma_pair(text) && !is_flags {
        return Err(ambiguity_text(text));
    }
    let is_padded = |word: &&str| {
        let mut digits = unsigned(word).chars();
        digits.next() == Some('0') && digits.next().is_some_and(is_digit)
    };
    if words.len() > 1 && (words.iter().any(is_padded) || is_grouped(text)) {
        return Err(format!(
            "has {}, which is one number with thousands separators or several numbers \
             (write one without separators, and several with only blanks between them and \
             without leading zeros)",
            quoted(text)
        ));
    }
    Ok(())
}

/// Whether a text may be one number with thousands separators and a fraction: `1.234,5`.
fn is_grouped(text: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.chars().all(is_digit);
    let by = |mark: char, point: char| {
        let Some((whole, fraction)) = text.rsplit_once(point) else {
            return false;
        };
        let mut groups = unsigned(whole).split(mark);
        let first = groups.next().unwrap_or_default();
        let mut others = groups.clone().peekable();
        let is_first = is_digits(first) && first.len() <= 3 && !first.starts_with('0');
        let has_others = others.peek().is_some();
        is_first
            && has_others
            && is_digits(fraction)
            && groups.all(|g| g.len() == 3 && is_digits(g))
    };
    by(',', '.') || by('.', ',')
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn unsigned(word: &str) -> &str {
    word.strip_prefix(['-', '+']).unwrap_or(word)
}

fn without_number(text: &str) -> String {
    format!(
        "has {}, with a comma that has no number on one side",
        quoted(text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_separated_in_one_way() {
        for (text, want) in [
            ("0 1  0", &[0.0, 1.0, 0.0][..]),
            ("0,1,0.5", &[0.0, 1.0, 0.5]),
            ("0, 1,  5", &[0.0, 1.0, 5.0]),
            ("0, 5", &[0.0, 5.0]),
            ("0,1", &[0.0, 1.0]),
            ("0.5,2", &[0.5, 2.0]),
            ("100,200,300", &[100.0, 200.0, 300.0]),
            ("12 345", &[12.0, 345.0]),
            ("1 100 200.5", &[1.0, 100.0, 200.5]),
            ("1,100,20.5", &[1.0, 100.0, 20.5]),
            ("-1e2", &[-100.0]),
        ] {
            assert_eq!(vector(text), Ok(Some(want.to_vec())), "{text}");
        }
        for text in [
            "cat",
            "1 cat",
            "inf",
            "nan",
            "0x1f",
            "1_000",
            "",
            "1\u{a0}000",
            "\u{663}",
        ] {
            assert_eq!(vector(text), Ok(None), "{text}");
        }
    }

    /// pandas reads these as texts. A spreadsheet of another country reads them as one number.
    #[test]
    fn a_text_of_two_meanings_is_refused() {
        for (text, says) in [
            (
                "0,5",
                "has '0,5', which is one number with a decimal comma or two numbers (write 0.5 or 0 5)",
            ),
            ("1,00", "two numbers (write 1.00 or 1 0)"),
            ("-1,5", "decimal comma"),
            ("1,5e-3", "decimal comma"),
            ("1,000", "two numbers (write 1000, 1.000 or 1 0)"),
            ("0,5 1,5", "separated in two ways"),
            ("0,5, 1,5", "separated in two ways"),
            ("0,5e3", "two numbers (write 0.5e3 or 0 5e3)"),
            ("0,500", "two numbers (write 0.500 or 0 500)"),
            ("1,100,200.5", "several with only blanks between them"),
            ("1,000,000", "thousands separators"),
            ("1 000", "thousands separators"),
            ("1,234.5", "thousands separators"),
            ("1.234,5", "thousands separators"),
            ("1,,2", "a comma that has no number"),
            ("7,", "a comma that has no number"),
            (",7", "a comma that has no number"),
            ("1e99", "has '1e99', which is too large"),
        ] {
            let e = vector(text).unwrap_err();
            assert!(e.contains(says), "{text}: {e}");
        }
    }
}
