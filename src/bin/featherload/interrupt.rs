//! SIGINT and SIGTERM.
//!
//! While the loader is built and its data set scanned, a signal ends the process at once. Later it
//! ends the run after the current batch, and the run reports what it has measured. A second signal
//! ends the process at once. The process also ends if the batch does not arrive within 0.3 s, or if
//! the end of the run takes over 6 s, as with storage that does not answer.
//!
//! The library installs no handler; these are the command line's. Workers and coordinator end with
//! this process, however it ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use featherload::{Error, Result};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::output;

const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// How long the current batch may take after a signal.
const PATIENCE: Duration = Duration::from_millis(300);

/// How long the orderly end of a run may take. It may wait for storage that does not answer.
const LONGEST_END: Duration = Duration::from_secs(6);

/// The text that is printed then.
const HELD_UP: &str = "featherload: the end of the run takes over 6 s, so the process exits: \
                       storage may not answer";

/// A signal may arrive this much later than the exit of a child that it ended.
const SAME_SIGNAL: Duration = Duration::from_millis(20);

/// The next signal ends the process in its handler.
static AT_ONCE: AtomicBool = AtomicBool::new(true);
/// The signal that arrived, 0 for none.
static CAUGHT: AtomicUsize = AtomicUsize::new(0);
/// The run has seen the signal and is about to end.
static NOTICED: AtomicBool = AtomicBool::new(false);

/// From here on a signal ends the process with 128 + its number. Called once, before any command.
/// Starts no thread, because a fork needs a process with a single thread.
pub fn end_the_process() -> Result<()> {
    AT_ONCE.store(true, Ordering::SeqCst);
    // A signal between the installation of the handler and the registration of its actions is lost.
    let held = HeldSignals::hold(&[Signal::SIGINT, Signal::SIGTERM]);
    for signal in SIGNALS {
        // The actions of a signal run in the order of their registration. The end must be decided
        // before the flag after it is set: the first signal of a run enables the end, and the
        // second one ends the process.
        flag::register_conditional_shutdown(signal, 128 + signal, &AT_ONCE)
            .and_then(|_| flag::register(signal, &AT_ONCE))
            .and_then(|_| flag::register_usize(signal, &CAUGHT, signal as usize))
            .map_err(|e| Error::io("handle SIGINT and SIGTERM", e))?;
    }
    drop(held);
    Ok(())
}

/// Blocks signals while it lives, in a process with one thread.
pub struct HeldSignals(Option<SigSet>);

impl HeldSignals {
    pub fn hold(signals: &[Signal]) -> Self {
        let signals: SigSet = signals.iter().copied().collect();
        Self(signals.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok())
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = before.thread_set_mask();
        }
    }
}

/// From here on a signal ends the run; see `received_signal`. Call it after the loader is built: it starts a
/// thread, which ends the process if the run does not end in time.
pub fn end_the_run() -> Result<()> {
    let mut signals =
        Signals::new(SIGNALS).map_err(|e| Error::io("wait for SIGINT and SIGTERM", e))?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let Some(signal) = signals.forever().next() else {
                return;
            };
            std::thread::sleep(PATIENCE);
            if NOTICED.load(Ordering::SeqCst) {
                std::thread::sleep(LONGEST_END);
                // The reader of stderr may not answer either.
                let _ = std::thread::Builder::new().spawn(|| {
                    output::print_to_stderr(HELD_UP);
                });
                std::thread::sleep(PATIENCE);
            }
            signal_hook::low_level::exit(128 + signal);
        })
        .map_err(|e| Error::not_started("start the signal thread", e))?;
    // The only switch: a signal before it has ended the process. `received_signal` and the waiting
    // thread see every later signal.
    AT_ONCE.store(false, Ordering::SeqCst);
    Ok(())
}

/// The signal that arrived, if any. The caller then ends the run.
pub fn received_signal() -> Option<i32> {
    match CAUGHT.load(Ordering::SeqCst) {
        0 => None,
        signal => {
            NOTICED.store(true, Ordering::SeqCst);
            Some(signal as i32)
        }
    }
}

/// # Errors
/// A signal arrived: the run is interrupted.
pub fn check() -> Result<()> {
    match received_signal() {
        Some(_) => Err(Error::worker("interrupted")),
        None => Ok(()),
    }
}

/// The signal that may have caused a failure. A signal to the whole process group ends a child at
/// the moment when it arrives here. While the loader is built, that signal ends the process in this
/// call.
pub fn signal_after_failure() -> Option<i32> {
    std::thread::sleep(SAME_SIGNAL);
    received_signal()
}
