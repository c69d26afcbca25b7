//! `cache build`: the output and the exit codes of the command.

use std::process::Command;

use super::scene::{all_members, command, files, foreign_shard, sizes, text};
use crate::common::{FEATHERLOAD, data};

#[test]
fn the_command_says_that_other_fields_are_not_copied() {
    let dir = tempfile::tempdir().unwrap();
    let tar = dir.path().join("train-000.tar");
    foreign_shard(&tar);
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    // (source, cache, whether it has fields to lose)
    for (src, dst, expected) in [(&tar, &first, true), (&first, &second, false)] {
        let mut build = command(src, dst);
        build.arg("--json");
        if expected {
            build.args(["--index-dir", "none"]);
        }
        let output = build.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let message = String::from_utf8(output.stderr).unwrap();
        let line = message.lines().position(|l| l.contains("other fields"));
        assert_eq!(line.is_some(), expected, "{message}");
        if let Some(at) = line {
            let words = "left out: seg.png in 6 samples, txt in 6 samples:";
            assert!(
                message.lines().nth(at).unwrap().starts_with(words),
                "{message}"
            );
            let writes = |l: &str| l.contains(" will be written");
            assert!(message.lines().position(writes).unwrap() > at, "{message}");
        }
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let fields = match expected {
            true => serde_json::json!({ "seg.png": 6, "txt": 6 }),
            false => serde_json::json!({}),
        };
        assert_eq!(json["report"]["other_fields"], fields);
        assert_eq!(all_members(dst).len(), 12);
    }
}

#[test]
fn the_command_says_what_changed_and_exits_with_2() {
    let src = data(1, 4);
    let dst = tempfile::tempdir().unwrap();
    let output = command(src.path(), dst.path()).output().unwrap();
    assert!(output.status.success() && text(&output).contains("4 samples in"));
    // Printed before the build starts, also without a terminal.
    let whole: u64 = files(dst.path()).values().map(|b| b.len() as u64).sum();
    let message = String::from_utf8(output.stderr).unwrap();
    let line = message.lines().find(|l| l.contains(" will be written"));
    let report = sizes(line.unwrap().rsplit(": ").next().unwrap())[0];
    assert!(
        report >= whole && report < whole + 20 * 4096,
        "{message} {whole}"
    );
    assert!(line.unwrap().contains("for 4 of 4 samples"), "{message}");
    let output = command(src.path(), dst.path())
        .args(["--shuffle", "7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output).contains("shuffle was none and is now 7"),
        "{}",
        text(&output)
    );
    for wrong in [
        ["--encode", "jpg"],
        ["--resize", "256"],
        ["--shard-size", "0"],
        // The unit is missing.
        ["--shard-size", "256"],
    ] {
        let output = Command::new(FEATHERLOAD)
            .args(["cache", "build", "a", "b"])
            .args(wrong)
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{wrong:?}: {}",
            text(&output)
        );
    }
}
