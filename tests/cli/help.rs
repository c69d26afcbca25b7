//! Help, completions and man pages.

use std::fs;

use crate::common::command::{code, command, stderr, stdout};

fn help_text(args: &[&str]) -> String {
    let out = command(args).env("COLUMNS", "80").output().unwrap();
    assert_eq!(code(&out), 0, "{args:?}: {}", stderr(&out));
    stdout(&out)
}

#[test]
fn the_first_page_is_short_and_all_options_are_a_flag_away() {
    for args in [["bench", "--help"], ["bench", "-h"]] {
        let page = help_text(&args);
        assert!(page.lines().count() <= 50, "{page}");
        assert!(page.lines().all(|line| line.len() <= 80), "{page}");
        for part in [
            "--num-workers",
            "--help-all",
            "Examples:",
            "\nRecipe:\n",
            "\nOutput:\n",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("--ceiling"), "{page}");
    }
    let all = help_text(&["bench", "--help-all"]);
    let groups = [
        "Source",
        "Recipe",
        "Order",
        "Processes and limits",
        "Device",
        "Measuring",
        "Output",
    ];
    let at = groups.map(|group| all.find(&format!("\n{group}:\n")).unwrap());
    assert!(at.is_sorted(), "{all}");
    assert!(
        all.contains("--ceiling") && !all.contains("\nOptions:\n"),
        "{all}"
    );
    // What has few options shows them all.
    assert!(help_text(&["doctor", "--help"]).contains("\nOptions:\n"));
    assert!(help_text(&["--help"]).contains("width x height"));
}

#[test]
fn completions_and_man_pages_have_every_command() {
    let script = help_text(&["completions", "bash"]);
    assert!(script.contains("--memory-limit") && script.contains("cache,build)"));
    let dir = tempfile::tempdir().unwrap();
    let man = dir.path().join("man");
    assert_eq!(help_text(&["man", man.to_str().unwrap()]), "");
    for page in [
        "featherload",
        "featherload-bench",
        "featherload-cache-build",
    ] {
        assert!(man.join(format!("{page}.1")).is_file(), "{page}");
    }
    let bench = fs::read_to_string(man.join("featherload-bench.1")).unwrap();
    // With the text of options that the first page leaves out.
    assert!(bench.contains("Measure the CPU decoder alone"), "{bench}");
}
