//! The map of rooms in ARCHITECTURE.md, the imports in docs/design/rooms.md, and the pages of
//! folders.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, fakes, has_word};
use crate::{BINARY, Layers};

/// Finds differences between LAYERS and the pages: rooms that the table "Rooms" of ARCHITECTURE.md
/// lacks, invents, or lists in another order; rows that are not complete; a list of imports in
/// docs/design/rooms.md that is not the code's.
///
/// A row is `| room | what it holds | process | what it must not contain |`. The imports are the
/// first block of code of their page, a line per room: `room <- room, room`.
pub fn map(architecture: &str, imports: &str, layers: Layers<'_>) -> Vec<String> {
    let Some((_, map)) = architecture.split_once("\n## Rooms\n") else {
        return vec!["ARCHITECTURE.md has no section \"Rooms\"".into()];
    };
    let map = map.split("\n## ").next().unwrap_or(map);
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows: Vec<Vec<&str>> = rows
        .map(|row| row.split('|').map(str::trim).collect())
        .collect();
    let mut wrong = Vec::new();
    let named: Vec<&str> = rows
        .iter()
        .map(|cells| cells[0].trim_end_matches('`'))
        .collect();
    let rooms: Vec<&str> = layers
        .iter()
        .map(|(room, _)| *room)
        .chain(["bin"])
        .collect();
    if named != rooms {
        wrong.push(format!(
            "ARCHITECTURE.md: the table has the rooms\n  {}\nand the code has\n  {}",
            named.join(", "),
            rooms.join(", ")
        ));
    }
    for cells in rows {
        if cells.len() != 5 || cells[..4].iter().any(|cell| cell.is_empty()) {
            wrong.push(format!(
                "ARCHITECTURE.md: the row of `{} lacks what it holds, its process, or what it \
                 must not contain",
                cells[0]
            ));
        }
    }
    let listed = imports.split("```").nth(1).unwrap_or_default().trim();
    let imports: Vec<String> = layers
        .iter()
        .map(|(room, to)| format!("{room} <- {}", to.join(", ")).trim().to_owned())
        .collect();
    let listed: Vec<&str> = listed.lines().map(str::trim).skip(1).collect();
    if listed != imports {
        wrong.push(format!(
            "docs/design/rooms.md: the imports must be\n{}",
            imports.join("\n")
        ));
    }
    wrong
}

/// Files that the page of their folder does not name in backticks; folders without a
/// page; lines such as "- `name`: ..." that name no file.
///
/// The page of a folder is what `//!` says in its `mod.rs` or `main.rs`, or in the file
/// beside it that has its name. Files of tests need no name.
pub fn pages(files: &[Source]) -> Vec<String> {
    let mut folders: BTreeMap<&str, BTreeMap<&str, bool>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.name().contains('/')) {
        let mut name = file.name();
        while let Some((folder, child)) = name.rsplit_once('/') {
            let children = folders.entry(folder).or_default();
            *children.entry(child).or_default() |= !file.is_test();
            name = folder;
        }
    }
    let mut wrong = Vec::new();
    for (folder, children) in folders {
        // `bin/` holds a folder alone.
        if folder == "bin" || children.values().all(|shipped| !shipped) {
            continue;
        }
        let is_page = |file: &&Source| {
            let name = file.name();
            name.strip_prefix(folder)
                .is_some_and(|rest| ["", "/mod", "/main"].contains(&rest))
        };
        let Some(page) = files.iter().find(is_page) else {
            wrong.push(format!("src/{folder}: no file is its page"));
            continue;
        };
        let text = page.page();
        let named: BTreeSet<&str> = ticked(&text).collect();
        for (child, shipped) in &children {
            let is_root = ["mod", "main"].contains(child);
            if *shipped && !is_root && !named.contains(child) {
                wrong.push(format!("{}: its page does not name `{child}`", page.path));
            }
        }
        let heads = text.lines().filter_map(|line| line.strip_prefix(" - "));
        for name in heads
            .filter_map(|line| line.split_once(": "))
            .flat_map(|(head, _)| ticked(head))
        {
            // A path leads elsewhere.
            if !name.contains('/') && !children.contains_key(name) {
                wrong.push(format!(
                    "{}: its page names `{name}`, which is no file",
                    page.path
                ));
            }
        }
    }
    wrong
}

/// Modules that comments name in backticks, as `room::file`, and that are not there. Behind the
/// last module may stand what its file defines or hands on: `room::file::function`.
pub fn references(files: &[Source]) -> Vec<String> {
    let of_library = || files.iter().filter(|file| !file.path.starts_with(BINARY));
    let modules: BTreeMap<Vec<String>, &Source> =
        of_library().map(|file| (file.module(), file)).collect();
    let is_path = |name: &&str| {
        name.contains("::") && name.chars().all(|c| c.is_lowercase() || "_:".contains(c))
    };
    let is_wrong = |name: &&str| {
        let names: Vec<String> = name.split("::").map(str::to_owned).collect();
        // Another crate's, or a module beside the file.
        let is_room = modules.contains_key(&names[..1]);
        let known = (0..=names.len())
            .rev()
            .find(|&n| modules.contains_key(&names[..n]));
        let rest = known.and_then(|n| Some((modules[&names[..n]], names.get(n)?)));
        is_room && rest.is_some_and(|(file, word)| !file.code.iter().any(|l| has_word(l, word)))
    };
    let mut wrong = Vec::new();
    for file in of_library() {
        for (number, line) in file.raw.iter().enumerate() {
            let comment = line.trim_start().starts_with("//");
            let found = ticked(line)
                .filter(|_| comment)
                .filter(is_path)
                .filter(is_wrong);
            wrong.extend(
                found.map(|name| format!("{}:{}: `{name}` is no module", file.path, number + 1)),
            );
        }
    }
    wrong
}

/// What stands between backticks.
pub fn ticked(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split('`').skip(1).step_by(2);
    names.map(|name| name.trim_end_matches('/'))
}

#[test]
fn what_the_map_lacks_or_invents_is_found() {
    const ROOMS: Layers<'_> = &[("error", &[]), ("ring", &["error"])];
    let check = |rows: &[&str], imports: &str| {
        let architecture = format!(
            "# x\n\n## Rooms\n\n| room | a | b | c |\n|---|---|---|---|\n{}\n\n\
             ## Where to start\n| `zzz` |\n",
            rows.join("\n")
        );
        let imports = format!("# Rooms\n\n```text\n{imports}\n```\n");
        map(&architecture, &imports, ROOMS)
    };
    let rows = [
        "| `error` | a | b | c |",
        "| `ring` | a | b | c |",
        "| `bin` | a | b | c |",
    ];
    let imports = "error <-\nring <- error";
    assert_eq!(check(&rows, imports), [""; 0]);
    assert_eq!(check(&rows[..2], imports).len(), 1);
    assert_eq!(check(&[rows[1], rows[0], rows[2]], imports).len(), 1);
    assert_eq!(
        check(&[rows[0], "| `ring` | a |  | c |", rows[2]], imports).len(),
        1
    );
    assert_eq!(
        check(&[rows[0], "| `ring` | a | b |", rows[2]], imports).len(),
        1
    );
    assert_eq!(check(&rows, "error <-\nring <-").len(), 1);
    assert_eq!(check(&rows, "error <-").len(), 1);
    assert_eq!(
        map("# x", "", ROOMS),
        ["ARCHITECTURE.md has no section \"Rooms\""]
    );
}

#[test]
fn comments_that_name_no_module_are_found() {
    let check = |comment: &str| {
        references(&fakes(&[
            ("src/ring/mod.rs", "mod slots;"),
            ("src/ring/slots.rs", "pub fn claim() {}"),
            ("src/pool.rs", comment),
        ]))
    };
    for right in [
        "// `ring::slots`, `ring::slots::claim`, `std::fs`, `Ring::new`",
        "let text = \"`ring::rows`\";",
    ] {
        assert_eq!(check(right), [""; 0]);
    }
    assert_eq!(
        check("//! `ring::rows`"),
        ["src/pool.rs:1: `ring::rows` is no module"]
    );
    assert_eq!(check("/// `ring::slots::free`").len(), 1);
}

#[test]
fn what_a_page_lacks_or_invents_is_found() {
    let check = |page: &str, beside: &str| {
        pages(&fakes(&[
            (
                "src/ring/mod.rs",
                &format!("{page}\n#[cfg(test)]\nmod model;"),
            ),
            ("src/ring/slots.rs", beside),
            ("src/ring/slots/a.rs", ""),
            ("src/ring/model/mod.rs", "fn m() {}"),
        ]))
    };
    assert_eq!(
        check("//! - `slots`: all.\n//! - [`model`]: no.", "//! `a`"),
        [""; 0]
    );
    assert_eq!(
        check("//! All is in `slots/`.", "//! - `a`: a `b`"),
        [""; 0]
    );
    for (page, beside, want) in [
        (
            "//! slots",
            "//! `a`",
            "src/ring/mod.rs: its page does not name `slots`",
        ),
        (
            "//! `slots`",
            "//! b",
            "src/ring/slots.rs: its page does not name `a`",
        ),
        (
            "//! - `slots`, `b`: c",
            "//! `a`",
            "src/ring/mod.rs: its page names `b`, which is no file",
        ),
    ] {
        assert_eq!(check(page, beside), [want]);
    }
    let alone = fakes(&[("src/ring/slots/a.rs", "fn a() {}")]);
    assert_eq!(pages(&alone).len(), 2);
}
