//! `LaunchMethod::Fork`, and forked copies of a process that has a loader.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use featherload::internals::DrillBuilder;
use featherload::{LaunchMethod, Loader, LoaderBuilder};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, pipe};

use crate::common::processes::{Process, children, coordinator_of, send, wait_for};
use crate::common::rows::{assert_same, rows, stream};
use crate::common::{builder, data};

/// Runs `child` in a forked copy; it must return true, and end within a minute.
fn in_a_copy(child: impl FnOnce() -> bool) {
    // SAFETY: this process has one thread (`main` starts none, and the one test
    // that does joins it), so the copy may run ordinary code.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let run = std::panic::AssertUnwindSafe(child);
            let good = std::panic::catch_unwind(run).unwrap_or(false);
            // SAFETY: `_exit` has no preconditions; no destructor of the
            // parent's values shall run here beyond those of `child`.
            unsafe { libc::_exit(i32::from(!good)) }
        }
        ForkResult::Parent { child } => {
            let end = wait_for(Duration::from_secs(60), || {
                Process::read(child.as_raw())
                    .is_none_or(|p| p.state == 'Z')
                    .then_some(())
            });
            if end.is_none() {
                send(child.as_raw(), Signal::SIGKILL);
            }
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
        }
    }
}

pub fn forked_workers_give_the_stream_of_none() {
    let dir = data(6, 9);
    let want = stream(&mut builder(dir.path()).num_workers(0).build().unwrap(), 2);
    for workers in [1, 3] {
        let make = || {
            builder(dir.path())
                .num_workers(workers)
                .launch(LaunchMethod::Fork)
        };
        let mut loader = make().build().unwrap();
        assert_same(&stream(&mut loader, 2), &want, "forked");
        drop(loader);
        let mut loader = make()
            .kill_workers_every(Duration::from_millis(5))
            .build()
            .unwrap();
        assert_same(&stream(&mut loader, 2), &want, "forked and killed");
        drop(loader);
        let left = children(std::process::id() as i32);
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Whatever the caller does with signals is no business of its workers.
pub fn forked_processes_keep_no_handler() {
    extern "C" fn nothing(_: libc::c_int) {}
    let dir = data(1, 9);
    let handled = [libc::SIGUSR1, libc::SIGRTMIN() + 3, libc::SIGRTMAX()];
    let set = |handler: libc::sighandler_t| {
        for signal in handled {
            // SAFETY: the handler does nothing, or is the default.
            unsafe { libc::signal(signal, handler) };
        }
    };
    set(nothing as extern "C" fn(libc::c_int) as libc::sighandler_t);
    let mut loader = builder(dir.path())
        .num_workers(2)
        .launch(LaunchMethod::Fork)
        .build()
        .unwrap();
    stream(&mut loader, 1);
    let report = loader.report().unwrap().processes;
    let pids = report.coordinator.into_iter().chain(report.workers);
    for pid in pids {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        for signal in handled {
            assert_eq!(
                caught >> (signal - 1) & 1,
                0,
                "{pid}: {signal} of {caught:x}"
            );
        }
    }
    drop(loader);
    set(libc::SIG_DFL);
}

pub fn a_second_thread_forbids_the_fork() {
    let dir = data(1, 9);
    let make = || {
        builder(dir.path())
            .num_workers(1)
            .launch(LaunchMethod::Fork)
    };
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || receiver.recv());
    let e = make().build().unwrap_err();
    assert!(e.is_usage(), "{e}");
    assert!(e.to_string().contains("LaunchMethod::Exec"), "{e}");
    assert!(e.to_string().contains("2 threads"), "{e}");
    drop(sender);
    let _ = thread.join().unwrap();
    // The kernel counts a joined thread for a moment longer.
    let alone = || std::fs::read_dir("/proc/self/task").unwrap().count() == 1;
    wait_for(Duration::from_secs(5), || alone().then_some(())).unwrap();
    make().build().unwrap();
}

pub fn a_forked_copy_of_the_loader_is_harmless() {
    copies(|b| b.launch(LaunchMethod::Exec));
}

pub fn a_forked_copy_of_a_forked_pool_is_harmless() {
    copies(|b| b.launch(LaunchMethod::Fork));
}

fn copies(launch: impl Fn(LoaderBuilder) -> LoaderBuilder) {
    let dir = data(6, 9);
    let want = stream(&mut builder(dir.path()).num_workers(0).build().unwrap(), 3);
    let make = || {
        launch(builder(dir.path()).num_workers(2).depth(3).epochs(3))
            .build()
            .unwrap()
    };
    let mut loader = make();
    let coordinator = loader.report().unwrap().coordinator.unwrap();
    let mut got = Vec::new();
    for _ in 0..2 {
        let mut epoch = loader.epoch();
        while let Some(batch) = epoch.next() {
            let batch = batch.unwrap();
            // Used: errors. The copy's `Epoch`, `Batch` and `Loader` are used
            // and dropped in every order that a user may come to.
            in_a_copy(|| {
                let bytes =
                    batch.pixels().is_err() && batch.row(0).and_then(|row| row.bytes()).is_err();
                // Behind the last batch there is none, error or not.
                let next = epoch.next().is_none_or(|b| b.is_err());
                let report = epoch.report().is_err();
                if !(bytes && next && report) {
                    eprintln!("in the copy: {bytes} {next} {report}");
                }
                bytes && next && report
            });
            got.extend(rows(&batch));
            if batch.number() % 3 == 0 {
                // SAFETY: one thread, see `in_a_copy`.
                match unsafe { fork() }.unwrap() {
                    ForkResult::Child => {
                        drop(batch);
                        drop(epoch);
                        loader.set_epoch(9);
                        drop(loader);
                        // SAFETY: `_exit` has no preconditions.
                        unsafe { libc::_exit(0) }
                    }
                    ForkResult::Parent { child } => {
                        assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
                    }
                }
            }
        }
    }
    let report = loader.report().unwrap();
    assert_eq!(report.coordinator, Some(coordinator));
    assert_eq!(report.worker_deaths, 0, "{:?}", report.events);
    got.extend(stream(&mut loader, 3));
    assert_same(&got, &want, "beside its copies");
}

/// A trainer process that builds a loader, forks a child that does nothing but
/// live on with everything it inherited, and trains until it is killed.
fn trainer(launch: LaunchMethod) {
    let dir = data(3, 6);
    for round in 0..4 {
        let (from, to): (OwnedFd, OwnedFd) = pipe().unwrap();
        // SAFETY: one thread, see `in_a_copy`.
        let trainer = match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                drop(from);
                let mut loader = builder(dir.path())
                    .num_workers(2)
                    .launch(launch)
                    .epochs(u64::MAX)
                    .build()
                    .unwrap();
                // SAFETY: as above: the trainer has one thread too.
                if let ForkResult::Parent { child } = unsafe { fork() }.unwrap() {
                    let mut to = std::fs::File::from(to);
                    to.write_all(&child.as_raw().to_le_bytes()).unwrap();
                    drop(to);
                    train(&mut loader)
                }
                loop {
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
            ForkResult::Parent { child } => child,
        };
        drop(to);
        let mut number = [0; 4];
        std::fs::File::from(from).read_exact(&mut number).unwrap();
        let sleeper = i32::from_le_bytes(number);
        std::thread::sleep(Duration::from_millis(7 * round));
        let coordinator = coordinator_of(trainer.as_raw()).unwrap();
        let mut pool: Vec<i32> = children(coordinator).iter().map(|p| p.pid).collect();
        assert_eq!(pool.len(), 2);
        pool.push(coordinator);
        let began = Instant::now();
        send(trainer.as_raw(), Signal::SIGKILL);
        // A zombie whose new parent does not reap it is gone for us.
        let gone = |pid: &i32| {
            Process::read(*pid).is_none_or(|p| p.state == 'Z' || !p.name.starts_with("featherload"))
        };
        let end = wait_for(Duration::from_secs(5), || {
            pool.iter().all(gone).then_some(())
        });
        let took = began.elapsed();
        let lives = Process::read(sleeper).is_some_and(|p| p.state != 'Z');
        send(sleeper, Signal::SIGKILL);
        waitpid(trainer, None).unwrap();
        assert!(lives, "the trainer's child should have lived on");
        assert!(
            end.is_some() && took < Duration::from_secs(1),
            "pool alive after {took:?}"
        );
    }
}

fn train(loader: &mut Loader) -> ! {
    loop {
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            std::hint::black_box(batch.row(0).unwrap().bytes().unwrap()[0]);
        }
    }
}

pub fn a_killed_trainer_leaves_nothing_although_its_child_lives() {
    trainer(LaunchMethod::Exec);
}

pub fn a_killed_trainer_of_a_forked_pool_leaves_nothing() {
    trainer(LaunchMethod::Fork);
}
