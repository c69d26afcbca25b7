//! SIGINT and SIGTERM: the run ends after the batch at hand, with what it has
//! measured; a second signal, or a batch that does not come, ends it at once.
//!
//! The library installs no handler; this is the command line's own. Workers and
//! coordinator end with this process whatever way it ends.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use featherload::{Error, Result};
use nix::sys::signal::{SigSet, Signal};

static CAUGHT: AtomicI32 = AtomicI32::new(0);

/// How long the batch at hand may take after a signal.
const PATIENCE: Duration = Duration::from_millis(300);

/// Blocks both signals in this thread and those it starts. Call first, before
/// the loader is built: a fork needs a single thread, so the listener comes later.
pub fn block() -> Result<SigSet> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.thread_block()
        .map_err(|e| Error::io("block SIGINT and SIGTERM", e))?;
    Ok(set)
}

/// Starts the thread that waits for the signals. Call once the loader is built.
pub fn listen(set: SigSet) -> Result<()> {
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let mut first: Option<Instant> = None;
            while let Ok(signal) = set.wait() {
                CAUGHT.store(signal as i32, Ordering::Release);
                if first.is_some() {
                    std::process::exit(128 + signal as i32);
                }
                first = Some(Instant::now());
                std::thread::spawn(move || {
                    std::thread::sleep(PATIENCE);
                    std::process::exit(128 + signal as i32);
                });
            }
        })
        .map_err(|e| Error::io("start the signal thread", e))?;
    Ok(())
}

/// The signal that came, if one did.
pub fn caught() -> Option<i32> {
    match CAUGHT.load(Ordering::Acquire) {
        0 => None,
        signal => Some(signal),
    }
}
