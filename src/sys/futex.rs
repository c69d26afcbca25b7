//! Sleeps on a word of shared memory, and wakes its sleepers.
//!
//! Used in every process. Not process-private, because the sleepers are other processes.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Sleeps while the low half of `word` equals `expected`, at most `limit`. May return early on a
/// wake, on a signal or spuriously, so callers check their condition again.
pub(crate) fn wait(word: &AtomicU64, expected: u32, limit: Duration) {
    let timeout = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos() as libc::c_long,
    };
    // SAFETY: `low_half` points into the live AtomicU64 behind `word`, which
    // outlives the call; the kernel only reads it. `timeout` lives on this stack.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            low_half(word),
            libc::FUTEX_WAIT,
            expected,
            &timeout as *const libc::timespec,
        );
    }
}

/// Wakes every process that sleeps on `word`.
pub(crate) fn wake_all(word: &AtomicU64) {
    // SAFETY: as in `wait`; FUTEX_WAKE does not even read the word.
    unsafe {
        libc::syscall(libc::SYS_futex, low_half(word), libc::FUTEX_WAKE, i32::MAX);
    }
}

/// A futex has 32 bits: the low half, which changes with every increment.
fn low_half(word: &AtomicU64) -> *const u32 {
    let base = word.as_ptr() as *const u32;
    if cfg!(target_endian = "little") {
        base
    } else {
        base.wrapping_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use std::time::Instant;

    #[test]
    fn a_changed_word_does_not_sleep_and_a_limit_ends_a_sleep() {
        let w = AtomicU64::new(7);
        let t = Instant::now();
        wait(&w, 6, Duration::from_secs(10));
        assert!(t.elapsed() < Duration::from_secs(5));
        wait(&w, 7, Duration::from_millis(20));
        assert!(t.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn a_wake_ends_a_sleep() {
        let w = AtomicU64::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                while w.load(Ordering::Acquire) == 0 {
                    wait(&w, 0, Duration::from_secs(10));
                }
            });
            std::thread::sleep(Duration::from_millis(5));
            w.store(1, Ordering::Release);
            wake_all(&w);
        });
    }
}
