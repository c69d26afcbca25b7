//! Whoever is killed, at whatever moment, nothing is left behind.
//!
//! `FEATHERLOAD_KILLS` says how often each is killed (default 12).

use featherload::internals::DrillBuilder;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::common::processes::{
    MARK, children, fresh_mark, marked, send, wait_for, wait_gone, zombies,
};
use crate::common::{FEATHERLOAD, Random, builder, data};

/// How long an end may take.
const LIMIT: Duration = Duration::from_secs(1);
/// An end that took longer is a hang.
const HANG: Duration = Duration::from_secs(8);

/// One at a time: their limits are about time.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kills() -> usize {
    std::env::var("FEATHERLOAD_KILLS").map_or(12, |n| n.parse().unwrap())
}

/// A `featherload bench` that runs until somebody ends it, in a process group
/// of its own.
struct Run {
    child: Child,
    mark: String,
    /// What it says; a file, since a pipe ends only with its last writer.
    said: tempfile::NamedTempFile,
    /// Its folder for temporary files.
    temporary: tempfile::TempDir,
}

impl Run {
    fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    fn start_with(data: &Path, more: &[&str]) -> Self {
        let mark = fresh_mark();
        let temporary = tempfile::tempdir().unwrap();
        let said = tempfile::NamedTempFile::new().unwrap();
        let child = Command::new(FEATHERLOAD)
            .arg("bench")
            .arg(data)
            .args([
                "--num-workers",
                "2",
                "--batch-size",
                "8",
                "--epochs",
                "1000000000",
            ])
            .args(more)
            .env(MARK, &mark)
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.reopen().unwrap())
            // As a shell does it.
            .process_group(0)
            .spawn()
            .unwrap();
        Self {
            child,
            mark,
            said,
            temporary,
        }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits for the consumer's end: status, how long it took, what it said.
    fn end(&mut self) -> (ExitStatus, Duration, String) {
        self.end_within(HANG)
    }

    fn end_within(&mut self, limit: Duration) -> (ExitStatus, Duration, String) {
        let began = Instant::now();
        let status = wait_for(limit, || self.child.try_wait().unwrap());
        let took = began.elapsed();
        let Some(status) = status else {
            let left = marked(&self.mark);
            self.child.kill().unwrap();
            panic!("the consumer still runs after {took:?}: {left:?}");
        };
        (status, took, fs::read_to_string(self.said.path()).unwrap())
    }

    /// How long until no process of the run is alive.
    fn time_until_gone(&self) -> Duration {
        wait_gone(&self.mark, HANG).unwrap_or_else(|left| panic!("still alive: {left:?}"))
    }

    /// Names left in the folder for temporary files.
    fn leftovers(&self) -> Vec<String> {
        fs::read_dir(self.temporary.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

/// Waits until a random moment: half of them during start-up.
fn random_moment(random: &mut Random) {
    let most = if random.below(2) == 0 {
        25_000
    } else {
        200_000
    };
    std::thread::sleep(Duration::from_micros(random.below(most)));
}

/// The limit is kept, but for one in twelve that a loaded machine may delay.
fn assert_in_time(what: &str, times: &[Duration]) {
    let slow = times.iter().filter(|t| **t > LIMIT).count();
    let most = times.iter().max().unwrap();
    println!(
        "{what}: {} times, the longest took {most:?}, {slow} over {LIMIT:?}",
        times.len()
    );
    assert!(slow <= times.len() / 12, "{what}: {times:?}");
}

/// Shared memory of the whole machine, in KiB.
fn shmem() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|l| l.starts_with("Shmem:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs `one` as often as asked; in a long run the machine's shared memory must
/// be back at the end (others use it too, so not in a short one).
fn many_times(times: usize, mut one: impl FnMut(&mut Random)) {
    let _turn = turn();
    let before = shmem();
    let mut random = Random(std::process::id().into());
    for _ in 0..times {
        one(&mut random);
    }
    if times >= 200 {
        let back = wait_for(Duration::from_secs(30), || {
            (shmem() <= before + 1024).then_some(())
        });
        assert!(
            back.is_some(),
            "Shmem was {before} KiB and is {} KiB",
            shmem()
        );
    }
    assert_eq!(
        zombies(&["featherload", "featherload-co", "featherload-wk"]),
        []
    );
}

#[test]
fn a_killed_consumer_leaves_nothing() {
    let dir = data(3, 8);
    let mut times = Vec::new();
    many_times(kills(), |random| {
        let mut run = Run::start(dir.path());
        random_moment(random);
        assert!(send(run.pid(), Signal::SIGKILL));
        let began = Instant::now();
        let (status, ..) = run.end();
        assert_eq!(status.signal(), Some(libc::SIGKILL));
        run.time_until_gone();
        times.push(began.elapsed());
        assert_eq!(run.leftovers(), [""; 0]);
    });
    assert_in_time("the consumer was killed", &times);
}

/// Rust's handler lets a process go on after a SIGSEGV that somebody sent, once, and may stop
/// one of its threads for ever.
#[test]
fn a_crash_signal_from_outside_ends_the_consumer() {
    let dir = data(3, 8);
    many_times(2, |_| {
        for signal in [Signal::SIGSEGV, Signal::SIGBUS] {
            let mut run = Run::start(dir.path());
            wait_for(HANG, || crate::common::processes::coordinator_of(run.pid())).unwrap();
            assert!(send(run.pid(), signal));
            let (status, ..) = run.end();
            assert_eq!(status.signal(), Some(signal as i32));
            run.time_until_gone();
            assert_eq!(run.leftovers(), [""; 0]);
        }
    });
}

#[test]
fn an_interrupted_run_says_so_and_leaves_nothing() {
    let dir = data(3, 8);
    let mut times = Vec::new();
    let mut handled = 0;
    many_times(4 * kills(), |random| {
        let signal = [Signal::SIGINT, Signal::SIGTERM][times.len() % 2];
        // A terminal's Ctrl-C goes to the whole group, the helper in its first
        // instants included.
        let group = times.len() % 4 >= 2;
        let mut run = Run::start(dir.path());
        random_moment(random);
        assert!(send(if group { -run.pid() } else { run.pid() }, signal));
        let began = Instant::now();
        let (status, _, said) = run.end();
        run.time_until_gone();
        times.push(began.elapsed());
        // In its first instants the process has no handler yet and dies of it; a shell shows the
        // same number for both.
        match status.code() {
            Some(code) => {
                assert_eq!(code, 128 + signal as i32, "{said}");
                handled += 1;
            }
            None => assert_eq!(status.signal(), Some(signal as i32), "{said}"),
        }
        assert!(!said.contains("panicked"), "{said}");
        assert_eq!(run.leftovers(), [""; 0]);
    });
    assert!(handled >= kills(), "{handled}");
    assert_in_time("the consumer was interrupted", &times);
}

#[test]
fn a_signal_during_a_long_scan_ends_the_process_at_once() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    // None of these is there: a scan that ends makes a run that fails.
    let lines: String = (0..2_000_000)
        .map(|i| format!("folder/picture{i:07}.jpg {}\n", i % 10))
        .collect();
    fs::write(&list, lines).unwrap();
    for (i, launch) in ["exec", "fork", "exec", "fork"].iter().enumerate() {
        let signal = [Signal::SIGINT, Signal::SIGTERM][i / 2];
        let mut run = Run::start_with(&list, &["--launch", launch]);
        wait_for(HANG, || crate::common::processes::coordinator_of(run.pid())).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert!(send(-run.pid(), signal));
        let (status, took, said) = run.end();
        assert_eq!(status.code(), Some(128 + signal as i32), "{launch}: {said}");
        assert!(took < LIMIT, "{launch}: {took:?}");
        run.time_until_gone();
    }
}

#[test]
fn an_interrupted_comparison_with_the_decoder_leaves_nothing() {
    let dir = data(3, 8);
    let mut times = Vec::new();
    many_times(kills(), |random| {
        let signal = [Signal::SIGINT, Signal::SIGTERM][times.len() % 2];
        let group = times.len() % 4 >= 2;
        let mut run = Run::start_with(dir.path(), &["--ceiling", "full", "--window", "0.6"]);
        // The handlers are there by then.
        wait_for(HANG, || crate::common::processes::coordinator_of(run.pid())).unwrap();
        std::thread::sleep(Duration::from_millis(random.below(1500)));
        assert!(send(if group { -run.pid() } else { run.pid() }, signal));
        let began = Instant::now();
        let (status, _, said) = run.end();
        run.time_until_gone();
        times.push(began.elapsed());
        assert_eq!(status.code(), Some(128 + signal as i32), "{said}");
        assert_eq!(run.leftovers(), [""; 0]);
    });
    assert_in_time("the comparison was interrupted", &times);
}

#[test]
fn measuring_processes_end_with_their_parent() {
    let dir = data(3, 8);
    let mut times = Vec::new();
    many_times(kills(), |random| {
        let mut run = Run::start_with(dir.path(), &["--ceiling", "full", "--window", "0.9"]);
        // Coordinator, and as many measuring processes as workers.
        wait_for(HANG, || (children(run.pid()).len() == 3).then_some(())).unwrap();
        // In windows of the loader and of the decoder.
        std::thread::sleep(Duration::from_millis(random.below(2500)));
        assert!(send(run.pid(), Signal::SIGKILL));
        let began = Instant::now();
        run.end();
        run.time_until_gone();
        times.push(began.elapsed());
        assert_eq!(run.leftovers(), [""; 0]);
    });
    assert_in_time("the parent of measuring processes was killed", &times);
}

#[test]
fn a_killed_coordinator_is_an_error_at_once() {
    let dir = data(3, 8);
    let mut times = Vec::new();
    let mut messages = BTreeMap::new();
    many_times(kills(), |random| {
        let mut run = Run::start(dir.path());
        random_moment(random);
        // Whatever it is called yet.
        let child = wait_for(HANG, || children(run.pid()).first().map(|p| p.pid)).unwrap();
        assert!(send(child, Signal::SIGKILL));
        let began = Instant::now();
        let (status, _, said) = run.end();
        run.time_until_gone();
        times.push(began.elapsed());
        assert_eq!(status.code(), Some(3), "{said}");
        let message = said.lines().last().unwrap_or_default().to_owned();
        assert!(message.starts_with("featherload: "), "{said}");
        assert!(!said.contains("panicked"), "{said}");
        let kind: String = message.chars().filter(|c| !c.is_ascii_digit()).collect();
        *messages.entry(kind).or_insert(0) += 1;
        assert_eq!(run.leftovers(), [""; 0]);
    });
    println!("{messages:#?}");
    assert_in_time("the coordinator was killed", &times);
}

/// No signal stopped it, so the kernel tells its parent nothing: a debugger holds it here, as
/// storage does that does not answer.
#[test]
fn a_coordinator_that_stands_still_is_killed_and_named() {
    let _turn = turn();
    let dir = data(3, 8);
    let mut run = Run::start_with(dir.path(), &["--row-limit", "0.5"]);
    let found = wait_for(HANG, || crate::common::processes::coordinator_of(run.pid()));
    let coordinator = found.unwrap();
    let workers = wait_for(HANG, || {
        Some(children(coordinator)).filter(|w| w.len() == 2)
    })
    .unwrap();
    // Only the thread that holds it can wait for it.
    let holder = std::thread::spawn(move || {
        let held = Pid::from_raw(coordinator);
        ptrace::seize(held, ptrace::Options::empty()).unwrap();
        ptrace::interrupt(held).unwrap();
        loop {
            match waitpid(held, None).unwrap() {
                WaitStatus::PtraceEvent(..) => break,
                // A signal that was on its way to it stops it first.
                WaitStatus::Stopped(_, signal) => ptrace::cont(held, signal).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        for worker in workers {
            send(worker.pid, Signal::SIGKILL);
        }
        // Its end: whoever holds a process is told before its parent is.
        waitpid(held, None).unwrap()
    });
    // A row's limit, and the time that a coordinator has to look and to kill: 7.5 s, by a clock
    // that is slow on a busy machine.
    let (status, _, said) = run.end_within(HANG * 4);
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("has not responded for 7 s"), "{said}");
    assert!(said.contains("its last state"), "{said}");
    assert!(matches!(
        holder.join().unwrap(),
        WaitStatus::Signaled(_, Signal::SIGKILL, _)
    ));
    run.time_until_gone();
    assert_eq!(run.leftovers(), [""; 0]);
}

/// Nobody returns the dead workers' rows, and nobody says that they are dead.
#[test]
fn a_coordinator_that_is_stopped_for_good_is_killed_and_named() {
    let _turn = turn();
    let dir = data(3, 8);
    let mut run = Run::start(dir.path());
    let found = wait_for(HANG, || crate::common::processes::coordinator_of(run.pid()));
    let coordinator = found.unwrap();
    let workers = wait_for(HANG, || {
        Some(children(coordinator)).filter(|w| w.len() == 2)
    })
    .unwrap();
    assert!(send(coordinator, Signal::SIGSTOP));
    for worker in workers {
        send(worker.pid, Signal::SIGKILL);
    }
    let (status, _, said) = run.end();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("was stopped by SIGSTOP for 1s"), "{said}");
    run.time_until_gone();
    assert_eq!(run.leftovers(), [""; 0]);
}

#[test]
fn next_fails_within_200_ms_of_the_coordinators_death() {
    let _turn = turn();
    let dir = data(3, 8);
    let mut random = Random(std::process::id().into());
    let mut times = Vec::new();
    for _ in 0..9 {
        let mut loader = builder(dir.path())
            .num_workers(2)
            .epochs(u64::MAX)
            .build()
            .unwrap();
        let coordinator = loader.report().unwrap().coordinator.unwrap();
        let wait = Duration::from_micros(random.below(60_000));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(wait);
            send(coordinator, Signal::SIGKILL);
            Instant::now()
        });
        let error = 'run: loop {
            for batch in loader.epoch() {
                if let Err(e) = batch {
                    break 'run e;
                }
            }
        };
        let failed = Instant::now();
        times.push(failed.saturating_duration_since(killer.join().unwrap()));
        assert!(error.to_string().contains("coordinator"), "{error}");
        assert!(error.to_string().contains("new loader"), "{error}");
        let again = loader.epoch().next().unwrap().unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert!(loader.report().is_err());
    }
    times.sort();
    println!("next() failed after {times:?}");
    assert!(
        times[times.len() / 2] < Duration::from_millis(200),
        "{times:?}"
    );
    assert_eq!(zombies(&["featherload-co"]), []);
}

#[test]
fn dropping_the_loader_waits_for_no_decode_and_leaves_nothing() {
    let _turn = turn();
    let dir = data(1, 4);
    for i in 0..6 {
        fs::write(
            dir.path().join(format!("class0/slow{i}.jpg")),
            crate::common::slow_picture(i),
        )
        .unwrap();
    }
    let mut times = Vec::new();
    for taken in [0, 0, 1, 0, 1] {
        let mut loader = builder(dir.path())
            .num_workers(2)
            .batch_size(1)
            .build()
            .unwrap();
        let report = loader.report().unwrap().processes;
        let pool: Vec<i32> = report
            .workers
            .into_iter()
            .chain(report.coordinator)
            .collect();
        // Tickets are posted with the first `next`.
        let mut epoch = loader.epoch();
        for _ in 0..=taken {
            epoch.next().unwrap().unwrap();
        }
        drop(epoch);
        let began = Instant::now();
        drop(loader);
        times.push(began.elapsed());
        for pid in pool {
            let left = crate::common::processes::Process::read(pid);
            // Workers are reaped by the coordinator, it by us; a number may be
            // somebody else's by now.
            let left = left.filter(|p| p.name.starts_with("featherload-") && p.state != 'Z');
            assert_eq!(left, None);
        }
    }
    assert_in_time("the loader was dropped", &times);
}

/// Where the descriptors of a process lead, without the numbers of sockets. None: it is
/// gone.
fn descriptors(pid: i32) -> Option<Vec<String>> {
    let mut all: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .ok()?
        .flatten()
        .filter_map(|e| fs::read_link(e.path()).ok())
        .map(|to| to.to_string_lossy().into_owned())
        .collect();
    all.sort();
    Some(all)
}

#[test]
fn a_hundred_replacements_cost_the_coordinator_no_descriptor() {
    let _turn = turn();
    let dir = data(3, 8);
    let mut loader = builder(dir.path())
        .num_workers(2)
        .epochs(u64::MAX)
        .kill_workers_every(Duration::from_millis(2))
        .build()
        .unwrap();
    let coordinator = loader.report().unwrap().coordinator.unwrap();
    let before = descriptors(coordinator).unwrap();
    let began = Instant::now();
    while loader.report().unwrap().worker_deaths < 100 {
        assert!(began.elapsed() < Duration::from_secs(60));
        for batch in loader.epoch() {
            batch.unwrap();
        }
    }
    assert_eq!(descriptors(coordinator).as_ref(), Some(&before));
    assert!(before.len() < 16, "{before:?}");
    // And a worker has but its standard streams. Those that were killed since, or were
    // forked just now, say nothing: a worker has its name when it has closed the rest.
    let is_worker = |pid| {
        crate::common::processes::Process::read(pid).is_some_and(|p| p.name == "featherload-wk")
    };
    let began = Instant::now();
    let mut seen = 0;
    while seen < 4 {
        assert!(began.elapsed() < Duration::from_secs(60));
        for worker in loader.report().unwrap().processes.workers {
            let fds = match is_worker(worker) {
                true => descriptors(worker),
                false => None,
            };
            let Some(fds) = fds.filter(|_| is_worker(worker)) else {
                continue;
            };
            let data = dir.path().to_str().unwrap();
            let open = fds.iter().filter(|f| !f.contains(data)).count();
            assert!(open <= 3, "{fds:?}");
            seen += usize::from(open > 0);
        }
    }
}
