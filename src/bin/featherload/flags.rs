//! Replaces the library's option names in texts by flags.
//!
//! The library names an option by its method or field: `max_pixels`. Names of one word, and names
//! with a value, are in backticks: `` `labels` ``, `` `on_error: skip` ``. Users of the command
//! line know the flags. There is no list of flags here: clap has it.

use std::collections::BTreeSet;

use clap::Command;
use featherload::Error;

use crate::clap_command::clap_command;

/// The line of an error. An error that names a line of the user's file uses the words of that file,
/// so only names in backticks are replaced.
pub fn of_error(e: &Error) -> String {
    match e.line() {
        Some(_) => in_ticks(&e.to_string()),
        None => in_place(&e.to_string()),
    }
}

/// The library's text with flags: `--max-pixels`, `` `--on-error skip` ``.
pub fn in_place(text: &str) -> String {
    replaced(text, true)
}

/// Like [`in_place`], for a text about the user's file: only names in backticks are replaced.
pub fn in_ticks(text: &str) -> String {
    replaced(text, false)
}

fn replaced(text: &str, bare_too: bool) -> String {
    let mut flags = BTreeSet::new();
    gather(&clap_command(), &mut flags);
    let mut shown = String::with_capacity(text.len());
    for (i, part) in text.split('`').enumerate() {
        if i > 0 {
            shown.push('`');
        }
        match i % 2 {
            0 if bare_too => words(part, &flags, &mut shown),
            0 => shown.push_str(part),
            _ => shown.push_str(&ticked(part, &flags).unwrap_or_else(|| part.to_owned())),
        }
    }
    shown
}

fn gather(command: &Command, flags: &mut BTreeSet<String>) {
    let longs = command.get_arguments().filter_map(|arg| arg.get_long());
    flags.extend(longs.map(str::to_owned));
    for command in command.get_subcommands() {
        gather(command, flags);
    }
}

/// The flag of an option's name.
fn flag(name: &str, flags: &BTreeSet<String>) -> Option<String> {
    let long = name.replace('_', "-");
    flags.contains(&long).then(|| format!("--{long}"))
}

/// `name` or `name: value`.
fn ticked(text: &str, flags: &BTreeSet<String>) -> Option<String> {
    match text.split_once(": ") {
        Some((name, value)) => Some(format!("{} {value}", flag(name, flags)?)),
        None => flag(text, flags),
    }
}

/// Words with `_` that are not part of a path. Words in single quotes come from a file and are
/// excluded.
fn words(text: &str, flags: &BTreeSet<String>, shown: &mut String) {
    for word in text.split_inclusive(char::is_whitespace) {
        let edge = |c: char| !c.is_alphanumeric() && c != '_' && c != '/' && c != '-';
        let name = word.trim_matches(edge);
        let is_quoted = word.contains('\'');
        match flag(name, flags).filter(|_| name.contains('_') && !is_quoted) {
            Some(flag) => shown.push_str(&word.replacen(name, &flag, 1)),
            None => shown.push_str(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_flags_and_nothing_else_does() {
        for (text, want) in [
            (
                "a.jpg: over max_pixels = 34",
                "a.jpg: over --max-pixels = 34",
            ),
            ("lower max_pixels.", "lower --max-pixels."),
            (
                "(see max_pixels, max_scratch)",
                "(see --max-pixels, --max-scratch)",
            ),
            ("give `on_error: skip`", "give `--on-error skip`"),
            (
                "check `delimiter`, or `labels: none`",
                "check `--delimiter`, or `--labels none`",
            ),
            ("lower `batch_size`", "lower `--batch-size`"),
            // Plain words, paths, names of no sub-command, and fields of a file are unchanged.
            (
                "missing field 'max_pixels' at line 1",
                "missing field 'max_pixels' at line 1",
            ),
            ("labels of workers", "labels of workers"),
            (
                "/data/max_pixels/a.jpg, on_error.jpg",
                "/data/max_pixels/a.jpg, on_error.jpg",
            ),
            (
                "no_such_option and `no_such: one`",
                "no_such_option and `no_such: one`",
            ),
            ("two\n lines `", "two\n lines `"),
        ] {
            assert_eq!(in_place(text), want);
        }
    }
}
