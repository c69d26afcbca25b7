//! Phrases that no comment, text or page has: they have a plain form.

use std::fs;
use std::path::Path;

/// Words that follow each other, whatever stands between them but letters. Alternatives stand
/// between bars.
const PHRASES: &[&str] = &[
    "for|by|of who",
    "there is none of",
    "none of one",
    "is|was|are said|told of",
    "gone on with",
    "see|sees to it",
    "in its senses",
    "of now",
    "goes on behind",
];
/// What is read: the folders and files of the project that people read.
const READ: &[&str] = &[
    ".ci",
    ".github",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "README.md",
    "SECURITY.md",
    "benches",
    "docs",
    "examples",
    "fuzz/fuzz_targets",
    "kernels",
    "miri",
    "model",
    "python",
    "scripts",
    "src",
    "tests",
];
const ENDINGS: &[&str] = &[
    "", "c", "cu", "cuh", "h", "md", "py", "pyi", "rs", "sh", "toml", "yaml", "yml",
];
/// This file has them all.
const OWN: &str = "tests/layers/phrases.rs";

/// Every text of the project: its path and what stands in it.
pub fn texts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut left: Vec<String> = READ.iter().map(|name| (*name).to_owned()).collect();
    let mut texts = Vec::new();
    while let Some(path) = left.pop() {
        let full = root.join(&path);
        if full.is_dir() {
            let entries = fs::read_dir(&full).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            // Builds leave folders behind.
            let names = names.filter(|name| !["target", "__pycache__"].contains(&name.as_str()));
            left.extend(names.map(|name| format!("{path}/{name}")));
        } else if is_read(&path)
            && let Ok(text) = fs::read_to_string(&full)
        {
            texts.push((path, text));
        }
    }
    assert!(texts.len() > 500, "found {} texts only", texts.len());
    texts
}

fn is_read(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    path != OWN && ENDINGS.contains(&ending)
}

/// Phrases in a text, and on which lines they begin.
pub fn found(path: &str, text: &str) -> Vec<String> {
    let words: Vec<(usize, String)> = (1..)
        .zip(text.lines())
        .flat_map(|(number, line)| words_of(line).map(move |word| (number, word)))
        .collect();
    let mut wrong = Vec::new();
    for phrase in PHRASES {
        let parts: Vec<Vec<&str>> = phrase.split(' ').map(|p| p.split('|').collect()).collect();
        for run in words.windows(parts.len()) {
            if run
                .iter()
                .zip(&parts)
                .all(|((_, word), part)| part.contains(&word.as_str()))
            {
                let said: Vec<&str> = run.iter().map(|(_, word)| word.as_str()).collect();
                wrong.push(format!("{path}:{}: \"{}\"", run[0].0, said.join(" ")));
            }
        }
    }
    wrong
}

/// Small letters. A mark that ends a sentence or a clause is a word of its own.
fn words_of(line: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    for c in line.chars() {
        match c {
            c if c.is_alphanumeric() || c == '_' => {
                let last = words.len() - 1;
                words[last].extend(c.to_lowercase());
            }
            '.' | ',' | ';' | ':' | '(' | ')' | '|' | '"' => {
                words.extend([c.to_string(), String::new()]);
            }
            _ => words.push(String::new()),
        }
    }
    words.into_iter().filter(|word| !word.is_empty())
}

#[test]
fn a_phrase_is_found_also_across_lines() {
    let count = |text: &str| found("a.rs", text).len();
    assert_eq!(count("/// A place for\n/// who waits."), 1);
    assert_eq!(count("What is told of it"), 1);
    assert_eq!(count("the batches OF NOW"), 1);
    assert_eq!(count("a list of\n# now"), 1);
    assert_eq!(count("None is there of it. Who waits"), 0);
    assert_eq!(count("that it is made of. Now it"), 0);
    assert_eq!(count("of nowhere, profound"), 0);
    assert_eq!(
        found("a.rs", "one\ngoes on\nbehind"),
        ["a.rs:2: \"goes on behind\""]
    );
}
