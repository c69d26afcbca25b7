//! DESIGN.md section 2, kept by machine: which files there are, which way imports
//! point, which files may hold `unsafe`, and what must not be there at all.
//!
//! Reads the text of `src/`, with comments and strings blanked out and test
//! code marked. No macro is expanded and no name resolved: good enough for a
//! code base that `cargo fmt` has been over. Each check takes a tree of files,
//! so that the tests at the end can hand it a wrong one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A module of the library, and the modules that it may import.
const LAYERS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("sys", &["error"]),
    ("shard", &["error", "sys"]),
    ("recipe", &["error"]),
    ("picture", &["error", "recipe"]),
    ("ring", &["error", "sys"]),
    ("index", &["error", "sys", "shard"]),
    ("plan", &["error", "sys", "recipe"]),
    ("packing", &["error", "sys", "recipe", "picture", "plan"]),
    ("survey", &["error", "sys", "index", "picture", "packing"]),
    (
        "forecast",
        &[
            "error", "sys", "recipe", "picture", "plan", "packing", "ring", "index", "survey",
            "mix",
        ],
    ),
    ("pixels", &["error", "sys", "recipe"]),
    ("mix", &["error", "recipe", "plan"]),
    (
        "worker",
        &[
            "error", "sys", "recipe", "picture", "pixels", "forecast", "ring", "index", "plan",
            "packing",
        ],
    ),
    ("coordinator", &["error", "sys", "ring", "worker"]),
    ("device", &["error", "recipe", "packing", "pixels", "ring"]),
    (
        "batch",
        &["error", "recipe", "ring", "plan", "packing", "device"],
    ),
    (
        "loader",
        &[
            "error",
            "sys",
            "recipe",
            "picture",
            "ring",
            "index",
            "plan",
            "packing",
            "survey",
            "forecast",
            "worker",
            "coordinator",
            "device",
            "mix",
            "batch",
        ],
    ),
    // For `fuzz/` alone: hands on to what workers run.
    (
        "fuzz_support",
        &["error", "shard", "recipe", "picture", "plan", "worker"],
    ),
    (
        "cache",
        &[
            "error",
            "sys",
            "shard",
            "picture",
            "index",
            "packing",
            "survey",
            "worker",
            "coordinator",
            "loader",
        ],
    ),
    ("paddle", &["error", "recipe", "index", "plan", "loader"]),
    (
        "measure",
        &[
            "error", "sys", "recipe", "ring", "index", "plan", "worker", "batch", "loader",
        ],
    ),
];

/// The modules that a user of the library sees; the others are `pub(crate)`.
const PUBLIC: &[&str] = &[
    "batch",
    "cache",
    "device",
    "error",
    "forecast",
    "fuzz_support",
    "index",
    "loader",
    "measure",
    "paddle",
    "plan",
    "recipe",
    "survey",
];

/// The files that may, and do, hold `unsafe`, tests included.
const UNSAFE: &[&str] = &[
    "src/device/cuda/context.rs",
    "src/device/cuda/crop_stage.rs",
    "src/device/cuda/driver.rs",
    "src/device/cuda/gpu_failure_tests.rs",
    "src/device/cuda/gpu_tests.rs",
    "src/device/cuda/kernel.rs",
    "src/device/cuda/memory.rs",
    "src/device/cuda/pinned.rs",
    "src/device/cuda/rows.rs",
    "src/device/cuda/stage.rs",
    "src/device/cuda/standin_tests.rs",
    "src/device/without_cuda.rs",
    "src/picture/jpeg/decoder.rs",
    "src/picture/jpeg/encoder.rs",
    "src/ring/region.rs",
    "src/ring/slots.rs",
    "src/sys/cpu.rs",
    "src/sys/futex.rs",
    "src/sys/memory.rs",
    "src/sys/process.rs",
    "src/sys/sealed.rs",
    "src/sys/shared.rs",
    "src/sys/socket.rs",
    "src/worker/bare/maps.rs",
    "src/worker/input.rs",
    "src/worker/process.rs",
    "src/pixels/resample/avx2.rs",
    "src/pixels/resample/mod.rs",
    "src/pixels/resample/sse41.rs",
    "src/worker/sigbus.rs",
];

/// How far above an `unsafe` its SAFETY note may stand.
const NOTE_LINES: usize = 8;

/// Words that must not stand in code outside tests, where, and why.
const ABSENT: &[(&str, &[&str], &str)] = &[
    (
        "src/",
        &[".unwrap()", ".expect(", ".unwrap_err()", ".expect_err("],
        "nothing panics across the API: return an error",
    ),
    (
        LIBRARY,
        &["println!", "print!", "eprintln!", "eprint!", "dbg!"],
        "nothing prints from the library: use tracing",
    ),
    ("src/worker/", THREADS, "a worker is single-threaded"),
    (
        "src/coordinator/",
        THREADS,
        "the coordinator is single-threaded for life",
    ),
    ("src/worker/", &["cudarc"], "a worker has no CUDA"),
    (
        "src/coordinator/",
        &["cudarc"],
        "the coordinator has no CUDA",
    ),
];
const THREADS: &[&str] = &["rayon", "thread::spawn", "thread::scope", "thread::Builder"];
/// All of `src/` but the binary.
const LIBRARY: &str = "library";
const BINARY: &str = "src/bin/";

#[test]
fn imports_point_one_way() {
    none(imports(&tree()));
}

#[test]
fn the_map_has_every_file_once_and_every_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let design = fs::read_to_string(root.join("DESIGN.md")).unwrap();
    none(unmapped(&tree(), map(&design).unwrap()));
}

#[test]
fn only_the_public_modules_are_public() {
    none(public_modules(&tree()));
}

/// Who stands outside sees the public API only, because the compiler keeps the
/// rest from it; unless a file of the library is compiled in once more.
#[test]
fn the_binary_tests_and_examples_take_no_files_out_of_the_library() {
    let mut files = tree();
    for folder in ["tests", "benches", "examples"] {
        read_into(folder, &mut files);
    }
    none(borrowed_files(&files));
}

#[test]
fn unsafe_stands_in_the_listed_files_only_and_says_why() {
    none(unsafe_code(&tree(), UNSAFE));
}

#[test]
fn what_must_not_be_there_is_not() {
    none(absent(&tree()));
}

fn none(violations: Vec<String>) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

/// The files of the project's `src/`.
fn tree() -> Vec<Source> {
    let mut files = Vec::new();
    read_into("src", &mut files);
    assert!(files.len() > 50, "found {} files only", files.len());
    let tests = test_modules(&files);
    for file in &mut files {
        file.mark_if_under(&tests);
    }
    files
}

fn read_into(folder: &str, files: &mut Vec<Source>) {
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

// ---- the checks ----

fn imports(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        let module = file.module();
        let Some(from) = module.first() else {
            continue;
        };
        if file.path.starts_with(BINARY) {
            continue;
        }
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| name == from) else {
            wrong.push(format!("{}: `{from}` is not in LAYERS", file.path));
            continue;
        };
        for (line, to) in file.imports(module.len()) {
            let at = format!("{}:{line}", file.path);
            if to == *from || allowed.contains(&to.as_str()) {
                continue;
            }
            wrong.push(if LAYERS.iter().any(|(name, _)| *name == to) {
                format!("{at}: `{from}` must not import `{to}`")
            } else {
                format!("{at}: `crate::{to}` is no layer: name the module that it comes from")
            });
        }
    }
    wrong
}

/// Section 2 of DESIGN.md: its table and its imports.
fn map(design: &str) -> Option<&str> {
    let (_, map) = design.split_once("\n## 2. ")?;
    Some(map.split("\n## ").next().unwrap_or(map))
}

/// Files that the first column of the table does not name, or names twice; names of
/// no file; layers that the imports behind it do not name.
///
/// A name is a path under `src/`, in backticks, with braces as in a shell and
/// without `.rs`. One that ends in a slash is a folder of what is no code, or tests.
/// `a/mod.rs` goes with its folder, and files of tests need no name.
fn unmapped(files: &[Source], map: &str) -> Vec<String> {
    let rows = map.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let mut named: Vec<String> = cells.flat_map(ticked).flat_map(|t| expanded(&t)).collect();
    named.retain(|name| !name.ends_with('/'));
    named.sort();
    let name_of = |file: &Source| {
        let path = file.path.strip_prefix("src/").unwrap_or(&file.path);
        path.strip_suffix(".rs").unwrap_or(path).to_owned()
    };
    let mut wrong = Vec::new();
    for twice in named.windows(2).filter(|pair| pair[0] == pair[1]) {
        wrong.push(format!("DESIGN.md: the map names `{}` twice", twice[0]));
    }
    for name in &named {
        let is = |file: &Source| {
            let known = name_of(file);
            known == *name || known == format!("{name}/mod")
        };
        if !files.iter().any(is) {
            wrong.push(format!(
                "DESIGN.md: the map names `{name}`, which is no file"
            ));
        }
    }
    for file in files {
        let name = name_of(file);
        let is_root = name == "main" || name.ends_with("/main");
        let is_test = !file.test.is_empty() && file.test.iter().all(|test| *test);
        if is_root || is_test || name.ends_with("/mod") || named.contains(&name) {
            continue;
        }
        wrong.push(format!("DESIGN.md: no row of the map names `{name}`"));
    }
    let imports = map.split("```").nth(1).unwrap_or_default();
    for (layer, _) in LAYERS.iter().filter(|(layer, _)| !has_word(imports, layer)) {
        wrong.push(format!("DESIGN.md: the imports do not name `{layer}`"));
    }
    wrong
}

/// What stands between backticks.
fn ticked(text: &str) -> Vec<String> {
    let parts = text.split('`').skip(1).step_by(2);
    parts
        .map(|part| part.strip_suffix(".rs").unwrap_or(part).to_owned())
        .collect()
}

/// `a/{b,c}_d` as `a/b_d` and `a/c_d`.
fn expanded(name: &str) -> Vec<String> {
    let braces = name.split_once('{').zip(name.split_once('}'));
    let Some(((before, _), (within, behind))) = braces else {
        return vec![name.to_owned()];
    };
    let names = within[before.len() + 1..].split(',');
    names.map(|n| format!("{before}{n}{behind}")).collect()
}

fn public_modules(files: &[Source]) -> Vec<String> {
    let Some(lib) = files.iter().find(|f| f.path == "src/lib.rs") else {
        return vec!["src/lib.rs is missing".into()];
    };
    let mut wrong = Vec::new();
    let mut left: BTreeSet<&str> = PUBLIC.iter().copied().collect();
    for (line, code) in lib.shipped() {
        let Some(name) = code
            .strip_prefix("pub mod ")
            .and_then(|r| r.strip_suffix(';'))
        else {
            continue;
        };
        if !left.remove(name) {
            wrong.push(format!("src/lib.rs:{line}: `{name}` must not be public"));
        }
    }
    wrong.extend(
        left.iter()
            .map(|n| format!("src/lib.rs: `{n}` is in PUBLIC and is not public")),
    );
    wrong
}

fn borrowed_files(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        for (i, code) in file.code.iter().enumerate() {
            // What binaries of tests share is no file of the library.
            let of_tests = file.path.starts_with("tests/")
                && file.path.ends_with("/main.rs")
                && file.raw[i] == "#[path = \"../common/mod.rs\"]";
            if !of_tests && (code.contains("#[path") || code.contains("include!(")) {
                wrong.push(format!(
                    "{}:{}: takes a file out of another place",
                    file.path,
                    i + 1
                ));
            }
        }
    }
    wrong
}

fn unsafe_code(files: &[Source], listed: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut stale: BTreeSet<&str> = listed.iter().copied().collect();
    for file in files {
        for (i, code) in file.code.iter().enumerate() {
            if !has_word(code, "unsafe") {
                continue;
            }
            let at = format!("{}:{}", file.path, i + 1);
            stale.remove(file.path.as_str());
            if !listed.contains(&file.path.as_str()) {
                wrong.push(format!("{at}: this file may not hold `unsafe`"));
            }
            let above = &file.raw[i.saturating_sub(NOTE_LINES)..=i];
            let noted = above
                .iter()
                .any(|l| l.contains("SAFETY") || l.contains("# Safety"));
            if !file.test[i] && !noted {
                wrong.push(format!(
                    "{at}: no SAFETY note within {NOTE_LINES} lines above"
                ));
            }
        }
    }
    wrong.extend(
        stale
            .iter()
            .map(|f| format!("{f}: is listed and holds no `unsafe`")),
    );
    wrong
}

fn absent(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (place, words, why) in ABSENT {
        for file in files {
            let inside = match *place {
                LIBRARY => !file.path.starts_with(BINARY),
                place => file.path.starts_with(place),
            };
            if !inside {
                continue;
            }
            for (line, code) in file.shipped() {
                for word in words.iter().filter(|w| has_word(code, w)) {
                    wrong.push(format!("{}:{line}: `{word}`: {why}", file.path));
                }
            }
        }
    }
    wrong
}

// ---- the text of one file ----

struct Source {
    /// From the package's root, with slashes.
    path: String,
    raw: Vec<String>,
    /// The same lines with comments, strings and characters blanked out.
    code: Vec<String>,
    /// Which lines are test code.
    test: Vec<bool>,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
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
    fn module(&self) -> Vec<&str> {
        let path = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let mut names: Vec<&str> = path.split('/').collect();
        if matches!(names.last(), Some(&("mod" | "lib" | "main"))) {
            names.pop();
        }
        names
    }

    /// The lines that are not tests, numbered from 1.
    fn shipped(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.iter().zip(&self.test).enumerate();
        lines.filter_map(|(i, (code, test))| (!test).then_some((i + 1, code.as_str())))
    }

    /// Every first name after the crate's root, with its line: behind `crate::`,
    /// or behind as many `super::` as lead out of a module `depth` deep.
    fn imports(&self, depth: usize) -> Vec<(usize, String)> {
        let mut text = String::new();
        let mut lines = Vec::new();
        for (line, code) in self.shipped() {
            lines.push((text.len(), line));
            text.push_str(code);
            text.push('\n');
        }
        let line_of = |at: usize| lines[lines.partition_point(|&(start, _)| start <= at) - 1].1;
        let supers = "super::".repeat(depth);
        let mut found = Vec::new();
        for prefix in ["crate::", supers.as_str()] {
            for (at, _) in text.match_indices(prefix) {
                let whole = !text[..at].ends_with(|c: char| is_word(c) || c == ':' || c == '$');
                if whole {
                    let names = first_names(&text[at + prefix.len()..]);
                    found.extend(names.into_iter().map(|n| (line_of(at), n)));
                }
            }
        }
        found.sort();
        found
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

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True when `word` stands in `code` and is not the end or start of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    let first = word.chars().next().is_some_and(is_word);
    let last = word.chars().next_back().is_some_and(is_word);
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].ends_with(is_word);
        let after = code[at + word.len()..].starts_with(is_word);
        !(first && before || last && after)
    })
}

/// The names that a path goes on with: one, or those of a group in braces.
fn first_names(rest: &str) -> Vec<String> {
    let name = |s: &str| s.trim_start().chars().take_while(|&c| is_word(c)).collect();
    if !rest.starts_with('{') {
        return vec![name(rest)];
    }
    let mut names = Vec::new();
    let mut depth = 0;
    for (i, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(c, '{' | ',') {
            names.push(name(&rest[i + 1..]));
        }
    }
    // After a last comma there is none.
    names.retain(|n: &String| !n.is_empty());
    names
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

// ---- the checks can fail ----

fn fake(path: &str, text: &str) -> Vec<Source> {
    let mut files = vec![Source::new(path, text)];
    let tests = test_modules(&files);
    files[0].mark_if_under(&tests);
    files
}

#[test]
fn a_wrong_import_is_found_in_every_spelling() {
    for text in [
        "use crate::worker::job::Job;",
        "use crate::{error::Error, worker::job};",
        "use crate::{\n    error::Error,\n    sys::{clock, futex},\n    worker::job,\n};",
        "fn f() {\n    crate::worker::run();\n}",
        "use super::super::worker::job;",
        "pub(crate) use crate::worker as w;",
    ] {
        let wrong = imports(&fake("src/ring/slots.rs", text));
        assert_eq!(wrong.len(), 1, "{text}: {wrong:?}");
        assert!(wrong[0].contains("`ring` must not import `worker`"));
    }
    let wrong = imports(&fake("src/batch.rs", "\nuse super::loader::Epoch;"));
    assert_eq!(wrong, ["src/batch.rs:2: `batch` must not import `loader`"]);
}

#[test]
fn right_imports_comments_strings_and_tests_are_not_found() {
    for text in [
        "use crate::error::Result;\nuse crate::sys::futex;\nuse crate::ring::Ring;",
        "use super::words::Words;",
        "// use crate::worker::job;\n/* crate::worker */\n/// [`crate::worker`]",
        "const A: &str = \"crate::worker::job\";\nconst B: &str = r#\"\" crate::worker\"#;",
        "#[cfg(test)]\nmod tests {\n    use crate::worker::job;\n}",
        "#[cfg(test)]\nuse crate::worker::job;",
        "fn f<'a>(c: char) -> bool {\n    c == '\"' // crate::worker\n}",
        "macro_rules! m { () => { $crate::worker::job() } }",
    ] {
        let wrong = imports(&fake("src/ring/slots.rs", text));
        assert!(wrong.is_empty(), "{text}: {wrong:?}");
    }
}

#[test]
fn code_after_a_test_item_is_looked_at_again() {
    for item in [
        "#[cfg(test)]\npub(crate) mod encode {\n    fn f() {\n    }\n}",
        "#[cfg(test)]\nmod tests;",
        "#[cfg(test)]\n#[allow(dead_code)]\nfn f() {\n    g();\n}",
        "#[cfg(all(test, feature = \"codecs\"))]\nuse a::b;",
    ] {
        let text = format!("{item}\nuse crate::worker::job;");
        let wrong = imports(&fake("src/ring/slots.rs", &text));
        assert_eq!(wrong.len(), 1, "{item}: {wrong:?}");
    }
}

#[test]
fn what_the_map_lacks_or_invents_is_found() {
    let files = vec![
        Source::new("src/lib.rs", "pub mod ring;"),
        Source::new("src/ring/mod.rs", "mod a_side;\n#[cfg(test)]\nmod model;"),
        Source::new("src/ring/a_side.rs", "fn a() {}"),
        Source::new("src/ring/b_side.rs", "fn b() {}"),
        Source::new("src/ring/model.rs", "fn m() {}"),
    ];
    let tests = test_modules(&files);
    let check = |cell: &str| {
        let mut files: Vec<_> = files
            .iter()
            .map(|f| Source::new(&f.path, &f.raw.join("\n")))
            .collect();
        for file in &mut files {
            file.mark_if_under(&tests);
        }
        let layers: Vec<_> = LAYERS.iter().map(|(layer, _)| *layer).collect();
        let design = format!(
            "# x\n\n## 2. The map\n\n| files | what |\n|---|---|\n| `lib.rs` | code |\n\
             | {cell} | `ring/c` |\n\n```\n{}\n```\n\n## 3. Memory\n| `zzz` |\n",
            layers.join(" <- ")
        );
        unmapped(&files, map(&design).unwrap())
    };
    assert_eq!(check("`ring/{a,b}_side`, `ring/model/` (tests)"), [""; 0]);
    assert_eq!(check("`ring/{a_side,b_side}.rs`"), [""; 0]);
    for (cell, want) in [
        ("`ring/a_side`", "no row of the map names `ring/b_side`"),
        (
            "ring/a_side, `ring/b_side`",
            "no row of the map names `ring/a_side`",
        ),
        (
            "`ring/{a,b,c}_side`",
            "names `ring/c_side`, which is no file",
        ),
        (
            "`ring/{a,b}_side`, `ring/a_side`",
            "names `ring/a_side` twice",
        ),
    ] {
        let wrong = check(cell);
        assert_eq!(wrong.len(), 1, "{cell}: {wrong:?}");
        assert!(wrong[0].contains(want), "{cell}: {wrong:?}");
    }
    let wrong = unmapped(&[], "```\nerror <- sys\n```");
    assert_eq!(wrong.len(), LAYERS.len() - 2, "{wrong:?}");
}

#[test]
fn unknown_modules_and_names_of_the_root_are_found() {
    let wrong = imports(&fake("src/ring/a.rs", "use crate::Result;"));
    assert!(wrong[0].contains("name the module"), "{wrong:?}");
    let wrong = imports(&fake("src/newcomer/mod.rs", ""));
    assert!(wrong[0].contains("not in LAYERS"), "{wrong:?}");
}

#[test]
fn the_table_has_no_cycle() {
    let mut below: Vec<&str> = Vec::new();
    let mut left = LAYERS.to_vec();
    while !left.is_empty() {
        let (free, rest): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|(_, uses)| uses.iter().all(|u| below.contains(u)));
        assert!(
            !free.is_empty(),
            "these import each other or nobody: {rest:?}"
        );
        below.extend(free.iter().map(|(name, _)| name));
        left = rest;
    }
}

#[test]
fn a_module_made_public_is_found() {
    let all: String = PUBLIC.iter().map(|n| format!("pub mod {n};\n")).collect();
    assert!(public_modules(&fake("src/lib.rs", &all)).is_empty());
    let wrong = public_modules(&fake("src/lib.rs", &format!("{all}pub mod ring;\n")));
    assert!(wrong[0].contains("`ring` must not be public"), "{wrong:?}");
    let wrong = public_modules(&fake("src/lib.rs", "pub(crate) mod ring;"));
    assert_eq!(wrong.len(), PUBLIC.len(), "{wrong:?}");
}

#[test]
fn a_borrowed_file_is_found() {
    let text = "#[path = \"../src/ring/slots.rs\"]\nmod slots;\ninclude!(\"../src/batch.rs\");";
    assert_eq!(borrowed_files(&fake("benches/a.rs", text)).len(), 2);
    let common = "#[path = \"../common/mod.rs\"]\nmod common;";
    assert!(borrowed_files(&fake("tests/a/main.rs", common)).is_empty());
    for (path, text) in [
        ("benches/main.rs", common),
        (
            "tests/a/main.rs",
            "#[path = \"../../src/batch.rs\"]\nmod batch;",
        ),
        ("tests/a/b.rs", common),
    ] {
        assert_eq!(borrowed_files(&fake(path, text)).len(), 1, "{path}: {text}");
    }
    let text = "const A: &str = include_str!(\"a.txt\");";
    assert!(borrowed_files(&fake("benches/a.rs", text)).is_empty());
}

#[test]
fn unsafe_without_a_place_or_a_note_is_found() {
    let path = "src/sys/a.rs";
    let noted = "// SAFETY: it is mapped.\nlet a = unsafe { *p };";
    assert!(unsafe_code(&fake(path, noted), &[path]).is_empty());
    assert_eq!(unsafe_code(&fake(path, noted), &[]).len(), 1);

    for bare in [
        "let a = unsafe { *p };",
        "unsafe impl Send for A {}",
        "pub unsafe fn f() {}",
        "unsafe extern \"C\" {}",
    ] {
        let wrong = unsafe_code(&fake(path, bare), &[path]);
        assert_eq!(wrong.len(), 1, "{bare}: {wrong:?}");
    }
    let far = format!("// SAFETY: far away\n{}unsafe {{ f() }}", "\n".repeat(8));
    assert_eq!(unsafe_code(&fake(path, &far), &[path]).len(), 1);

    let test = "#[cfg(test)]\nmod tests {\n    fn f() {\n        unsafe { g() }\n    }\n}";
    assert!(unsafe_code(&fake(path, test), &[path]).is_empty());
    assert_eq!(unsafe_code(&fake(path, test), &[]).len(), 1);

    let stale = unsafe_code(&fake(path, "#![deny(unsafe_code)] // unsafe"), &[path]);
    assert_eq!(stale, ["src/sys/a.rs: is listed and holds no `unsafe`"]);
}

#[test]
fn what_must_be_absent_is_found_where_it_must_be() {
    let count = |path: &str, text: &str| absent(&fake(path, text)).len();
    assert_eq!(count("src/ring/a.rs", "a.unwrap();"), 1);
    assert_eq!(
        count("src/bin/featherload/a.rs", "a\n    .expect(\"b\")"),
        1
    );
    assert_eq!(
        count("src/ring/a.rs", "a.unwrap_or(1).unwrap_or_default();"),
        0
    );
    assert_eq!(
        count("src/ring/a.rs", "#[cfg(test)]\nmod t {\n    a.unwrap();\n}"),
        0
    );
    assert_eq!(count("src/loader/a.rs", "eprintln!(\"a\");"), 1);
    assert_eq!(count("src/loader/a.rs", "my_println!(\"a\");"), 0);
    assert_eq!(count("src/bin/featherload/a.rs", "println!(\"a\");"), 0);
    assert_eq!(count("src/worker/a.rs", "std::thread::spawn(f);"), 1);
    assert_eq!(count("src/coordinator/a.rs", "use rayon::prelude::*;"), 1);
    assert_eq!(count("src/coordinator/a.rs", "use cudarc::driver;"), 1);
    assert_eq!(count("src/index/a.rs", "thread::spawn(f);"), 0);
}

#[test]
fn files_of_test_modules_are_tests_and_their_neighbours_are_not() {
    let mut files = vec![
        Source::new("src/ring/mod.rs", "mod slots;\n#[cfg(test)]\nmod model;\n"),
        Source::new("src/ring/model/mod.rs", "a.unwrap();"),
        Source::new("src/ring/model/deep.rs", "a.unwrap();"),
        Source::new("src/ring/models.rs", "a.unwrap();"),
        Source::new("src/ring/slots.rs", "a.unwrap();"),
    ];
    let tests = test_modules(&files);
    for file in &mut files {
        file.mark_if_under(&tests);
    }
    let wrong = absent(&files);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].starts_with("src/ring/models.rs") && wrong[1].contains("slots.rs"));
}
