//! One bad image is data, a bad pool is an error with its name; neither hangs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use featherload::Rank;
use featherload::index::FolderOptions;
use featherload::internals::DrillBuilder;
use featherload::{
    BatchLabels, Error, FaultKind, Index, LaunchMethod, Loader, OnError, RowFault, RowStatus,
};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;

use crate::common::hunt::{LIVENESS, hunt};
use crate::common::processes::{children, coordinator_of, send, wait_for};
use crate::common::rows::{Row, assert_same, rows, stream};
use crate::common::{Picture, builder, data, endless_picture, slow_picture};

/// What is wrong with each bad file.
const BAD: [(&str, FaultKind); 7] = [
    ("class0/cut.jpg", FaultKind::Truncated),
    ("class0/fifo.jpg", FaultKind::NotRegular),
    ("class0/fifo_link.jpg", FaultKind::NotRegular),
    ("class1/dangling.jpg", FaultKind::Unreadable),
    ("class1/removed.jpg", FaultKind::Unreadable),
    ("class1/text.jpg", FaultKind::Unsupported),
    ("class2/zero.jpg", FaultKind::Truncated),
];

/// 24 good pictures and the bad ones; `removed.jpg` is still there.
fn with_bad_files() -> tempfile::TempDir {
    let dir = data(3, 8);
    let at = |name: &str| dir.path().join(name);
    let whole = Picture::rgb(200, 150, 1).encode();
    fs::write(at("class0/cut.jpg"), &whole[..whole.len() * 3 / 5]).unwrap();
    nix::unistd::mkfifo(&at("class0/fifo.jpg"), Mode::S_IRWXU).unwrap();
    symlink("fifo.jpg", at("class0/fifo_link.jpg")).unwrap();
    symlink("nowhere", at("class1/dangling.jpg")).unwrap();
    fs::write(at("class1/removed.jpg"), &whole).unwrap();
    fs::write(
        at("class1/text.jpg"),
        "this is a text with another name\n".repeat(9),
    )
    .unwrap();
    fs::write(at("class2/zero.jpg"), b"").unwrap();
    dir
}

/// Puts a good picture in the place of each bad file.
fn mend(dir: &Path) {
    for (name, _) in BAD {
        let path = dir.join(name);
        // Missing is fine: one was removed already.
        let _ = fs::remove_file(&path);
        fs::write(&path, Picture::rgb(120, 90, 2).encode()).unwrap();
    }
}

fn all_batches(loader: &mut Loader, epochs: u64) -> (Vec<Row>, Vec<(u64, RowFault)>) {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    while loader.state().epoch < epochs {
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            all.extend(rows(&batch));
            let good = batch.good_rows().count();
            assert_eq!(good + batch.faults().len(), batch.len());
            for fault in batch.faults() {
                let row = batch.row(fault.row).unwrap().bytes().unwrap();
                assert!(row.iter().all(|b| *b == 0), "{fault:?} is not masked");
                assert_eq!(batch.status()[fault.row], RowStatus::Failed);
                assert_eq!(batch.ids()[fault.row], fault.id);
                let BatchLabels::Classes(classes) = batch.labels() else {
                    panic!("{:?}", batch.labels());
                };
                assert_eq!(classes[fault.row], -1);
                assert!(batch.good_rows().all(|row| row.index() != fault.row));
                faults.push((batch.number(), fault.clone()));
            }
        }
    }
    (all, faults)
}

#[test]
fn bad_files_are_masked_and_named_under_skip_and_the_first_stops_under_stop() {
    for workers in [0, 2] {
        let dir = with_bad_files();
        let (index, _) = Index::folder(dir.path(), &FolderOptions::default()).unwrap();
        assert_eq!(index.len(), 24 + BAD.len() as u64);
        // Between the index and the run.
        fs::remove_file(dir.path().join("class1/removed.jpg")).unwrap();
        let make = || builder(dir.path()).num_workers(workers);

        let mut loader = make().on_error(OnError::Skip).build().unwrap();
        // The FIFO and the links are samples of the folder; the removed file is
        // only in an index made before.
        assert_eq!(loader.index().len(), 23 + BAD.len() as u64);
        drop(loader);
        let saved = tempfile::tempdir().unwrap();
        let saved = saved.path().join("index");
        index.save(&saved).unwrap();
        let make = || {
            Loader::builder(Index::load(&saved).unwrap())
                .helper(crate::common::FEATHERLOAD)
                .batch_size(8)
                .seed(11)
                .num_workers(workers)
        };
        loader = make().on_error(OnError::Skip).build().unwrap();
        let (got, faults) = all_batches(&mut loader, 2);
        assert_eq!(faults.len(), 2 * BAD.len());
        let found: BTreeMap<PathBuf, FaultKind> = faults
            .iter()
            .map(|(_, f)| (f.path.clone(), f.fault.kind))
            .collect();
        let expected: BTreeMap<PathBuf, FaultKind> = BAD
            .iter()
            .map(|(name, kind)| (dir.path().join(name), *kind))
            .collect();
        assert_eq!(found, expected, "{workers} workers");
        assert!(faults.iter().all(|(_, f)| !f.fault.reason.is_empty()));
        drop(loader);

        // Under `stop`: the first in delivery order, and the state before it.
        let mut loader = make().on_error(OnError::Stop).epochs(2).build().unwrap();
        let (first_batch, first) = &faults[0];
        let mut good = Vec::new();
        let error = loop {
            let mut epoch = loader.epoch();
            let end = loop {
                match epoch.next() {
                    Some(Ok(batch)) => good.extend(rows(&batch)),
                    Some(Err(e)) => break Some(e),
                    None => break None,
                }
            };
            assert!(epoch.next().is_none(), "nothing behind an error or the end");
            if let Some(e) = end {
                break e;
            }
        };
        let Error::Sample {
            id, path, fault, ..
        } = &error
        else {
            panic!("{error:?}");
        };
        assert_eq!((id, path, fault), (&first.id, &first.path, &first.fault));
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        let state = loader.state();
        assert_eq!((state.epoch, state.samples), (0, *first_batch * 8));
        assert_eq!(good.len() as u64, first_batch * 8);
        // Again: the same error, no hang and no batch left out.
        let again = loader.epoch().next().unwrap().unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert_eq!(loader.state(), state);
        drop(loader);

        // Mended, the run goes on; and the good rows never were any others.
        mend(dir.path());
        let mended = stream(&mut make().build().unwrap(), 2);
        let mut loader = make().epochs(2).resume(state).build().unwrap();
        let tail = stream(&mut loader, 2);
        assert_same(&[good, tail].concat(), &mended, "resumed");
        for (g, m) in got.iter().zip(&mended) {
            if g.status != RowStatus::Failed {
                assert_eq!(g, m, "a good row differs");
            } else {
                assert_eq!((g.id, g.label), (m.id, -1));
            }
        }
    }
}

/// Good pictures and one that takes long; its path. A folder of its own in
/// memory where there is one, so that a truncation takes pages at once.
fn with_slow_file() -> (tempfile::TempDir, PathBuf) {
    let dir = data(2, 8);
    let slow = dir.path().join("class1/slow.jpg");
    fs::write(&slow, slow_picture(5)).unwrap();
    (dir, slow)
}

/// One epoch under `skip` while `act` works on whoever decodes the slow file:
/// its fault, if it failed; the other rows are those of an undisturbed run.
fn disturbed(
    workers: usize,
    row_limit: Duration,
    act: impl FnMut(i32, &Path) -> bool + Send + 'static,
) -> (Option<RowFault>, u32, featherload::LoaderReport) {
    let (dir, slow) = with_slow_file();
    let mut truth = builder(dir.path()).num_workers(0).build().unwrap();
    let want = stream(&mut truth, 1);
    let mut loader = builder(dir.path())
        .num_workers(workers)
        .row_limit(row_limit)
        .on_error(OnError::Skip)
        .build()
        .unwrap();
    let coordinator = loader.report().unwrap().coordinator.unwrap();
    let mut act = act;
    let path = slow.clone();
    // Nothing is decoded before the first batch is asked for.
    let (stop, thread) = hunt(coordinator, &slow, move |worker| act(worker, &path));
    let began = Instant::now();
    let (got, faults) = all_batches(&mut loader, 1);
    assert!(began.elapsed() < LIVENESS);
    let report = loader.report().unwrap();
    stop.store(true, Ordering::Release);
    let times = thread.join().unwrap();
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(&want) {
        if g.status == RowStatus::Ok {
            assert_eq!(g, w, "a row beside the slow one differs");
        }
    }
    assert!(faults.len() <= 1, "{faults:?}");
    let fault = faults.into_iter().next().map(|(_, f)| f);
    if let Some(f) = &fault {
        assert_eq!(f.path, slow);
    }
    (fault, times, report)
}

#[test]
fn a_file_that_shrinks_while_it_is_decoded_is_one_failed_sample() {
    for workers in [1, 2] {
        let (fault, times, report) = disturbed(workers, LIVENESS, |worker, path| {
            fs::OpenOptions::new()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(100)
                .unwrap();
            send(worker, Signal::SIGCONT);
            false
        });
        assert_eq!(times, 1);
        assert_eq!(fault.unwrap().fault.kind, FaultKind::Shrunk);
        assert_eq!(report.worker_deaths, 1, "{:?}", report.events);
    }
}

#[test]
fn a_decode_that_takes_too_long_is_a_time_out() {
    let dir = data(2, 8);
    let slow = dir.path().join("class1/slow.jpg");
    // The others are compared with a run in which it is a picture like them.
    fs::write(&slow, Picture::rgb(90, 80, 5).encode()).unwrap();
    let want = stream(&mut builder(dir.path()).num_workers(0).build().unwrap(), 1);
    fs::write(&slow, endless_picture()).unwrap();
    // Long enough for any other row on a busy machine.
    let mut loader = builder(dir.path())
        .num_workers(2)
        .row_limit(Duration::from_secs(2))
        .on_error(OnError::Skip)
        .build()
        .unwrap();
    let (got, faults) = all_batches(&mut loader, 1);
    let report = loader.report().unwrap();
    assert_eq!(faults.len(), 1, "{faults:?} {report:?}");
    let fault = &faults[0].1;
    assert_eq!(
        (fault.fault.kind, &fault.path),
        (FaultKind::TimedOut, &slow)
    );
    assert!(fault.fault.reason.contains("2000 ms"), "{}", fault.fault);
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(&want) {
        if g.status == RowStatus::Ok {
            assert_eq!(g, w, "a row beside the slow one differs");
        }
    }
    assert!(report.worker_deaths >= 1, "{report:?}");
    let message = |e: &&String| e.contains("took too long") && e.contains("slow.jpg");
    assert_eq!(
        report.events.iter().filter(message).count(),
        1,
        "{report:?}"
    );
}

#[test]
fn a_decoder_that_is_stopped_is_killed_and_its_row_is_redone() {
    for workers in [1, 2] {
        // Its fault would be the only row that is not compared.
        let (fault, times, report) = disturbed(workers, LIVENESS, |_worker, _path| false);
        assert_eq!(fault, None);
        assert_eq!((times, report.worker_deaths), (1, 1), "{report:?}");
        assert_eq!(report.events.len(), 1, "{report:?}");
        for words in [
            "was stopped from outside (SIGSTOP) and killed",
            "while working on",
            "slow.jpg",
        ] {
            assert!(report.events[0].contains(words), "{report:?}");
        }
    }
}

#[test]
fn a_row_whose_workers_are_stopped_is_quarantined_after_five() {
    let (fault, times, report) = disturbed(2, Duration::from_secs(30), |_worker, _path| true);
    let fault = fault.unwrap().fault;
    assert_eq!(fault.kind, FaultKind::Quarantined);
    assert!(fault.reason.contains("(SIGSTOP)"), "{}", fault.reason);
    assert_eq!((times, report.worker_deaths), (5, 5), "{report:?}");
}

#[test]
fn a_decoder_that_goes_on_in_time_is_left_alone() {
    let longest = Arc::new(AtomicU64::new(0));
    let seen = longest.clone();
    let (fault, times, report) = disturbed(1, LIVENESS, move |worker, _path| {
        // Longer than the limit in all, each stop far shorter.
        for again in 0..8 {
            let began = Instant::now();
            if again > 0 {
                send(worker, Signal::SIGSTOP);
            }
            std::thread::sleep(Duration::from_millis(200));
            send(worker, Signal::SIGCONT);
            seen.fetch_max(began.elapsed().as_millis() as u64, Ordering::AcqRel);
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    });
    assert_eq!(fault, None);
    assert_eq!(times, 1);
    // A busy machine may have kept us from continuing it.
    let longest = longest.load(Ordering::Acquire);
    assert!(
        report.worker_deaths == 0 || longest > 900,
        "stopped for {longest} ms at most: {report:?}"
    );
}

#[test]
fn an_idle_worker_that_is_stopped_is_replaced() {
    let dir = data(3, 8);
    let want = stream(&mut builder(dir.path()).num_workers(0).build().unwrap(), 2);
    let mut loader = builder(dir.path()).num_workers(2).build().unwrap();
    let mut got = stream(&mut loader, 1);
    let before = loader.report().unwrap();
    send(before.workers[0], Signal::SIGSTOP);
    // Each event is told once.
    let mut events = Vec::new();
    let after = wait_for(LIVENESS, || {
        let report = loader.report().unwrap();
        events.extend(report.events.iter().cloned());
        (report.worker_deaths > 0 && report.workers.len() == 2).then_some(report)
    });
    let after = after.unwrap();
    assert!(!after.workers.contains(&before.workers[0]), "{after:?}");
    assert!(after.workers.contains(&before.workers[1]), "{after:?}");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].ends_with("was stopped from outside (SIGSTOP) and killed"),
        "{events:?}"
    );
    got.extend(stream(&mut loader, 2));
    assert_same(&got, &want, "with a replacement");
    assert_eq!(loader.report().unwrap().worker_deaths, 1);
}

/// As a batch scheduler does it with a job: every process is stopped, and goes
/// on after more than `row_limit`. In the midst of a row that the coordinator
/// has looked at, in both orders.
#[test]
fn a_job_that_is_stopped_as_a_whole_goes_on_as_if_nothing_had_been() {
    let (dir, slow) = with_slow_file();
    let bench = |workers: &str, epochs: u64| -> Child {
        Command::new(crate::common::FEATHERLOAD)
            .arg("bench")
            .arg(dir.path())
            .args([
                "--batch-size",
                "8",
                "--on-error",
                "skip",
                "--json",
                "--digest",
            ])
            .args(["--row-limit", "2", "--num-workers", workers])
            .args(["--epochs", &epochs.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let report = |child: Child| -> serde_json::Value {
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "{:?}", out.status);
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let pause = |ms| std::thread::sleep(Duration::from_millis(ms));
    let all = |job: &[i32], signal| job.iter().for_each(|pid| assert!(send(*pid, signal)));
    let epochs = 30;
    let child = bench("2", epochs);
    let consumer = child.id() as i32;
    let coordinator = wait_for(LIVENESS, || coordinator_of(consumer)).unwrap();
    for coordinator_first in [true, false] {
        let (looks, looked) = std::sync::mpsc::channel();
        let (_stop, hunter) = hunt(coordinator, &slow, move |worker| {
            // The coordinator looks twice a second.
            for _ in 0..6 {
                pause(200);
                send(worker, Signal::SIGCONT);
                pause(1);
                send(worker, Signal::SIGSTOP);
            }
            send(worker, Signal::SIGCONT);
            // Until the coordinator knows that it goes on.
            pause(5);
            looks.send(()).unwrap();
            false
        });
        looked.recv_timeout(LIVENESS).unwrap();
        let workers: Vec<i32> = children(coordinator).iter().map(|p| p.pid).collect();
        assert_eq!(workers.len(), 2);
        if coordinator_first {
            all(&[coordinator], Signal::SIGSTOP);
            all(&workers, Signal::SIGSTOP);
            all(&[consumer], Signal::SIGSTOP);
            pause(3000);
            all(&workers, Signal::SIGCONT);
            all(&[coordinator, consumer], Signal::SIGCONT);
        } else {
            all(&workers, Signal::SIGSTOP);
            // It sees them stop, and that nobody lets them go on at once.
            pause(5);
            all(&[coordinator, consumer], Signal::SIGSTOP);
            pause(3000);
            all(&[consumer, coordinator], Signal::SIGCONT);
            pause(50);
            all(&workers, Signal::SIGCONT);
        }
        assert_eq!(hunter.join().unwrap(), 1);
    }
    let got = report(child);
    let want = report(bench("0", epochs));
    assert!(got["digest"].is_string(), "{got}");
    assert_eq!(got["digests"], want["digests"]);
    assert_eq!(got["digest"], want["digest"]);
    assert_eq!(got["samples"], 17 * epochs);
    assert_eq!(
        (&got["failed"], &got["worker_deaths"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn a_row_whose_workers_crash_is_quarantined_after_two() {
    for workers in [1, 2] {
        let (fault, times, report) = disturbed(workers, LIVENESS, |worker, _| {
            send(worker, Signal::SIGSEGV);
            send(worker, Signal::SIGCONT);
            true
        });
        let fault = fault.unwrap().fault;
        assert_eq!(fault.kind, FaultKind::Quarantined);
        assert!(fault.reason.contains("SIGSEGV"), "{}", fault.reason);
        assert_eq!((times, report.worker_deaths), (2, 2));
        let named = report.events.iter().filter(|e| e.contains("slow.jpg"));
        assert_eq!(named.count(), 2, "{:?}", report.events);
    }
}

#[test]
fn a_row_whose_workers_are_killed_from_outside_is_quarantined_after_five() {
    for workers in [1, 2] {
        let (fault, times, report) = disturbed(workers, LIVENESS, |worker, _| {
            send(worker, Signal::SIGKILL);
            true
        });
        let fault = fault.unwrap().fault;
        assert_eq!(fault.kind, FaultKind::Quarantined);
        assert!(
            fault.reason.contains("for lack of memory"),
            "{}",
            fault.reason
        );
        assert_eq!((times, report.worker_deaths), (5, 5));
    }
}

#[test]
fn bad_rows_one_after_the_other_are_no_start_failure() {
    // Six in a row, more than the deaths without progress that end a pool.
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("class0")).unwrap();
    let picture = slow_picture(9);
    let files: Vec<PathBuf> = (0..6)
        .map(|i| dir.path().join(format!("class0/slow{i}.jpg")))
        .collect();
    for file in &files {
        fs::write(file, &picture).unwrap();
    }
    let mut loader = builder(dir.path())
        .num_workers(1)
        .row_limit(LIVENESS)
        .on_error(OnError::Skip)
        .build()
        .unwrap();
    let coordinator = loader.report().unwrap().coordinator.unwrap();
    let hunters: Vec<_> = files
        .iter()
        .map(|file| {
            let path = file.clone();
            hunt(coordinator, file, move |worker| {
                let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(100).unwrap();
                send(worker, Signal::SIGCONT);
                false
            })
        })
        .collect();
    let (_, faults) = all_batches(&mut loader, 1);
    for (stop, thread) in hunters {
        stop.store(true, Ordering::Release);
        assert_eq!(thread.join().unwrap(), 1);
    }
    assert_eq!(faults.len(), 6);
    assert!(
        faults
            .iter()
            .all(|(_, f)| f.fault.kind == FaultKind::Shrunk)
    );
}

#[test]
fn holding_every_slot_is_an_error_that_says_so_and_passes() {
    let dir = data(6, 9);
    let want = stream(&mut builder(dir.path()).num_workers(0).build().unwrap(), 2);
    let mut loader = builder(dir.path())
        .num_workers(2)
        .depth(2)
        .epochs(2)
        .hold_timeout(Duration::ZERO)
        .build()
        .unwrap();
    let mut got = Vec::new();
    {
        let mut epoch = loader.epoch();
        let first = epoch.next().unwrap().unwrap();
        let second = epoch.next().unwrap().unwrap();
        for _ in 0..3 {
            let e = epoch.next().unwrap().unwrap_err().to_string();
            assert!(e.contains("all 2 slots") && e.contains("depth"), "{e}");
        }
        got.extend(rows(&first));
        drop(first);
        got.extend(rows(&second));
        drop(second);
        let third = epoch.next().unwrap().unwrap();
        got.extend(rows(&third));
        // Broken off now: the error is past, so the next epoch is the next.
    }
    assert_eq!((loader.state().epoch, loader.state().samples), (0, 24));
    assert_same(&got, &want[..24], "held");
    let next = stream(&mut loader, 2);
    assert_same(&next, &want[54..], "the epoch behind");
}

#[test]
fn a_dropped_batch_in_another_thread_frees_its_slot() {
    let dir = data(6, 9);
    let mut loader = builder(dir.path()).num_workers(1).depth(1).build().unwrap();
    let mut epoch = loader.epoch();
    let first = epoch.next().unwrap().unwrap();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        drop(first);
    });
    // The default hold_timeout of 2 s covers it.
    assert_eq!(epoch.next().unwrap().unwrap().number(), 1);
    thread.join().unwrap();
}

#[test]
fn the_last_ticket_numbers_are_used_up_and_then_named() {
    let dir = data(6, 9);
    let want = stream(&mut builder(dir.path()).num_workers(0).build().unwrap(), 1);
    for depth in [1, 2, 3, 5] {
        let mut loader = builder(dir.path())
            .num_workers(2)
            .depth(depth)
            .first_counts(u32::MAX - 3, 1)
            .build()
            .unwrap();
        let mut got = Vec::new();
        let state;
        {
            let mut epoch = loader.epoch();
            for _ in 0..3 {
                got.extend(rows(&epoch.next().unwrap().unwrap()));
            }
            let e = epoch.next().unwrap().unwrap_err().to_string();
            assert!(e.contains("4294967295") && e.contains("new loader"), "{e}");
            assert!(epoch.next().is_none());
            state = epoch.state();
        }
        let again = loader.epoch().next().unwrap().unwrap_err().to_string();
        assert!(again.contains("4294967295"), "{again}");
        assert_eq!((state.epoch, state.samples), (0, 24));
        drop(loader);
        // As the message says: a new loader from the state goes on.
        let mut loader = builder(dir.path())
            .num_workers(2)
            .resume(state)
            .build()
            .unwrap();
        got.extend(stream(&mut loader, 1));
        assert_same(&got, &want, &format!("depth {depth}"));
    }
}

#[test]
fn the_last_spawn_serial_is_named() {
    let dir = data(6, 9);
    let most = (1u32 << 24) - 1;
    let mut loader = builder(dir.path())
        .num_workers(2)
        .first_counts(1, most - 5)
        .kill_workers_every(Duration::from_millis(3))
        .epochs(u64::MAX)
        .build()
        .unwrap();
    let began = Instant::now();
    let error = 'run: loop {
        for batch in loader.epoch() {
            if let Err(e) = batch {
                break 'run e;
            }
        }
        assert!(began.elapsed() < LIVENESS, "no error");
    };
    assert!(error.to_string().contains(&most.to_string()), "{error}");
    // And again, at once.
    let again = loader.epoch().next().unwrap().unwrap_err();
    assert_eq!(again.to_string(), error.to_string());

    let e = builder(dir.path())
        .num_workers(2)
        .first_counts(1, most)
        .build()
        .unwrap_err();
    assert!(e.to_string().contains(&most.to_string()), "{e}");
}

#[test]
fn a_helper_that_is_none_is_named_within_six_seconds() {
    let dir = data(1, 3);
    let scripts = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = scripts.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let cases = [
        (
            PathBuf::from("/nowhere/featherload"),
            "not an executable file",
        ),
        (dir.path().to_owned(), "not an executable file"),
        (PathBuf::from("/bin/true"), "ended before the handshake"),
        (PathBuf::from("/bin/cat"), "ended before the handshake"),
        (
            script("silent", "exec sleep 30"),
            "did not answer within 5s",
        ),
        (script("garbage", "printf garbage >&0"), "7 bytes"),
        (
            script("chatty", "head -c 52 /dev/zero >&0"),
            "not a featherload helper",
        ),
    ];
    for (helper, words) in cases {
        let began = Instant::now();
        let error = loop {
            let e = builder(dir.path())
                .helper(&helper)
                .launch(LaunchMethod::Exec)
                .num_workers(1)
                .build()
                .unwrap_err();
            // Another test's child may hold our script open for writing for a
            // moment, between its fork and its exec.
            if !e.to_string().contains("Text file busy") {
                break e;
            }
        };
        let text = error.to_string();
        assert!(text.contains(words), "{text}");
        assert!(text.contains(helper.to_str().unwrap()), "{text}");
        assert!(began.elapsed() < Duration::from_secs(6), "{text}");
    }
    assert_eq!(
        crate::common::processes::zombies(&["true", "cat", "sleep", "sh"]),
        []
    );
}

#[test]
fn numbers_that_cannot_work_are_usage_errors() {
    let dir = data(1, 3);
    for (b, words) in [
        (
            builder(dir.path()).num_workers(0).batch_size(0),
            "`batch_size` is 0",
        ),
        (
            builder(dir.path()).num_workers(1).depth(0),
            "`depth` is 0: use 1 to 1024",
        ),
        (
            builder(dir.path()).num_workers(5000),
            "`num_workers` is 5000: use at most 4096",
        ),
        (
            builder(dir.path()).num_workers(0).epochs(0),
            "`epochs` is 0: use at least 1",
        ),
        (
            builder(dir.path()).num_workers(0).rank(Rank::new(2, 2)),
            "`rank` is 2 of 2",
        ),
    ] {
        let e = b.build().unwrap_err();
        assert!(e.is_usage(), "{e}");
        assert!(e.to_string().contains(words), "{e}");
    }
    let e = builder(dir.path()).epochs(0).memory_plan(0).unwrap_err();
    assert_eq!(e.option_name(), Some("epochs"), "{e}");
    let empty = tempfile::tempdir().unwrap();
    let e = builder(empty.path()).num_workers(1).build().unwrap_err();
    assert!(e.is_usage(), "{e}");
}
