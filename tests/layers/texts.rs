//! ARCHITECTURE.md and the pages of `docs/design/`: how long they are, which files and functions
//! they name, how many terms the glossary has.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::map::ticked;

/// A page of Markdown.
pub struct Page {
    /// From the repository's root.
    pub path: String,
    pub text: String,
}

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const DESIGN: &str = "docs/design/";
pub const GLOSSARY: &str = "docs/design/glossary.md";

/// Most lines of ARCHITECTURE.md: a stranger reads it in ten minutes.
const MOST_LINES_OF_ARCHITECTURE: usize = 250;
/// Most lines of a design page: one subject each.
const MOST_LINES: usize = 400;
/// Most terms of the glossary: more are not learned.
const MOST_TERMS: usize = 60;

/// Folders whose files pages name.
const FOLDERS: [&str; 12] = [
    ".ci",
    "bench_data",
    "benches",
    "docs",
    "examples",
    "fuzz",
    "kernels",
    "model",
    "python",
    "scripts",
    "src",
    "tests",
];

/// Endings of files. A name in backticks with one of them is a file's, even without a folder.
const ENDINGS: [&str; 4] = [".rs", ".py", ".cu", ".cuh"];

/// ARCHITECTURE.md and all design pages.
pub fn read() -> Vec<Page> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![ARCHITECTURE.to_owned()];
    paths.extend(names_in(root, DESIGN.trim_end_matches('/')));
    paths.retain(|path| path.ends_with(".md"));
    let page = |path: String| Page {
        text: fs::read_to_string(root.join(&path)).unwrap(),
        path,
    };
    paths.into_iter().map(page).collect()
}

/// The text of one page; empty if it is absent.
pub fn find<'a>(pages: &'a [Page], path: &str) -> &'a str {
    let page = pages.iter().find(|page| page.path == path);
    page.map_or("", |page| &page.text)
}

/// The paths of all files that pages may name.
pub fn repository() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    FOLDERS
        .iter()
        .flat_map(|folder| names_in(root, folder))
        .collect()
}

fn names_in(root: &Path, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // A folder that is absent has no files: each path that leads there is an error.
        let Ok(entries) = fs::read_dir(root.join(&folder)) else {
            continue;
        };
        for entry in entries {
            let entry = entry.unwrap();
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{folder}/{name}");
            match entry.file_type().unwrap().is_dir() {
                true if name == "target" => {}
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// Pages with more lines than they may have.
pub fn lengths(pages: &[Page]) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages {
        let most = match page.path == ARCHITECTURE {
            true => MOST_LINES_OF_ARCHITECTURE,
            false => MOST_LINES,
        };
        let lines = page.text.lines().count();
        if lines > most {
            wrong.push(format!("{} has {lines} lines: at most {most}", page.path));
        }
    }
    wrong
}

/// Design pages that ARCHITECTURE.md does not link.
pub fn index(pages: &[Page]) -> Vec<String> {
    let architecture = find(pages, ARCHITECTURE);
    pages
        .iter()
        .filter(|page| page.path != ARCHITECTURE)
        .filter(|page| !architecture.contains(&format!("]({})", page.path)))
        .map(|page| format!("{ARCHITECTURE} does not link {}", page.path))
        .collect()
}

/// Terms of the glossary: too many, or one twice. A row of a table is a term.
pub fn terms(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| "));
    let terms: Vec<&str> = rows
        .filter_map(|row| Some(row.split_once(" |")?.0))
        .filter(|term| *term != "term")
        .collect();
    let mut wrong = Vec::new();
    if terms.is_empty() {
        wrong.push(format!("{GLOSSARY} has no terms"));
    }
    if terms.len() > MOST_TERMS {
        wrong.push(format!(
            "{GLOSSARY} has {} terms: at most {MOST_TERMS}",
            terms.len()
        ));
    }
    let mut seen = BTreeSet::new();
    for term in terms.iter().filter(|term| !seen.insert(**term)) {
        wrong.push(format!("{GLOSSARY} has the term \"{term}\" twice"));
    }
    wrong
}

/// Names in backticks that look like a file or folder of the repository, and are absent. A name is
/// a path from the root, from `src/` or from `tests/`; `*` stands for any part of it. A name
/// without a folder is any file's.
pub fn paths(pages: &[Page], files: &[String]) -> Vec<String> {
    let rooms: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.strip_prefix("src/")?.split_once('/'))
        .map(|(room, _)| room)
        .collect();
    let is_path = |name: &&str| {
        let plain = |c: char| c.is_alphanumeric() || "_-./*".contains(c);
        let ends = ENDINGS.iter().any(|ending| name.ends_with(ending));
        let first = name.split_once('/').map(|(first, _)| first);
        let begins = first.is_some_and(|first| FOLDERS.contains(&first) || rooms.contains(first));
        name.chars().all(plain) && (ends || begins)
    };
    let is_there = |name: &str| {
        let (head, tail) = name.split_once('*').unwrap_or((name, ""));
        files.iter().any(|file| {
            let rest = file.strip_prefix("src/").or(file.strip_prefix("tests/"));
            let base = file.rsplit('/').next().filter(|_| !name.contains('/'));
            let mut names = rest.into_iter().chain(base).chain([file.as_str()]);
            names.any(|file| match name.contains('*') {
                true => file.starts_with(head) && file.ends_with(tail),
                false => {
                    let rest = file.strip_prefix(head);
                    rest.is_some_and(|rest| ["", ".rs"].contains(&rest) || rest.starts_with('/'))
                }
            })
        })
    };
    let mut wrong = Vec::new();
    for page in pages {
        for name in ticked(&page.text).filter(is_path) {
            if !is_there(name) {
                wrong.push(format!("{} names `{name}`, which is no file", page.path));
            }
        }
    }
    wrong
}

/// Names followed by the file that defines them, as in "`Pool::start` (`pool/consumer.rs`)", which
/// that file does not define. `text_of` returns the text of a path of the repository.
pub fn definitions(
    pages: &[Page],
    files: &[String],
    text_of: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages {
        let spans: Vec<&str> = page.text.split('`').collect();
        for window in spans.windows(3).skip(1).step_by(2) {
            let [name, between, path] = window else {
                continue;
            };
            let is_name = name
                .chars()
                .all(|c| c.is_alphanumeric() || "_:.".contains(c));
            let is_file = ENDINGS.iter().any(|ending| path.ends_with(ending));
            let follows = between.trim_start() == "(" && between.len() > 1;
            if !is_name || !is_file || !follows || name.contains('/') {
                continue;
            }
            let ending = format!("/{path}");
            // A path that no file has is reported by `paths`.
            let Some(file) = files
                .iter()
                .find(|file| file == path || file.ends_with(&ending))
            else {
                continue;
            };
            let text = text_of(file);
            let last = name.rsplit([':', '.']).next().unwrap_or(name);
            let kinds = [
                "fn", "def", "class", "struct", "enum", "trait", "type", "const",
            ];
            let is_defined = |kind: &&str| {
                let head = format!("{kind} {last}");
                text.match_indices(&head).any(|(at, _)| {
                    let next = text[at + head.len()..].chars().next();
                    next.is_some_and(|c| !c.is_alphanumeric() && c != '_')
                })
            };
            let is_field = || text.contains(&format!(" {last}: "));
            if !kinds.iter().any(is_defined) && !is_field() {
                wrong.push(format!("{} names `{name}`, which {file} lacks", page.path));
            }
        }
    }
    wrong
}

/// The text of a file of the repository.
pub fn text_of(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn page(path: &str, text: &str) -> Page {
    Page {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn pages_that_are_too_long_are_found() {
    let lines = |n| "a\n".repeat(n);
    let check = |path, n| lengths(&[page(path, &lines(n))]);
    assert_eq!(check(ARCHITECTURE, MOST_LINES_OF_ARCHITECTURE), [""; 0]);
    assert_eq!(check(ARCHITECTURE, MOST_LINES_OF_ARCHITECTURE + 1).len(), 1);
    assert_eq!(check("docs/design/a.md", MOST_LINES), [""; 0]);
    assert_eq!(
        check("docs/design/a.md", MOST_LINES + 1),
        ["docs/design/a.md has 401 lines: at most 400"]
    );
}

#[test]
fn pages_that_the_index_lacks_are_found() {
    let pages = [
        page(ARCHITECTURE, "[a](docs/design/a.md), `docs/design/b.md`"),
        page("docs/design/a.md", ""),
        page("docs/design/b.md", ""),
    ];
    assert_eq!(
        index(&pages),
        ["ARCHITECTURE.md does not link docs/design/b.md"]
    );
}

#[test]
fn too_many_terms_and_equal_ones_are_found() {
    let glossary = |n: usize| {
        let rows: String = (0..n).map(|n| format!("| a{n} | b |\n")).collect();
        format!("## A\n\n| term | meaning |\n|---|---|\n{rows}")
    };
    assert_eq!(terms(&glossary(MOST_TERMS)), [""; 0]);
    assert_eq!(terms(&glossary(MOST_TERMS + 1)).len(), 1);
    assert_eq!(terms("# none").len(), 1);
    let twice = glossary(2) + "\n| term | meaning |\n|---|---|\n| a1 | b |\n";
    assert_eq!(
        terms(&twice),
        ["docs/design/glossary.md has the term \"a1\" twice"]
    );
}

#[test]
fn paths_that_lead_nowhere_are_found() {
    let files = [
        "src/pool/ring/worker_side.rs",
        "tests/cli/main.rs",
        "python/src/featherload/_loader.py",
        "kernels/rays.cu",
        "bench_data/runs/2026-11-20/a.json",
    ]
    .map(str::to_owned);
    let check = |text: &str| paths(&[page("a.md", text)], &files);
    for right in [
        "`pool/ring/worker_side.rs`, `src/pool/ring/worker_side.rs`, `pool/ring/*_side.rs`",
        "`worker_side.rs`, `_loader.py`, `pool/ring`, `pool/ring/worker_side`, `pool/ring/`",
        "`cli/main.rs`, `tests/cli`, `kernels/rays.cu`, `bench_data/runs/2026-11-20`",
        "`a/b`, `/proc/self/task`, `s3://BUCKET/a.rs`, `K/N`, pool/none.rs",
    ] {
        assert_eq!(check(right), [""; 0], "{right}");
    }
    for wrong in [
        "`ring/worker_side.rs`",
        "`ring/*_side.rs`",
        "`pool/rows`",
        "`rows.rs`",
        "`_rays.py`",
        "`kernels/views.cu`",
        "`bench_data/runs/2026-11-21`",
        "`tests/rust`",
    ] {
        assert_eq!(check(wrong).len(), 1, "{wrong}");
    }
}

#[test]
fn names_that_their_file_lacks_are_found() {
    let files = ["src/pool/consumer.rs", "python/src/featherload/_epoch.py"].map(str::to_owned);
    let text_of = |path: &str| match path {
        "src/pool/consumer.rs" => "pub struct Pool {}\nfn start(&self) {}".to_owned(),
        _ => "class Epoch:\n    def __next__(self):".to_owned(),
    };
    let check = |text: &str| definitions(&[page("a.md", text)], &files, text_of);
    for right in [
        "`Pool::start` (`pool/consumer.rs`), `Pool` (`src/pool/consumer.rs`)",
        "`Epoch.__next__`\n(`python/src/featherload/_epoch.py`)",
        "`none`, `pool/consumer.rs`; `none` (`pool/none.rs`); `a b` (`pool/consumer.rs`)",
    ] {
        assert_eq!(check(right), [""; 0], "{right}");
    }
    for wrong in [
        "`Pool::star` (`pool/consumer.rs`)",
        "`Pool::started` (`pool/consumer.rs`)",
        "a `b` c `Epoch.next`\n(`python/src/featherload/_epoch.py`)",
    ] {
        assert_eq!(check(wrong).len(), 1, "{wrong}");
    }
}
