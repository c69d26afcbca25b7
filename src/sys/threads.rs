//! Threads for the duration of one call.
//!
//! Used in the consumer and in the command line, never in a worker or the coordinator. All threads
//! are joined before the call returns, so a caller with one thread may fork afterwards. Rayon's own
//! pools do not join their threads, and its global pool stays, so neither is used.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result};

/// Runs `work` in a pool of threads named `name`. Uses fewer threads if not all can be started.
///
/// # Errors
/// No thread can be started; one has panicked.
pub(crate) fn with_pool<R: Send>(
    name: &str,
    threads: usize,
    work: impl FnOnce(&ThreadPool) -> R + Send,
) -> Result<R> {
    thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut refused = None;
        let mut threads = threads.max(1);
        let pool = loop {
            let built = ThreadPoolBuilder::new()
                .num_threads(threads)
                .spawn_handler(|thread| {
                    let builder = thread::Builder::new().name(name.to_owned());
                    let started = builder.spawn_scoped(scope, || thread.run());
                    // Rayon's own error lacks the system's error number.
                    let started = started.inspect_err(|e| refused = e.raw_os_error());
                    handles.push(started?);
                    Ok(())
                })
                .build();
            match built {
                Ok(pool) => break pool,
                Err(_) if threads > 1 => threads /= 2,
                Err(e) => {
                    let e =
                        refused.map_or_else(|| io::Error::other(e), io::Error::from_raw_os_error);
                    return Err(Error::not_started("start a thread", e));
                }
            }
        };
        let done = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&pool))));
        drop(pool);
        // The scope waits for the work of threads, not for their end.
        let mut all_ended = true;
        for handle in handles {
            all_ended &= handle.join().is_ok();
        }
        done.ok()
            .filter(|_| all_ended)
            .ok_or_else(|| Error::worker(format!("a thread of {name} panicked")))
    })
}

/// Calls `make` for each item on several threads. Returns the results in the order of items.
///
/// # Errors
/// The error of the first failed item, as in a sequential run. Items after it are not started.
pub(crate) fn each<T: Sync, R: Send>(
    name: &str,
    threads: usize,
    items: &[T],
    make: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.iter().map(make).collect();
    }
    let failed = AtomicUsize::new(usize::MAX);
    let one = |(at, item): (usize, &T)| {
        if at > failed.load(Ordering::Relaxed) {
            return None;
        }
        let made = make(item);
        if made.is_err() {
            failed.fetch_min(at, Ordering::Relaxed);
        }
        Some(made)
    };
    let made: Vec<Option<Result<R>>> = with_pool(name, threads, |_| {
        items
            .par_iter()
            .with_max_len(1)
            .enumerate()
            .map(one)
            .collect()
    })?;
    made.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(threads: usize, bad: &[usize]) -> Result<Vec<usize>> {
        let items: Vec<usize> = (0..200).collect();
        each("test", threads, &items, |&n| match bad.contains(&n) {
            true => Err(Error::config(format!("{n} is bad"))),
            false => Ok(n * 2),
        })
    }

    #[test]
    fn items_keep_their_order_and_the_first_error_is_told() {
        for threads in [0, 1, 2, 8] {
            let made = numbers(threads, &[]).unwrap();
            assert!(made.iter().enumerate().all(|(i, n)| *n == 2 * i));
            let e = numbers(threads, &[170, 31, 32, 199]).unwrap_err();
            assert!(e.to_string().contains("31 is bad"), "{e}");
        }
    }

    #[test]
    fn a_panic_is_an_error() {
        let e = with_pool("test", 3, |pool| {
            pool.scope(|scope| scope.spawn(|_| panic!("on purpose")));
        });
        assert!(
            e.unwrap_err()
                .to_string()
                .contains("a thread of test panicked")
        );
    }
}
