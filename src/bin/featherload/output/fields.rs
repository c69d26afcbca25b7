//! The printed report: one line with a label and its text, within 80 columns.
//!
//! Plain text. The label is bold if the terminal supports it (`console` checks that, and
//! `NO_COLOR`).

use console::Style;

use featherload::Result;
use featherload::error::printable;

/// Columns of a line.
pub const WIDTH: usize = 80;

/// Columns before a label, and columns of the label with the space after it.
const INDENT: usize = 2;
const LABEL: usize = 17;

/// How a label is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TextTone {
    Plain,
    /// An error.
    Warning,
}

/// Prints the parts of one line with bars between them. A part that does not fit moves to the next
/// line whole.
pub fn head(parts: &[String]) -> Result<()> {
    super::lines(&joined(parts))
}

/// Prints a labelled text, on as many lines as needed.
pub fn field(label: &str, text: &str) -> Result<()> {
    field_in_tone(TextTone::Plain, label, text)
}

/// Like [`field`], with a tone.
pub fn field_in_tone(tone: TextTone, label: &str, text: &str) -> Result<()> {
    let style = match tone {
        TextTone::Plain => Style::new().bold(),
        TextTone::Warning => Style::new().bold().red(),
    };
    super::write(&written(
        &style.apply_to(label).to_string(),
        label.chars().count(),
        text,
    ))
}

/// Prints a text that belongs to the field above it, indented by this number of columns.
pub fn below(further: usize, text: &str) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let at = INDENT + LABEL + further;
    super::lines(&with_text(&" ".repeat(at), at, text))
}

fn written(label: &str, columns: usize, text: &str) -> String {
    let pad = " ".repeat(LABEL.saturating_sub(columns).max(1));
    let head = format!("{:INDENT$}{label}{pad}", "");
    with_text(&head, INDENT + LABEL, text)
}

/// `head`, then a text. Its further lines are indented by this number of columns.
pub fn with_text(head: &str, columns: usize, text: &str) -> String {
    let lines = wrapped(text, WIDTH.saturating_sub(columns));
    format!("{head}{}", lines.join(&format!("\n{:columns$}", "")))
}

fn joined(parts: &[String]) -> String {
    const BAR: &str = " | ";
    let mut lines = vec![String::new()];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let part = &printable(part);
        let Some(line) = lines.last_mut() else { break };
        let with_bar = line.chars().count() + BAR.len() + part.chars().count();
        if line.is_empty() {
            line.push_str(part);
        } else if with_bar <= WIDTH {
            line.push_str(BAR);
            line.push_str(part);
        } else {
            lines.push(format!("  {part}"));
        }
    }
    lines.join("\n")
}

/// Prints `head`, then a text whose further lines are aligned with its start.
pub fn print_beside(head: &str, text: &str) -> Result<()> {
    super::lines(&with_text(head, head.chars().count(), text))
}

/// Units that stay on the line of their number.
const UNITS: [&str; 8] = ["s", "ms", "KiB", "MiB", "GiB", "images/s", "bytes", "cores"];

/// Words of a text. A number and its unit are one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ':', ')']));
        let is_number = |last: &&mut String| last.ends_with(|c: char| c.is_ascii_digit());
        match words.last_mut().filter(|last| is_unit && is_number(last)) {
            Some(number) => {
                number.push(' ');
                number.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// Printable lines of at most this number of columns, broken at spaces. A longer word stays whole,
/// and an empty text has no lines.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words(&printable(text)) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_unit_stand_in_one_line() {
        let lines = wrapped("120 batches in 1.7 s, first after 1.2 s", 38);
        assert_eq!(lines, ["120 batches in 1.7 s, first after", "1.2 s"]);
        assert_eq!(wrapped("in s", 3), ["in", "s"]);
    }

    #[test]
    fn texts_stay_within_80_columns_below_their_label() {
        let text =
            "decode: 82% of worker time (resize 9, write 7, read 2), which is more than ever";
        let written = written("limited by", 10, text);
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("  limited by       decode: 82%"));
        assert!(lines[1].starts_with(&format!("{:19}", "")));
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{written}");
        // A path has no space to break at.
        let path = "x".repeat(200);
        assert_eq!(wrapped(&path, 61), [path]);
    }

    #[test]
    fn names_of_strangers_break_no_line_and_move_no_cursor() {
        let name = "a\u{1b}[1A\nfailures none";
        let shown = "a\\u{1b}[1A\\nfailures none";
        assert_eq!(wrapped(name, 80), [shown]);
        assert_eq!(written("failures", 8, name).lines().count(), 1);
        assert_eq!(joined(&[name.into(), "b".into()]), format!("{shown} | b"));
    }

    #[test]
    fn a_head_breaks_between_its_parts() {
        let part = |n: usize| "x".repeat(n);
        assert_eq!(joined(&[part(3), String::new(), part(2)]), "xxx | xx");
        let two = joined(&[part(50), part(27), part(5), part(60)]);
        let lengths: Vec<usize> = two.lines().map(str::len).collect();
        assert_eq!(lengths, [80, 70]);
    }
}
