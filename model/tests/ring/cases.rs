//! The explored cases: small rings, all orders, all deaths.

use crate::explorer::explore;
use crate::faults::Fault;
use crate::plan::{Config, Epoch};

/// Two workers, two slots, two rows, and no failures.
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
        tries: 0,
        bad: 0,
        give_up_at: None,
        prefers: false,
        fault: Fault::None,
        row_rules: true,
        merge: true,
    }
}

/// Explores. Fails on a violation, or if too few states were explored.
#[track_caller]
fn holds(name: &str, config: Config, at_least: usize) {
    let report = explore(name, config);
    if let Some(v) = &report.violation {
        panic!("{name}: {}\n{}", v.what, v.path.join("\n"));
    }
    assert!(report.states >= at_least, "{name} explored too little");
    assert!(report.ends > 0, "{name} never came to an end");
}

/// One slot, so that every ticket uses the remains of the previous one.
fn one_slot(epochs: &[(&[u32], Option<usize>)]) -> Config {
    Config {
        slots: 1,
        ..config(epochs)
    }
}

#[test]
fn two_epochs_in_two_slots() {
    let c = config(&[(&[2], None), (&[2], None)]);
    holds("two slots", c, 2_000_000);
}

#[test]
fn a_short_batch_and_a_death_in_two_slots() {
    let c = config(&[(&[1], None), (&[2], None)]);
    let c = Config {
        worker_deaths: 1,
        ..c
    };
    holds("two slots, short batch, a death", c, 4_000_000);
}

#[test]
fn two_deaths_in_one_slot() {
    let c = one_slot(&[(&[2], None), (&[2], None)]);
    let c = Config {
        worker_deaths: 2,
        ..c
    };
    holds("one slot, two deaths", c, 2_000_000);
}

#[test]
fn workers_that_prefer_rows_take_the_others_too() {
    let c = Config {
        prefers: true,
        worker_deaths: 1,
        ..one_slot(&[(&[2], None), (&[1], None)])
    };
    holds("preferred rows, one slot, a death", c, 500_000);
}

#[test]
fn a_batch_held_while_the_next_is_filled() {
    let c = config(&[(&[1], None), (&[1, 1], None)]);
    holds("a batch held", Config { hold: 1, ..c }, 1_000_000);
}

#[test]
fn an_epoch_broken_off() {
    let c = one_slot(&[(&[1, 2], Some(1)), (&[1], None)]);
    let c = Config {
        worker_deaths: 1,
        ..c
    };
    holds("broken off, a death", c, 1_000_000);
}

#[test]
fn an_epoch_broken_off_with_tickets_in_two_slots() {
    let c = config(&[(&[1, 1], Some(0)), (&[1], None)]);
    let c = Config {
        rows: 1,
        worker_deaths: 1,
        ..c
    };
    holds("two slots of one row broken off, a death", c, 100_000);
}

#[test]
fn coordinator_consumer_and_a_worker_die() {
    let c = one_slot(&[(&[2], None), (&[1], None)]);
    let c = Config {
        worker_deaths: 1,
        coordinator_dies: true,
        consumer_dies: true,
        ..c
    };
    holds("everybody dies", c, 1_000_000);
}

#[test]
fn coordinator_or_consumer_dies_while_an_epoch_is_broken_off() {
    let c = one_slot(&[(&[2], Some(0)), (&[1], None)]);
    let c = Config {
        coordinator_dies: true,
        consumer_dies: true,
        ..c
    };
    holds("broken off, everybody dies", c, 100_000);
}

#[test]
fn rows_that_kill_are_failed() {
    let c = one_slot(&[(&[2], None), (&[1], None)]);
    let c = Config {
        worker_deaths: 1,
        quarantine: true,
        ..c
    };
    holds("quarantine", c, 500_000);
}

#[test]
fn a_row_goes_on_where_its_dead_worker_was() {
    let c = one_slot(&[(&[2], None), (&[1], None)]);
    let c = Config {
        worker_deaths: 1,
        tries: 2,
        bad: 1,
        ..c
    };
    holds("one bad attempt, a death", c, 500_000);
}

#[test]
fn rows_without_a_good_attempt_fail_behind_the_last() {
    let c = one_slot(&[(&[2], None), (&[1], None)]);
    let c = Config {
        worker_deaths: 1,
        tries: 1,
        bad: 2,
        ..c
    };
    holds("bad attempts only, a death", c, 500_000);
}

#[test]
fn attempts_that_kill_are_given_up_one_by_one() {
    let c = one_slot(&[(&[1], None), (&[1], None)]);
    let c = Config {
        rows: 1,
        worker_deaths: 2,
        quarantine: true,
        tries: 2,
        bad: 1,
        ..c
    };
    holds("attempts given up", c, 300_000);
}

#[test]
fn a_coordinator_that_gives_up() {
    let c = one_slot(&[(&[2], None), (&[1], None)]);
    let c = Config {
        worker_deaths: 2,
        give_up_at: Some(2),
        ..c
    };
    holds("given up", c, 1_000_000);
}

#[test]
fn sleepers_that_wake_for_no_reason() {
    let c = one_slot(&[(&[2], None), (&[1], None)]);
    let c = Config {
        worker_deaths: 1,
        spurious_wakes: 2,
        ..c
    };
    holds("spurious wakes", c, 1_000_000);
}

/// Explores with a planted fault, without the rules on who may change a row. So the fault must show
/// by its effects. Returns what was found.
#[track_caller]
fn finds(fault: Fault, config: Config, expected: &[&str]) {
    let config = Config {
        fault,
        row_rules: false,
        ..config
    };
    let report = explore(&format!("{fault:?}"), config);
    let found = report.violation.expect("the fault must be found").what;
    assert!(
        expected.iter().any(|e| found.contains(e)),
        "{fault:?}: {found}"
    );
}

fn one_batch() -> Config {
    one_slot(&[(&[2], None)])
}

fn one_death() -> Config {
    Config {
        worker_deaths: 1,
        ..one_batch()
    }
}

fn broken_off() -> Config {
    Config {
        worker_deaths: 1,
        ..one_slot(&[(&[2], Some(0)), (&[1], None)])
    }
}

const SLEEPS: &[&str] = &["sleeps for ever"];

#[test]
fn dropped_wakes_are_found() {
    finds(Fault::DropWorkWake, one_batch(), SLEEPS);
    finds(Fault::DropDoneWake, one_batch(), SLEEPS);
}

#[test]
fn a_sleep_on_a_value_read_too_late_is_found() {
    finds(Fault::WaitUnchecked, one_batch(), SLEEPS);
}

#[test]
fn a_burial_in_the_wrong_order_is_found() {
    finds(Fault::WakeForkReturn, one_death(), SLEEPS);
    finds(Fault::BuryWithoutWake, one_death(), SLEEPS);
}

#[test]
fn rows_returned_from_the_living_are_found() {
    finds(Fault::ReturnFromTheLiving, one_batch(), &["committed row"]);
    finds(
        Fault::CommitByStore,
        one_batch(),
        &["delivered with payload", "committed row"],
    );
}

#[test]
fn readiness_by_a_counter_is_found() {
    finds(Fault::ReadyByCounter, one_death(), SLEEPS);
}

#[test]
fn a_claim_in_two_steps_is_found() {
    finds(Fault::ClaimInTwoSteps, one_death(), SLEEPS);
}

#[test]
fn a_slot_used_again_too_early_is_found() {
    let seen = &[
        "claimed a row of",
        "committed row",
        "sleeps for ever",
        "delivered",
        "ticket for slot",
    ];
    finds(Fault::ReuseUndrained, broken_off(), seen);
    finds(Fault::DrainMissesReturned, broken_off(), seen);
}

#[test]
fn a_drain_in_one_pass_is_found() {
    finds(Fault::DrainInOnePass, broken_off(), SLEEPS);
}

/// Attempts that kill, in a slot that is used twice.
fn given_up() -> Config {
    Config {
        rows: 1,
        worker_deaths: 1,
        quarantine: true,
        tries: 1,
        ..one_slot(&[(&[1], None), (&[1], None)])
    }
}

#[test]
fn attempts_out_of_order_are_found() {
    // Correct for the consumer only if it reads the sequence.
    finds(Fault::StaleAttempt, given_up(), &["delivered with payload"]);
    let seen = &["delivered with payload"];
    finds(Fault::OpenThenMoveOn, given_up(), seen);
}

#[test]
fn the_rules_of_rows_see_a_fault_at_once() {
    for (fault, config) in [
        (Fault::ReturnFromTheLiving, one_batch()),
        (Fault::ClaimInTwoSteps, one_batch()),
        (Fault::OpenThenMoveOn, given_up()),
    ] {
        let report = explore("with rules", Config { fault, ..config });
        let found = report.violation.expect("the fault must be found").what;
        assert!(found.contains("must not write"), "{found}");
    }
}

/// Merging of states must not hide anything: the same result without it.
#[test]
fn nothing_is_hidden_by_merging_states() {
    let drained = one_slot(&[(&[2], Some(0))]);
    let two_slots = Config {
        rows: 1,
        ..config(&[(&[1], None), (&[1], None)])
    };
    for c in [one_death(), drained.clone(), two_slots, given_up()] {
        let merged = explore("merged", c.clone());
        let all = explore("all", Config { merge: false, ..c });
        assert!(merged.violation.is_none() && all.violation.is_none());
        assert!(merged.states < all.states && merged.ends <= all.ends);
    }
    for (fault, c) in [
        (Fault::WakeForkReturn, one_death()),
        (Fault::ReadyByCounter, one_death()),
        (Fault::DrainInOnePass, drained),
    ] {
        let c = Config {
            fault,
            merge: false,
            ..c
        };
        assert!(explore("fault, all", c).violation.is_some());
    }
}
