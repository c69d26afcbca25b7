//! Which file of a crate imports which: every path of the code, followed through re-exports to
//! the file that defines its name.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, is_word};
use crate::{EXECUTABLE, EXTENSION, WINGS};

/// A path of the code that leads to another file of the library.
pub struct Import {
    /// The file, by its number.
    pub from: usize,
    pub line: usize,
    /// As written, but from the crate's root.
    pub path: Vec<String>,
    /// The file that defines what is named; none when no file does.
    pub to: Option<usize>,
}

/// The imports of a crate's shipped code.
pub struct Graph<'a> {
    files: &'a [Source],
    /// The folder of the crate's root.
    root: &'a str,
    pub imports: Vec<Import>,
}

/// The folder of the library's root.
const LIBRARY_ROOT: &str = "src/";

/// A name in a module: its module's file, and the name.
type Name = (usize, String);

impl<'a> Graph<'a> {
    /// Of the library.
    pub fn new(files: &'a [Source]) -> Self {
        Self::of_crate(files, LIBRARY_ROOT)
    }

    /// Of the crate whose root lies in `root`.
    pub fn of_crate(files: &'a [Source], root: &'a str) -> Self {
        let shipped = |file: &Source| crate_root(&file.path) == root && !file.is_test();
        let numbered = || files.iter().enumerate().filter(|(_, file)| shipped(file));
        let modules: Modules = numbered().map(|(i, f)| (f.module_below(root), i)).collect();
        let mut paths = Vec::new();
        let mut names = BTreeMap::new();
        for (from, file) in numbered() {
            let module = file.module_below(root);
            let text = file.shipped_text();
            let mut rest = text.code.clone();
            for (at, end) in use_statements(&text.code) {
                let line = text.line_of(at);
                for (path, name) in leaves(&text.code[at..end]) {
                    if let Some(path) = absolute(&module, &path, &modules) {
                        names.insert((from, name), path.clone());
                        paths.push((from, line, path));
                    }
                }
                rest.replace_range(at..end, &" ".repeat(end - at));
            }
            for (at, path) in written_out(&rest) {
                if let Some(path) = absolute(&module, &path, &modules) {
                    paths.push((from, text.line_of(at), path));
                }
            }
        }
        let resolved = paths.into_iter().map(|(from, line, path)| Import {
            from,
            line,
            to: resolve(&path, &modules, &names).filter(|&to| {
                // The library's root defines nothing.
                root != LIBRARY_ROOT || !files[to].module().is_empty()
            }),
            path,
        });
        let imports = resolved.filter(|import| import.to != Some(import.from));
        Self {
            files,
            root,
            imports: imports.collect(),
        }
    }

    pub fn file(&self, number: usize) -> &'a Source {
        &self.files[number]
    }

    /// The room that a file lies in; none for the library's root and that of a wing. Another
    /// crate is one room.
    pub fn room(&self, number: usize) -> Option<String> {
        match self.root == LIBRARY_ROOT {
            true => room_of_module(&self.file(number).module()),
            false => Some(self.root.trim_end_matches('/').to_owned()),
        }
    }

    /// The room that an import leads to: that of the file, or else as written.
    pub fn room_of(&self, import: &Import) -> Option<String> {
        match import.to {
            Some(file) => self.room(file),
            None => room_of_module(&import.path),
        }
    }

    /// Sets of files of one room that import each other, directly or not.
    pub fn circles(&self) -> Vec<BTreeSet<usize>> {
        let mut next: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for import in &self.imports {
            if let Some(to) = import.to
                && self.room(to).is_some()
                && self.room(to) == self.room(import.from)
            {
                next.entry(import.from).or_default().insert(to);
            }
        }
        let reached: BTreeMap<usize, BTreeSet<usize>> = next
            .keys()
            .map(|&file| (file, reached(file, &next)))
            .collect();
        let circle = |&file: &usize| -> BTreeSet<usize> {
            let there = reached[&file].iter().copied();
            there
                .filter(|other| reached.get(other).is_some_and(|back| back.contains(&file)))
                .collect()
        };
        let circles: BTreeSet<_> = reached.keys().map(circle).collect();
        circles.into_iter().filter(|c| !c.is_empty()).collect()
    }
}

/// The room of a module of the library: its first name, or its first two in a wing.
pub fn room_of_module(module: &[String]) -> Option<String> {
    match module {
        [wing, room, ..] if WINGS.contains(&wing.as_str()) => Some(format!("{wing}/{room}")),
        [room, ..] if !WINGS.contains(&room.as_str()) => Some(room.clone()),
        _ => None,
    }
}

/// The folder of the root of the crate that a file belongs to.
fn crate_root(path: &str) -> &'static str {
    let others = [EXECUTABLE, EXTENSION];
    let other = others.into_iter().find(|root| path.starts_with(root));
    other.unwrap_or(LIBRARY_ROOT)
}

/// The files behind a file, itself only if there is a way back.
fn reached(file: usize, next: &BTreeMap<usize, BTreeSet<usize>>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut left = vec![file];
    while let Some(file) = left.pop() {
        let behind = next.get(&file).into_iter().flatten();
        left.extend(behind.filter(|&&to| found.insert(to)));
    }
    found
}

type Modules = BTreeMap<Vec<String>, usize>;

/// Where the `use` statements stand, from behind the word to the semicolon.
fn use_statements(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, word) in code.match_indices("use ") {
        let before = code[..at].trim_end();
        let starts = !code[..at].ends_with(is_word)
            && (before.is_empty() || before.ends_with([';', '{', '}', ']', ')']) || {
                before.ends_with("pub")
            });
        if let Some(len) = code[at..].find(';').filter(|_| starts) {
            found.push((at + word.len(), at + len));
        }
    }
    found
}

/// The paths of a `use` tree, each with the name that it is known by afterwards.
fn leaves(tree: &str) -> Vec<(Vec<String>, String)> {
    fn walk(before: &[String], tree: &str, found: &mut Vec<(Vec<String>, String)>) {
        for part in split_at_commas(tree) {
            let (path, group) = match part.split_once('{') {
                Some((path, group)) => (path, group.rsplit_once('}').map(|(group, _)| group)),
                None => (part, None),
            };
            let (path, alias) = match path.split_once(" as ") {
                Some((path, alias)) => (path, Some(alias.trim())),
                None => (path, None),
            };
            let mut names = before.to_vec();
            let segments = path.split("::").map(str::trim).filter(|s| !s.is_empty());
            names.extend(segments.map(str::to_owned));
            if let Some(group) = group {
                walk(&names, group, found);
                continue;
            }
            if names.len() > 1 && names.last().is_some_and(|last| last == "self") {
                names.pop();
            }
            if let Some(last) = names.last() {
                let name = alias.unwrap_or(last).to_owned();
                found.push((names, name));
            }
        }
    }
    let mut found = Vec::new();
    walk(&[], tree, &mut found);
    found
}

/// The parts of a list, groups in braces left whole.
fn split_at_commas(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

/// Paths of at least two names outside of `use` statements, with their places.
fn written_out(code: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let len = code[at..]
            .find(|c| !is_word(c) && c != ':')
            .unwrap_or(code.len() - at);
        let word = &code[at..at + len];
        // Who may see a name imports nothing.
        let whole = !code[..at].ends_with(['$', '.', '\'']) && !code[..at].ends_with("(in ");
        if whole && !word.starts_with(':') && word.contains("::") {
            let names = word.split("::").take_while(|name| !name.is_empty());
            // `a: b::c` is one word when there is no space; none is so after `cargo fmt`.
            found.push((at, names.map(|n| n.trim_matches(':').to_owned()).collect()));
        }
        at += len;
        at += code[at..].chars().next().map_or(0, char::len_utf8);
    }
    found
}

/// The path from the crate's root; none when it leads out of the crate.
fn absolute(module: &[String], path: &[String], modules: &Modules) -> Option<Vec<String>> {
    let first = path.first()?;
    let (base, rest) = match first.as_str() {
        "crate" => (&[][..], &path[1..]),
        "self" => (module, &path[1..]),
        "super" => {
            let up = path.iter().take_while(|name| *name == "super").count();
            (&module[..module.len().checked_sub(up)?], &path[up..])
        }
        _ => {
            let child: Vec<String> = module.iter().chain([first]).cloned().collect();
            modules.get(&child)?;
            (module, path)
        }
    };
    let path: Vec<String> = base.iter().chain(rest).cloned().collect();
    (!path.is_empty()).then_some(path)
}

/// The file that defines what a path names.
fn resolve(
    path: &[String],
    modules: &Modules,
    names: &BTreeMap<Name, Vec<String>>,
) -> Option<usize> {
    let mut path = path.to_vec();
    // More re-exports than this behind each other would be a circle of them.
    for _ in 0..8 {
        let split = (0..=path.len())
            .rev()
            .find(|&n| modules.contains_key(&path[..n]))?;
        let module = modules[&path[..split]];
        let Some(name) = path.get(split) else {
            return Some(module);
        };
        match names.get(&(module, name.clone())) {
            Some(target) if *target != path => {
                path = target.iter().chain(&path[split + 1..]).cloned().collect();
            }
            _ => return Some(module),
        }
    }
    None
}
