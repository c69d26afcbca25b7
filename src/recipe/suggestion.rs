//! Suggestions for text in a recipe where a number, `true` or `false` is expected.

/// The fix for a text where a number, `true` or `false` is expected. It follows "found ..." in the
/// message. Empty if no fix is known.
pub(crate) fn suggest_fix(expected: &str, text: &str) -> String {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    if expected == "true or false" {
        return match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "y" | "1" => ": write true".to_owned(),
            "false" | "no" | "off" | "n" | "0" => ": write false".to_owned(),
            _ => String::new(),
        };
    }
    if !expected.contains("number") {
        return String::new();
    }
    if number(text).is_some() {
        return ": remove the quotes".to_owned();
    }
    if let Some((over, under)) = text.split_once('/')
        && let (Some(over), Some(under)) = (number(over), number(under))
        && under != 0.0
    {
        return format!(": nothing is computed here, write {:.6}", over / under);
    }
    let bare = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    match number(bare).filter(|_| bare.len() < text.len()) {
        Some(_) => format!(": write {} without a unit", bare.trim()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_said_where_it_can_be_told() {
        for (expected, text, fix) in [
            ("a number", "224", ": remove the quotes"),
            ("a number", " 0.5 ", ": remove the quotes"),
            ("a number", "224px", ": write 224 without a unit"),
            (
                "a number",
                "1.0/255.0",
                ": nothing is computed here, write 0.003922",
            ),
            ("a number", "1/0", ""),
            ("a number", "big", ""),
            ("a number", "inf", ""),
            ("a list", "224", ""),
            ("true or false", "Yes", ": write true"),
            ("true or false", "off", ": write false"),
            ("true or false", "perhaps", ""),
        ] {
            assert_eq!(suggest_fix(expected, text), fix, "{text}");
        }
    }
}
