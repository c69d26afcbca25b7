//! Other namespaces: of processes, whose numbers /proc may not show, and of mounts.

use std::process::{Command, Output};

use crate::common::command::object;
use crate::common::scene::Written;
use crate::common::{FEATHERLOAD, data};

/// What the shell does in new namespaces of these kinds (`unshare`). None where the system
/// gives tests none.
pub fn unshared(kinds: &str, script: &str, arguments: &[&str]) -> Option<Output> {
    let run = |script: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args([kinds, "--map-root-user", "sh", "-ec", script, "sh"]);
        command.args(arguments).output()
    };
    match run("true", &[]) {
        Ok(tried) if tried.status.success() => run(script, arguments).ok(),
        tried => {
            println!("NOT CHECKED: this system gives tests no namespaces: {tried:?}");
            None
        }
    }
}

#[test]
fn processes_are_measured_where_proc_shows_other_numbers() {
    let dir = data(1, 16);
    let script = "\"$1\" bench \"$2\" --num-workers 2 --batch-size 4 --json";
    let arguments = [FEATHERLOAD, dir.path().to_str().unwrap()];
    let Some(out) = unshared("-Upf", script, &arguments) else {
        return;
    };
    let report = object(&out);
    assert!(report["processes_mib"].as_f64().unwrap() > 1.0, "{report}");
    assert!(
        report["cpu_s_per_1k_images"].as_f64().unwrap() > 0.0,
        "{report}"
    );
}

/// Its user number is another one there, so its list of the store lies in another folder.
#[test]
fn a_run_in_a_user_namespace_warns_that_its_store_is_not_shared() {
    let scene = Written::new();
    let _first = scene.rays(0).build().unwrap();
    let run = |kinds: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(kinds).arg(FEATHERLOAD).arg("rays");
        command
            .arg(scene.path())
            .args(["--steps", "2", "--num-workers", "0"]);
        command.output().unwrap()
    };
    for (kinds, kind) in [
        (&["-U"][..], "user namespace"),
        (&["-U", "-p", "-f", "--mount-proc"][..], "PID namespace"),
    ] {
        let out = run(kinds);
        let message = String::from_utf8_lossy(&out.stderr);
        if message.contains("unshare failed") {
            println!("NOT CHECKED: this system gives tests no namespaces: {message}");
            return;
        }
        assert!(out.status.success(), "{message}");
        let reason = "decoded images are not shared with";
        assert!(
            message.contains(reason) && message.contains(kind),
            "{kinds:?}: {message}"
        );
    }
}
