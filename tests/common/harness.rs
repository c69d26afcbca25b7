//! As much of the usual harness as cargo and nextest need, for an executable that has one
//! thread and a `main` of its own.

use std::process::ExitCode;

/// Runs the tests that the command line asks for. A panic ends the process with 101.
pub fn run(tests: &[(&str, fn())]) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|a| a == flag);
    if has("--ignored") {
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = args.iter().filter(|a| !a.starts_with('-')).collect();
    for (name, test) in tests {
        let is = |f: &&String| match has("--exact") {
            true => *name == f.as_str(),
            false => name.contains(f.as_str()),
        };
        if has("--list") {
            println!("{name}: test");
        } else if filters.is_empty() || filters.iter().any(is) {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}
