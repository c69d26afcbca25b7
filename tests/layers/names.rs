//! Names of types: one definition for each, and two words or a term of the glossary.

use std::collections::{BTreeMap, BTreeSet};

use crate::BINARY;
use crate::source::{Source, fakes, is_word};

/// The folder of operations. A type there that has the name of its file is an operation's.
const OPERATIONS: &str = "src/recipe/ops/";
const KEYWORDS: [&str; 5] = ["struct ", "enum ", "trait ", "type ", "union "];

/// A type that other files can name.
struct Defined<'a> {
    name: &'a str,
    file: &'a Source,
    line: usize,
}

/// The types of the library that are defined with `pub`, at the top level of a file.
fn defined(files: &[Source]) -> Vec<Defined<'_>> {
    let library = files.iter().filter(|file| !file.path.starts_with(BINARY));
    let lines = library.flat_map(|file| file.shipped().map(move |(line, code)| (file, line, code)));
    let types = lines.filter_map(|(file, line, code)| {
        let name = type_name(code)?;
        Some(Defined { name, file, line })
    });
    types.collect()
}

/// The type that a line defines with `pub`, `pub(crate)` or the like.
fn type_name(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(") ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let name = KEYWORDS.iter().find_map(|word| rest.strip_prefix(word))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

/// Type names that several files define, but for `allowed`: a name, and the reason.
pub fn repeated(files: &[Source], allowed: &[(&str, &str)]) -> Vec<String> {
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Defined { name, file, .. } in defined(files) {
        places.entry(name).or_default().insert(&file.path);
    }
    places.retain(|_, files| files.len() > 1);
    let mut wrong = Vec::new();
    for (name, reason) in allowed {
        if places.remove(name).is_none() {
            wrong.push(format!("`{name}` is allowed in several files, and is not"));
        }
        if reason.is_empty() {
            wrong.push(format!(
                "`{name}` is allowed in several files without a reason"
            ));
        }
    }
    wrong.extend(places.iter().map(|(name, files)| {
        let files: Vec<&str> = files.iter().copied().collect();
        format!("type `{name}` is defined in {}", files.join(", "))
    }));
    wrong
}

/// Types of one word that other files use and that are no terms of the glossary.
pub fn single_words(files: &[Source], glossary: &str) -> Vec<String> {
    let terms: BTreeSet<&str> = glossary.split('`').skip(1).step_by(2).collect();
    let users = users(files);
    let is_used = |of: &Defined<'_>| {
        let users = users.get(of.name);
        users.is_some_and(|files| files.iter().any(|file| *file != of.file.path))
    };
    let is_operation = |of: &Defined<'_>| {
        let name = of.file.path.strip_prefix(OPERATIONS);
        name.is_some_and(|name| name.replace('_', "") == format!("{}.rs", of.name.to_lowercase()))
    };
    let single = defined(files).into_iter().filter(|of| is_single(of.name));
    single
        .filter(|of| !terms.contains(of.name) && !is_operation(of) && is_used(of))
        .map(|of| {
            format!(
                "{}:{}: type `{}` has one word and is no term of docs/design/glossary.md",
                of.file.path, of.line, of.name
            )
        })
        .collect()
}

/// The files of the library in which a name is a word of shipped code.
fn users(files: &[Source]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.path.starts_with(BINARY)) {
        let words = file
            .shipped()
            .flat_map(|(_, code)| code.split(|c| !is_word(c)));
        for word in words {
            users.entry(word).or_default().insert(&file.path);
        }
    }
    users
}

/// No capital stands after a small letter or a digit.
fn is_single(name: &str) -> bool {
    let letters: Vec<char> = name.chars().collect();
    !letters
        .windows(2)
        .any(|pair| !pair[0].is_uppercase() && pair[1].is_uppercase())
}

#[test]
fn a_type_of_two_files_is_found() {
    let files = [
        ("src/a.rs", "pub(crate) struct Part;\nenum Own {}"),
        ("src/b.rs", "pub(super) enum Part {}\nenum Own {}"),
        ("src/bin/c.rs", "pub struct Part;"),
    ];
    let files = fakes(&files);
    assert_eq!(
        repeated(&files, &[]),
        ["type `Part` is defined in src/a.rs, src/b.rs"]
    );
    assert!(repeated(&files, &[("Part", "reason")]).is_empty());
    assert_eq!(repeated(&files, &[("Part", "")]).len(), 1);
    let stale = repeated(&files, &[("Part", "reason"), ("Other", "reason")]);
    assert_eq!(stale, ["`Other` is allowed in several files, and is not"]);
    let tests = [
        ("src/a.rs", "pub struct Part;"),
        (
            "src/b.rs",
            "#[cfg(test)]\nmod tests {\n    pub struct Part;\n}",
        ),
    ];
    assert!(repeated(&fakes(&tests), &[]).is_empty());
}

#[test]
fn a_type_of_one_word_that_other_files_use_is_found() {
    let of = |text: &str, other: &str, glossary: &str| {
        single_words(&fakes(&[("src/a.rs", text), ("src/b.rs", other)]), glossary).len()
    };
    assert_eq!(of("pub struct Part;", "fn f(p: Part) {}", ""), 1);
    assert_eq!(of("pub struct Part;", "fn f(p: Part) {}", "`Part`"), 0);
    assert_eq!(of("pub struct Part;", "// Part", ""), 0);
    assert_eq!(of("struct Part;", "fn f(p: Part) {}", ""), 0);
    assert_eq!(of("pub unsafe trait JpegPart {}", "JpegPart", ""), 0);
    assert_eq!(of("pub type Hash64 = u64;", "Hash64", ""), 1);
    let operation = ("src/recipe/ops/rotate90.rs", "pub struct Rotate90;");
    let user = ("src/b.rs", "Rotate90");
    assert!(single_words(&fakes(&[operation, user]), "").is_empty());
}
