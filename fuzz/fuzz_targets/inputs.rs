//! The targets of `tests/inputs/targets/`, one executable: `FUZZ_TARGET` names the one
//! that runs.
//!
//! A panic inside a decoder crate is caught by the library and is a fault of the
//! sample. Any other panic is a finding.

#![no_main]

#[path = "../../tests/inputs/targets/mod.rs"]
mod targets;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{Location, PanicHookInfo};
use std::sync::Mutex;

use libfuzzer_sys::fuzz_target;

use targets::{TARGETS, Target};

thread_local! {
    static TARGET: RefCell<Target> = RefCell::new(chosen());
}

fn name() -> String {
    std::env::var("FUZZ_TARGET").unwrap_or_default()
}

fn chosen() -> Target {
    let name = name();
    let Some((_, make)) = TARGETS.iter().find(|(n, _)| *n == name) else {
        let names: Vec<&str> = TARGETS.iter().map(|(n, _)| *n).collect();
        eprintln!("FUZZ_TARGET is '{name}', none of {}", names.join(", "));
        std::process::exit(2);
    };
    make()
}

fuzz_target!(
    init: {
        if name() == "decode" {
            let abort = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
                // A dependency's files have absolute paths, out of the registry.
                match info.location() {
                    Some(at) if at.file().contains("/registry/src/") => say_once(at),
                    _ => abort(info),
                }
            }));
        }
    },
    |data: &[u8]| TARGET.with_borrow_mut(|run| run(data))
);

/// A panic that the library catches: worth a report to that crate.
fn say_once(at: &Location<'_>) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let place = at.to_string();
    if let Ok(mut said) = SAID.lock()
        && said.insert(place)
    {
        eprintln!("caught: a panic at {at}");
    }
}
