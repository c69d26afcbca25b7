//! What stands in the code: words that must not, `unsafe` only where it may, modules
//! that are public, files out of another place.

use std::collections::BTreeSet;

use crate::source::{Source, fake, has_word};
use crate::{ABSENT, BINARY, LIBRARY, NOTE_LINES, PUBLIC};

pub fn public_modules(files: &[Source]) -> Vec<String> {
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

pub fn borrowed_files(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        for (i, code) in file.code.iter().enumerate() {
            // What binaries of tests share is no file of the library.
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let of_tests = match folder {
                "tests" => file.raw[i].starts_with("#[path = \"common/"),
                _ => {
                    file.path.starts_with("tests/")
                        && file.path.ends_with("/main.rs")
                        && file.raw[i] == "#[path = \"../common/mod.rs\"]"
                }
            };
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

pub fn unsafe_code(files: &[Source], listed: &[&str]) -> Vec<String> {
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

pub fn absent(files: &[Source]) -> Vec<String> {
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

/// Files of the command line that write to stdout or stderr by themselves, and may not.
pub fn writers(files: &[Source], listed: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(BINARY)) {
        if listed.contains(&file.path.as_str()) {
            continue;
        }
        for (line, code) in file.shipped() {
            if ["stdout()", "stderr()"].iter().any(|w| has_word(code, w)) {
                wrong.push(format!(
                    "{}:{line}: print by `output`, which escapes foreign text",
                    file.path
                ));
            }
        }
    }
    wrong
}

#[test]
fn a_file_that_prints_by_itself_is_found() {
    let path = "src/bin/featherload/a.rs";
    let text = "writeln!(std::io::stdout(), \"a\");";
    assert_eq!(writers(&fake(path, text), &[]).len(), 1);
    assert!(writers(&fake(path, text), &[path]).is_empty());
    assert!(writers(&fake(path, "command.stdout(Stdio::piped())"), &[]).is_empty());
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
    let beside = "#[path = \"common/helper.rs\"]\nmod helper;";
    assert!(borrowed_files(&fake("tests/a.rs", beside)).is_empty());
    assert_eq!(borrowed_files(&fake("src/a.rs", beside)).len(), 1);
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
    assert_eq!(count("src/bin/featherload/a.rs", "println!(\"a\");"), 1);
    assert_eq!(count("src/pool/worker/a.rs", "std::thread::spawn(f);"), 1);
    assert_eq!(
        count("src/pool/coordinator/a.rs", "use rayon::prelude::*;"),
        1
    );
    assert_eq!(count("src/pool/coordinator/a.rs", "use cudarc::driver;"), 1);
    assert_eq!(
        count("python/rust/a.rs", "use featherload::internals::Job;"),
        1
    );
    assert_eq!(count("src/index/a.rs", "thread::spawn(f);"), 0);
}
