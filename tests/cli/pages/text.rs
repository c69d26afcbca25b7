//! What stands on the pages beside code.

use std::path::Path;

use super::page::{Page, pages};
use crate::common::command::{featherload, stdout};

/// A longer sentence is two.
const MOST_WORDS: usize = 25;

/// What is measured, and must say where.
const RATES: [&str; 3] = ["images/s", "rays/s", "views/s"];

/// Folders of the repository whose paths pages name.
const FOLDERS: [&str; 8] = [
    "bench_data/",
    "docs/",
    "examples/",
    "kernels/",
    "python/",
    "scripts/",
    "src/",
    "tests/",
];

/// Fails with all of them, a line each.
#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// What `check` finds on every page.
fn found(check: impl Fn(&Page, &mut dyn FnMut(usize, String))) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages() {
        check(&page, &mut |line, what| {
            wrong.push(format!("{}:{line}: {what}", page.path.display()));
        });
    }
    wrong
}

#[test]
fn no_sentence_is_long() {
    none(&found(|page, wrong| {
        for sentence in &page.sentences {
            let words = sentence.what.split_whitespace();
            let words = words.filter(|w| w.contains(char::is_alphanumeric)).count();
            if words > MOST_WORDS {
                wrong(sentence.line, format!("{words} words: {}", sentence.what));
            }
        }
    }));
}

#[test]
fn links_lead_somewhere() {
    none(&found(|page, wrong| {
        for link in &page.links {
            if link.what.contains("://") {
                continue;
            }
            let (file, anchor) = link.what.split_once('#').unwrap_or((&link.what, ""));
            let path = match file {
                "" => page.path.clone(),
                _ => page.path.parent().unwrap().join(file),
            };
            if !path.exists() {
                wrong(link.line, format!("no file {}", path.display()));
            } else if !anchor.is_empty() && !Page::read(&path).anchors.iter().any(|a| a == anchor) {
                wrong(
                    link.line,
                    format!("{} has no heading #{anchor}", path.display()),
                );
            }
        }
    }));
}

#[test]
fn paths_in_the_text_are_there() {
    none(&found(|page, wrong| {
        // These name files that somebody is about to write.
        if page.path.starts_with("docs/add") {
            return;
        }
        for span in &page.spans {
            let is_path = FOLDERS.iter().any(|f| span.what.starts_with(f))
                && !span.what.contains([' ', '*', '{']);
            if is_path && !Path::new(&span.what).exists() {
                wrong(span.line, format!("no file {}", span.what));
            }
        }
    }));
}

#[test]
fn rates_name_their_run() {
    none(&found(|page, wrong| {
        for section in &page.sections {
            if has_rate(&section.what) && !section.what.contains("bench_data/runs") {
                wrong(section.line, "a rate, and no run in bench_data/runs".into());
            }
        }
    }));
}

/// Whether a text has a rate and a number. A path such as `images/spec.rs` has none.
fn has_rate(text: &str) -> bool {
    let ends = |(at, rate): (usize, &str)| {
        let next = text[at + rate.len()..].chars().next();
        !next.is_some_and(char::is_alphanumeric)
    };
    let has_rate = RATES.iter().any(|rate| text.match_indices(rate).any(ends));
    has_rate && text.contains(|c: char| c.is_ascii_digit())
}

#[test]
fn a_path_is_no_rate() {
    for rate in ["1 images/s", "2 rays/s.", "| 3 views/s |"] {
        assert!(has_rate(rate), "{rate}");
    }
    for none in ["images/s", "1 `jobs/images/spec.rs`", "2 `rays/spec.rs`"] {
        assert!(!has_rate(none), "{none}");
    }
}

#[test]
fn code_names_its_language() {
    // rustdoc takes what has none for Rust.
    none(&found(|page, wrong| {
        for block in page.blocks.iter().filter(|b| b.info.is_empty()) {
            wrong(block.line, "a block of code without a language".into());
        }
    }));
}

#[test]
fn every_command_has_its_row() {
    let page = std::fs::read_to_string("docs/commands.md").unwrap();
    let help = stdout(&featherload(&["--help"]));
    // A line of a command is its name, and what it does, apart from it.
    let commands = help
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  "))
        .map(|(name, _)| name)
        .filter(|name| name.chars().all(|c| c.is_ascii_lowercase()) && !name.is_empty())
        .filter(|name| *name != "help");
    let mut count = 0;
    for name in commands {
        count += 1;
        let row = format!("| `featherload {name}");
        assert!(
            page.contains(&row),
            "docs/commands.md has no row of '{name}'"
        );
    }
    assert!(count > 5, "{help}");
}
