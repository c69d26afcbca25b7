//! The pool knows no pictures: a job of numbers, which the library does not have, runs
//! in it with any number of workers and through every death. This executable is the
//! helper too. No harness, since the usual one has threads and `LaunchMethod::Fork` wants none.

#[path = "../common/mod.rs"]
mod common;
mod job;

use std::process::ExitCode;
use std::time::Duration;

use common::processes::{children, coordinator_of, send, wait_for};
use featherload::LaunchMethod;
use featherload::internals::{WorkerOptions, init_with};
use job::{KINDS, Run, Spec};
use nix::sys::signal::Signal;

const TESTS: [(&str, fn()); 6] = [
    ("any_number_of_workers_gives_the_same", workers),
    ("ordered_kills_change_nothing", ordered_kills),
    ("killed_workers_change_nothing", killed_workers),
    ("a_run_that_was_broken_off_goes_on_at_its_place", resumed),
    ("a_forked_coordinator_knows_the_job", forked),
    ("a_helper_that_does_not_know_the_job_says_so", unknown),
];

const SPEC: Spec = Spec {
    seed: 5,
    rows: 16,
    batches: 20,
    pause: Duration::from_micros(300),
};

/// Two epochs.
const BATCHES: usize = 40;

fn worker_options(workers: usize) -> WorkerOptions {
    WorkerOptions {
        workers: Some(workers),
        helper: Some(std::env::current_exe().unwrap()),
        ..WorkerOptions::default()
    }
}

fn start(options: WorkerOptions) -> Run {
    Run::start(options, SPEC, (0, 0)).unwrap()
}

fn digests(run: &mut Run, batches: usize) -> Vec<u128> {
    (0..batches).map(|_| run.next().unwrap()).collect()
}

/// By this process alone.
fn truth() -> Vec<u128> {
    digests(&mut start(worker_options(0)), BATCHES)
}

fn workers() {
    let expected = truth();
    let mut run = start(worker_options(0));
    digests(&mut run, 3);
    let alone = run.filler.report().unwrap();
    assert_eq!((alone.rows, alone.processes.coordinator), (48, None));
    for workers in [1, 8] {
        let mut run = start(worker_options(workers));
        assert!(digests(&mut run, BATCHES) == expected, "{workers} workers");
        let report = run.filler.report().unwrap();
        assert_eq!(report.processes.worker_deaths, 0);
        assert_eq!(report.processes.rows_by_worker.len(), workers);
        assert!(report.rows >= 640 && report.input_bytes > 0);
        assert!(report.stage_ns[1] > 0 && report.stage_ns[2..] == [0; 8]);
    }
}

fn ordered_kills() {
    let kills = WorkerOptions {
        kill_every: Some(Duration::from_millis(4)),
        ..worker_options(3)
    };
    let mut run = start(kills);
    assert!(digests(&mut run, BATCHES) == truth());
    let report = run.filler.report().unwrap().processes;
    assert!(report.ordered_deaths > 3, "{report:?}");
    assert_eq!(report.worker_deaths, report.ordered_deaths, "{report:?}");
}

fn killed_workers() {
    let expected = truth();
    let mut run = start(worker_options(3));
    let mut got = Vec::new();
    let mut killed = 0;
    for batch in 0..BATCHES {
        if batch % 8 == 3 {
            let pid = run
                .filler
                .report()
                .unwrap()
                .processes
                .workers
                .first()
                .copied();
            killed += u64::from(pid.is_some_and(|pid| send(pid, Signal::SIGKILL)));
        }
        got.push(run.next().unwrap());
    }
    assert!(got == expected);
    let deaths = || {
        let deaths = run.filler.report().unwrap().processes.worker_deaths;
        (deaths == killed).then_some(())
    };
    assert!(killed > 2 && wait_for(Duration::from_secs(5), deaths).is_some());
}

fn resumed() {
    let expected = truth();
    for workers in [0, 2] {
        let mut run = start(worker_options(workers));
        assert!(digests(&mut run, 13) == expected[..13]);
        // Broken off within this run: what is under way is not what is asked for next.
        run.filler.cancel();
        run.at = (1, 5);
        assert!(digests(&mut run, 2) == expected[25..27]);
        let at = run.at;
        drop(run);
        let mut run = Run::start(worker_options(workers), SPEC, at).unwrap();
        assert!(digests(&mut run, 13) == expected[27..], "{workers} workers");
    }
    let me = std::process::id() as i32;
    assert!(coordinator_of(me).is_none(), "{:?}", children(me));
}

fn forked() {
    let fork = WorkerOptions {
        launch: LaunchMethod::Fork,
        ..worker_options(2)
    };
    assert!(digests(&mut start(fork), BATCHES) == truth());
}

fn unknown() {
    let other = WorkerOptions {
        helper: Some(common::FEATHERLOAD.into()),
        ..worker_options(1)
    };
    let error = Run::start(other, SPEC, (0, 0)).err().unwrap().to_string();
    assert!(
        error.contains("'numbers'") && error.contains("images"),
        "{error}"
    );
}

fn main() -> ExitCode {
    init_with(KINDS);
    common::harness::run(&TESTS)
}
