//! What is explored: small rings, all orders, all deaths.

use super::explorer::{Report, explore};
use super::faults::Fault;
use super::processes::{Config, Epoch};

/// Two workers, two slots, two rows; nothing goes wrong.
fn config(epochs: &[(&[u32], Option<usize>)]) -> Config {
    Config {
        workers: 2,
        slots: 2,
        rows: 2,
        epochs: epochs
            .iter()
            .map(|(tickets, break_after)| Epoch {
                tickets: tickets.to_vec(),
                break_after: *break_after,
            })
            .collect(),
        hold: 0,
        worker_deaths: 0,
        coordinator_dies: false,
        consumer_dies: false,
        spurious_wakes: 0,
        quarantine: false,
        give_up_at: None,
        fault: Fault::None,
        row_rules: true,
    }
}

/// Explores, and fails on a violation or when too little was explored.
#[track_caller]
fn holds(name: &str, config: Config, at_least: usize) {
    let report = explore(name, config);
    if let Some(v) = &report.violation {
        panic!("{name}: {}\n{}", v.what, v.path.join("\n"));
    }
    assert!(report.states >= at_least, "{name} explored too little");
    assert!(report.ends > 0, "{name} never came to an end");
}

#[test]
fn a0() {
    holds(
        "plain 1 slot",
        Config {
            slots: 1,
            ..config(&[(&[2], None), (&[2], None)])
        },
        1,
    );
}
#[test]
fn a1() {
    holds("plain 2 slots", config(&[(&[2], None), (&[2], None)]), 1);
}
#[test]
fn a2() {
    holds(
        "1 slot 1 death",
        Config {
            slots: 1,
            worker_deaths: 1,
            ..config(&[(&[2], None), (&[2], None)])
        },
        1,
    );
}
#[test]
fn a3() {
    holds(
        "1 slot 2 death",
        Config {
            slots: 1,
            worker_deaths: 2,
            ..config(&[(&[2], None), (&[2], None)])
        },
        1,
    );
}
#[test]
fn a4() {
    holds(
        "2 slot 1 death",
        Config {
            worker_deaths: 1,
            ..config(&[(&[2], None), (&[2], None)])
        },
        1,
    );
}
#[test]
fn a5() {
    holds("break", config(&[(&[2, 2], Some(1)), (&[2], None)]), 1);
}
