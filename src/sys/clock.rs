//! The monotonic clock, whose readings compare across processes, and a clock
//! that stands still while its process does.
//!
//! Runs in every process. No wall-clock time: it jumps.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC: one time line for every process of the machine.
pub(crate) fn monotonic_ns() -> u64 {
    match clock_gettime(ClockId::CLOCK_MONOTONIC) {
        Ok(t) => t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64,
        // The kernel has this clock since 2.6; a filter that denies the call
        // only makes time stand still, which no protocol step depends on.
        Err(_) => 0,
    }
}

/// How late a process may wake, or how long it may work between two readings,
/// and all of it counts.
const SLACK: Duration = Duration::from_millis(20);

/// Time in which this process could run; what limits on other processes are
/// kept by. A batch scheduler stops every process of a job and continues them
/// an hour later, and CLOCK_MONOTONIC goes on meanwhile: by it every limit would
/// be over at once, for processes that could not run either. So between two
/// readings no more counts than the sleep that the owner planned and 20 ms.
/// On a machine that is too busy to keep to that, the clock is slow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunningClock {
    last: Instant,
    running: Duration,
}

impl RunningClock {
    pub(crate) fn start() -> Self {
        Self {
            last: Instant::now(),
            running: Duration::ZERO,
        }
    }

    /// Time since the start. `planned` is the longest that the owner meant to
    /// sleep since the last reading.
    pub(crate) fn read(&mut self, planned: Duration) -> Duration {
        self.read_at(Instant::now(), planned)
    }

    fn read_at(&mut self, now: Instant, planned: Duration) -> Duration {
        let passed = now.saturating_duration_since(self.last);
        self.running += passed.min(planned.saturating_add(SLACK));
        self.last = now;
        self.running
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A [`RunningClock`] and the time that it is told.
    pub(crate) struct Told {
        clock: RunningClock,
        now: Instant,
    }

    impl Told {
        pub(crate) fn start() -> Self {
            let clock = RunningClock::start();
            Self {
                now: clock.last,
                clock,
            }
        }

        /// Lets time pass, of which the process meant to sleep `planned`.
        pub(crate) fn pass(&mut self, time: Duration, planned: Duration) -> Duration {
            self.now += time;
            self.clock.read_at(self.now, planned)
        }
    }

    #[test]
    fn the_clock_goes_while_the_process_runs_and_stands_while_it_is_stopped() {
        let ms = Duration::from_millis;
        let mut t = Told::start();
        assert_eq!(t.pass(ms(0), ms(50)), ms(0));
        // Woken early, on time, a little late; at work.
        assert_eq!(t.pass(ms(20), ms(50)), ms(20));
        assert_eq!(t.pass(ms(50), ms(50)), ms(70));
        assert_eq!(t.pass(ms(60), ms(50)), ms(130));
        assert_eq!(t.pass(ms(5), ms(0)), ms(135));
        // An hour in which nobody ran, in a sleep and in work.
        assert_eq!(t.pass(ms(3_600_000), ms(50)), ms(205));
        assert_eq!(t.pass(ms(3_600_000), ms(0)), ms(225));
        assert_eq!(t.pass(ms(10), Duration::MAX), ms(235));
    }
}
