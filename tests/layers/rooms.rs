//! Which rooms import which, and circles of files inside a room.

use std::collections::BTreeSet;

use crate::graph::{Graph, Import, room_of_module};
use crate::source::{Source, fake, fakes};
use crate::{BINARY, Layers};

/// Imports that the table does not allow.
pub fn imports(graph: &Graph<'_>, layers: Layers<'_>) -> Vec<String> {
    let mut wrong = BTreeSet::new();
    for import in &graph.imports {
        let Some(from) = graph.room(import.from) else {
            continue;
        };
        let at = format!("{}:{}", graph.file(import.from).path, import.line);
        let known = |room: &String| layers.iter().find(|(name, _)| name == room);
        let Some(named) = room_of_module(&import.path).filter(|named| known(named).is_some())
        else {
            wrong.insert(format!(
                "{at}: `crate::{}` names no room: name the module that it comes from",
                import.path.join("::")
            ));
            continue;
        };
        let to = graph.room_of(import).unwrap_or(named);
        let allowed = known(&from).map_or(&[][..], |(_, allowed)| allowed);
        if to != from && !allowed.contains(&to.as_str()) {
            wrong.insert(format!(
                "{at}: `{from}` must not import `{to}` ({})",
                import.path.join("::")
            ));
        }
    }
    wrong.into_iter().collect()
}

/// Rooms of the code that the table lacks, and of the table that no code has.
pub fn unknown_rooms(files: &[Source], layers: Layers<'_>) -> Vec<String> {
    let library = files.iter().filter(|file| !file.path.starts_with(BINARY));
    let rooms: BTreeSet<String> = library
        .filter_map(|file| room_of_module(&file.module()))
        .collect();
    let listed: BTreeSet<String> = layers.iter().map(|(name, _)| (*name).to_owned()).collect();
    let lacking = rooms.difference(&listed);
    let lacking = lacking.map(|room| format!("`{room}` is not in LAYERS"));
    let stale = listed.difference(&rooms);
    lacking
        .chain(stale.map(|room| format!("LAYERS lists `{room}`, which is no room")))
        .collect()
}

/// Rooms that the table allows, and that are not imported.
pub fn unused(graph: &Graph<'_>, layers: Layers<'_>) -> Vec<String> {
    let used: BTreeSet<(Option<String>, Option<String>)> = graph
        .imports
        .iter()
        .map(|import| (graph.room(import.from), graph.room_of(import)))
        .collect();
    let mut wrong = Vec::new();
    for (room, allowed) in layers {
        for to in *allowed {
            if !used.contains(&(Some((*room).to_owned()), Some((*to).to_owned()))) {
                wrong.push(format!(
                    "LAYERS allows `{room}` to import `{to}`: it does not"
                ));
            }
        }
    }
    wrong
}

/// Imports of the table that are no room above it.
pub fn upwards(layers: Layers<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (i, (room, allowed)) in layers.iter().enumerate() {
        let above = &layers[..i];
        for to in (allowed.iter()).filter(|to| !above.iter().any(|(name, _)| name == *to)) {
            wrong.push(format!("`{room}` lists `{to}`, which is no room above it"));
        }
    }
    wrong
}

/// Circles of files inside a room.
pub fn circles(graph: &Graph<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for circle in graph.circles() {
        let room = circle.first().and_then(|&file| graph.room(file));
        let room = room.unwrap_or_default();
        let inside = |import: &&Import| {
            circle.contains(&import.from) && import.to.is_some_and(|to| circle.contains(&to))
        };
        let ways: BTreeSet<String> = graph
            .imports
            .iter()
            .filter(inside)
            .map(|import| {
                let to = import.to.map_or("", |to| &graph.file(to).path);
                let (from, path) = (&graph.file(import.from).path, import.path.join("::"));
                format!("  {from}:{} imports {to} ({path})", import.line)
            })
            .collect();
        wrong.push(format!(
            "`{room}`: {} files import each other:\n{}",
            circle.len(),
            ways.into_iter().collect::<Vec<_>>().join("\n")
        ));
    }
    wrong
}

const FAKE: Layers<'_> = &[
    ("error", &[]),
    ("sys", &["error"]),
    ("ring", &["error", "sys"]),
    ("worker", &["ring"]),
];

fn wrong_imports(files: &[Source]) -> Vec<String> {
    imports(&Graph::new(files), FAKE)
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
        let wrong = wrong_imports(&fake("src/ring/slots.rs", text));
        assert_eq!(wrong.len(), 1, "{text}: {wrong:?}");
        assert!(wrong[0].contains("`ring` must not import `worker`"));
    }
    let wrong = wrong_imports(&fake("src/ring.rs", "\nuse super::worker::Epoch;"));
    assert!(
        wrong[0].starts_with("src/ring.rs:2: `ring` must not"),
        "{wrong:?}"
    );
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
        let wrong = wrong_imports(&fake("src/ring/slots.rs", text));
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
        let wrong = wrong_imports(&fake("src/ring/slots.rs", &text));
        assert_eq!(wrong.len(), 1, "{item}: {wrong:?}");
    }
}

/// A name that another room hands on is imported from where it is defined.
#[test]
fn a_re_export_does_not_hide_a_room() {
    let files = fakes(&[
        (
            "src/worker/mod.rs",
            "mod job;\npub(crate) use job::Job as Work;",
        ),
        ("src/worker/job.rs", "pub(crate) struct Job;"),
        ("src/sys/mod.rs", "pub(crate) use crate::worker::Work;"),
        ("src/ring/slots.rs", "use crate::sys::{self, Work};"),
    ]);
    let wrong = wrong_imports(&files);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(
        wrong[0].contains("`ring` must not import `worker` (sys::Work)"),
        "{wrong:?}"
    );
    assert!(
        wrong[1].contains("`sys` must not import `worker`"),
        "{wrong:?}"
    );
}

#[test]
fn unknown_rooms_and_names_of_the_root_are_found() {
    let files = fakes(&[
        ("src/lib.rs", "pub use error::Result;"),
        ("src/error.rs", "pub struct Result;"),
        ("src/ring/a.rs", "use crate::Result;"),
    ]);
    assert!(wrong_imports(&files)[0].contains("name the module"));
    let wrong = unknown_rooms(&fake("src/newcomer/mod.rs", ""), &FAKE[..1]);
    assert_eq!(
        wrong,
        [
            "`newcomer` is not in LAYERS",
            "LAYERS lists `error`, which is no room"
        ]
    );
}

#[test]
fn an_allowed_import_that_nobody_has_is_found() {
    let mut files = vec![
        ("src/sys.rs", "use crate::error::Error;"),
        ("src/ring/a.rs", "use crate::sys::futex;"),
        ("src/worker.rs", "use crate::ring::Ring;"),
    ];
    let check = |files: &[(&str, &str)]| unused(&Graph::new(&fakes(files)), FAKE);
    assert_eq!(
        check(&files),
        ["LAYERS allows `ring` to import `error`: it does not"]
    );
    // Nor does a test count.
    files.push(("src/ring/b.rs", "#[cfg(test)]\nuse crate::error::Error;"));
    assert_eq!(check(&files).len(), 1);
    files.push(("src/ring/c.rs", "fn f() -> crate::error::Error {}"));
    assert_eq!(check(&files), [""; 0]);
}

#[test]
fn a_table_that_points_upwards_is_found() {
    assert_eq!(upwards(FAKE), [""; 0]);
    let table: Layers<'_> = &[("error", &["sys"]), ("sys", &["error", "sys"])];
    assert_eq!(upwards(table).len(), 2);
}

#[test]
fn a_circle_of_files_is_found_through_re_exports() {
    let check = |files: &[(&str, &str)]| circles(&Graph::new(&fakes(files)));
    let through_mod = [
        (
            "src/ring/mod.rs",
            "mod slots;\nmod words;\npub(crate) use words::Words;",
        ),
        ("src/ring/slots.rs", "use super::Words;"),
        ("src/ring/words.rs", "fn f() -> super::slots::Slots {}"),
    ];
    let wrong = check(&through_mod);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(
        wrong[0].starts_with("`ring`: 2 files import each other"),
        "{wrong:?}"
    );
    assert!(
        wrong[0].contains("src/ring/slots.rs:1 imports src/ring/words.rs"),
        "{wrong:?}"
    );

    // What stands in `mod.rs` itself makes a circle with a file that `mod.rs` uses.
    let in_mod = [
        (
            "src/ring/mod.rs",
            "mod slots;\npub use slots::Slots;\npub struct Words;",
        ),
        ("src/ring/slots.rs", "use super::Words;"),
    ];
    assert_eq!(check(&in_mod).len(), 1);

    // One way, and two rooms, are none.
    let right = [
        (
            "src/ring/mod.rs",
            "mod slots;\nmod words;\npub(crate) use words::Words;",
        ),
        ("src/ring/slots.rs", "use super::Words;\nuse crate::worker;"),
        (
            "src/ring/words.rs",
            "#[cfg(test)]\nuse super::slots::Slots;",
        ),
        ("src/worker.rs", "use crate::ring::slots;"),
    ];
    assert_eq!(check(&right), [""; 0]);
}
