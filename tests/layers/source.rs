//! The text of source files: comments and strings blanked out, test code marked.
//!
//! No macro is expanded: good enough for a code base that `cargo fmt` has been over.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The files of the project's `src/`.
pub fn tree() -> Vec<Source> {
    let mut files = Vec::new();
    read_into("src", &mut files);
    assert!(files.len() > 50, "found {} files only", files.len());
    marked(files)
}

/// The files, with those of test modules marked as such.
pub fn marked(mut files: Vec<Source>) -> Vec<Source> {
    let tests = test_modules(&files);
    for file in &mut files {
        file.mark_if_under(&tests);
    }
    files
}

/// A tree of files with these paths and texts, for tests of the checks.
pub fn fakes(files: &[(&str, &str)]) -> Vec<Source> {
    let new = |(path, text): &(&str, &str)| Source::new(path, text);
    marked(files.iter().map(new).collect())
}

pub fn fake(path: &str, text: &str) -> Vec<Source> {
    fakes(&[(path, text)])
}

pub fn read_into(folder: &str, files: &mut Vec<Source>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // tests/, benches/ and examples/ need not be there; an empty src/ fails in `tree`.
        let Ok(entries) = fs::read_dir(root.join(&folder)) else {
            continue;
        };
        for entry in entries {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.ends_with(".rs") {
                files.push(Source::new(
                    &path,
                    &fs::read_to_string(entry.path()).unwrap(),
                ));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
}

pub struct Source {
    /// From the package's root, with slashes.
    pub path: String,
    pub raw: Vec<String>,
    /// The same lines with comments, strings and characters blanked out.
    pub code: Vec<String>,
    /// Which lines are test code.
    pub test: Vec<bool>,
}

/// Lines of code, joined.
#[derive(Default)]
pub struct Text {
    pub code: String,
    /// Where a line starts, and its number.
    lines: Vec<(usize, usize)>,
}

impl Text {
    pub fn line_of(&self, at: usize) -> usize {
        self.lines[self.lines.partition_point(|&(start, _)| start <= at) - 1].1
    }
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let lines = |s: &str| s.lines().map(str::to_owned).collect::<Vec<_>>();
        let code = lines(&blanked(text));
        let test = test_lines(&code);
        Self {
            path: path.to_owned(),
            raw: lines(text),
            code,
            test,
        }
    }

    /// The module of the library that the file is; empty for `lib.rs`.
    pub fn module(&self) -> Vec<String> {
        Self::module_of(self.name())
    }

    fn module_of(name: &str) -> Vec<String> {
        let mut names: Vec<String> = name.split('/').map(str::to_owned).collect();
        if names
            .last()
            .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
        {
            names.pop();
        }
        names
    }

    /// The module that the file is in the crate whose root lies in `root`.
    pub fn module_below(&self, root: &str) -> Vec<String> {
        let path = self.path.strip_prefix(root).unwrap_or(&self.path);
        Self::module_of(path.strip_suffix(".rs").unwrap_or(path))
    }

    /// The path below `src/`, without `.rs`.
    pub fn name(&self) -> &str {
        let path = self.path.strip_prefix("src/").unwrap_or(&self.path);
        path.strip_suffix(".rs").unwrap_or(path)
    }

    /// The lines that are not tests, numbered from 1.
    pub fn shipped(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.iter().zip(&self.test).enumerate();
        lines.filter_map(|(i, (code, test))| (!test).then_some((i + 1, code.as_str())))
    }

    /// The lines that are not tests, and which line a place in them is.
    pub fn shipped_text(&self) -> Text {
        let mut text = Text::default();
        for (line, code) in self.shipped() {
            text.lines.push((text.code.len(), line));
            text.code.push_str(code);
            text.code.push('\n');
        }
        text
    }

    /// True when all of it is test code.
    pub fn is_test(&self) -> bool {
        !self.test.is_empty() && self.test.iter().all(|test| *test)
    }

    /// What its `//!` lines say.
    pub fn page(&self) -> String {
        let lines = self.raw.iter().filter_map(|line| line.strip_prefix("//!"));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Marks the whole file when it is one of the modules, or inside one.
    fn mark_if_under(&mut self, modules: &BTreeSet<String>) {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        let under = |m: &String| stem == m || stem.starts_with(&format!("{m}/"));
        if modules.iter().any(under) {
            self.test.fill(true);
        }
    }
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True when `word` stands in `code` and is not the end or start of a longer one.
pub fn has_word(code: &str, word: &str) -> bool {
    let first = word.chars().next().is_some_and(is_word);
    let last = word.chars().next_back().is_some_and(is_word);
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].ends_with(is_word);
        let after = code[at + word.len()..].starts_with(is_word);
        !(first && before || last && after)
    })
}

/// Which lines belong to an item under `#[cfg(test)]`.
fn test_lines(code: &[String]) -> Vec<bool> {
    let mut test = vec![false; code.len()];
    let mut i = 0;
    while i < code.len() {
        if !is_test_attribute(&code[i]) {
            i += 1;
            continue;
        }
        let indent: String = code[i].chars().take_while(|&c| c == ' ').collect();
        let begin = i;
        // Up to the end of a one-line item, or to a brace under its start.
        i += 1;
        while i < code.len() {
            let line = code[i].trim_end();
            let closes = line.starts_with(&format!("{indent}}}"));
            let outer = line.len() > indent.len() && !line[indent.len()..].starts_with([' ', '#']);
            let one_line = outer && line.ends_with([';', '}', ',']);
            i += 1;
            if closes || one_line {
                break;
            }
        }
        test[begin..i].fill(true);
    }
    test
}

fn is_test_attribute(code: &str) -> bool {
    let code = code.trim_start();
    code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(all(test")
}

/// The files, without `.rs` or `/mod.rs`, of the modules that are declared
/// under `#[cfg(test)]`.
fn test_modules(files: &[Source]) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for file in files {
        let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
        let folder = ["/mod", "/lib", "/main"]
            .iter()
            .find_map(|end| stem.strip_suffix(end))
            .unwrap_or(stem);
        for (code, _) in file.code.iter().zip(&file.test).filter(|(_, test)| **test) {
            let Some(declared) = code.trim().strip_suffix(';') else {
                continue;
            };
            let mut words = declared.split_whitespace().rev();
            if let (Some(name), Some("mod")) = (words.next(), words.next()) {
                modules.insert(format!("{folder}/{name}"));
                modules.insert(format!("{folder}/{name}/mod"));
            }
        }
    }
    modules
}

/// The text with comments, and what stands in strings and characters, as
/// spaces; line for line.
fn blanked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let at = |i: usize| chars.get(i).copied().unwrap_or('\n');
    let mut i = 0;
    // Puts blanks from `i` up to `end`, and keeps the line ends.
    let blank = |i: &mut usize, end: usize, out: &mut String| {
        while *i < end.min(chars.len()) {
            out.push(if chars[*i] == '\n' { '\n' } else { ' ' });
            *i += 1;
        }
    };
    while i < chars.len() {
        let word_before = i > 0 && is_word(at(i - 1));
        match (at(i), at(i + 1)) {
            ('/', '/') => {
                let end = (i..).find(|&j| at(j) == '\n').unwrap_or(chars.len());
                blank(&mut i, end, &mut out);
            }
            ('/', '*') => {
                let mut depth = 0;
                let mut end = i;
                loop {
                    match (at(end), at(end + 1)) {
                        ('/', '*') => (depth, end) = (depth + 1, end + 2),
                        ('*', '/') => (depth, end) = (depth - 1, end + 2),
                        _ => end += 1,
                    }
                    if depth == 0 || end >= chars.len() {
                        break;
                    }
                }
                blank(&mut i, end, &mut out);
            }
            ('r', '"' | '#') | ('b' | 'c', 'r') if !word_before => {
                let hashes_at = if at(i) == 'r' { i + 1 } else { i + 2 };
                let hashes = (hashes_at..).take_while(|&j| at(j) == '#').count();
                let quote = hashes_at + hashes;
                if at(quote) != '"' {
                    out.push(chars[i]);
                    i += 1;
                    continue;
                }
                let closes = |j: usize| at(j) == '"' && (1..=hashes).all(|k| at(j + k) == '#');
                let end = (quote + 1..chars.len()).find(|&j| closes(j));
                blank(&mut i, end.unwrap_or(chars.len()) + hashes + 1, &mut out);
            }
            ('"', _) => {
                let mut end = i + 1;
                while end < chars.len() && at(end) != '"' {
                    end += if at(end) == '\\' { 2 } else { 1 };
                }
                blank(&mut i, end + 1, &mut out);
            }
            // A character, and not a lifetime.
            ('\'', c) if c == '\\' || at(i + 2) == '\'' => {
                let from = if c == '\\' { i + 3 } else { i + 2 };
                let end = (from..chars.len()).find(|&j| at(j) == '\'');
                blank(&mut i, end.unwrap_or(chars.len()) + 1, &mut out);
            }
            (c, _) => {
                out.push(c);
                i += 1;
            }
        }
    }
    out
}

#[test]
fn files_of_test_modules_are_tests_and_their_neighbours_are_not() {
    let files = fakes(&[
        ("src/ring/mod.rs", "mod slots;\n#[cfg(test)]\nmod model;\n"),
        ("src/ring/model/mod.rs", "a();"),
        ("src/ring/model/deep.rs", "a();"),
        ("src/ring/models.rs", "a();"),
        ("src/ring/slots.rs", "a();"),
    ]);
    let tests: Vec<bool> = files.iter().map(Source::is_test).collect();
    assert_eq!(tests, [false, true, true, false, false]);
}
