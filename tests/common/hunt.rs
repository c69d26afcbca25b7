//! Doing something to whoever decodes a certain file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::processes::{Process, has_mapped, send, wait_for, worker_with};

/// More than any test takes on a loaded machine; reached only by a hang.
pub const LIVENESS: Duration = Duration::from_secs(60);

/// Runs `act` on the worker that has `file` mapped and stands still meanwhile,
/// for as long as `act` says `true`; counts how often.
pub fn hunt(
    coordinator: i32,
    file: &Path,
    mut act: impl FnMut(i32) -> bool + Send + 'static,
) -> (Arc<AtomicBool>, JoinHandle<u32>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, file) = (stop.clone(), file.to_owned());
    let thread = std::thread::spawn(move || {
        let mut times = 0;
        while !stopped.load(Ordering::Acquire) {
            let Some(worker) = worker_with(coordinator, &file) else {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            };
            // Standing still it cannot finish between our look and our deed.
            send(worker, Signal::SIGSTOP);
            let still = wait_for(Duration::from_secs(5), || {
                Process::read(worker)
                    .is_none_or(|p| p.state == 'T' || p.state == 'Z')
                    .then_some(())
            });
            assert!(still.is_some());
            if !has_mapped(worker, &file) {
                send(worker, Signal::SIGCONT);
                continue;
            }
            times += 1;
            if !act(worker) {
                break;
            }
            // Until it is gone, so that nobody is hit twice. Who is left stopped is
            // killed by the coordinator.
            wait_for(LIVENESS, || (!has_mapped(worker, &file)).then_some(()));
        }
        times
    });
    (stop, thread)
}
