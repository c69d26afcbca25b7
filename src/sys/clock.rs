//! The monotonic clock, which processes can compare, and a clock that stops while its process does.
//!
//! Used in every process. Never wall-clock time, which jumps.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC, the same for every process of the machine.
pub(crate) fn monotonic_ns() -> u64 {
    match clock_gettime(ClockId::CLOCK_MONOTONIC) {
        Ok(t) => t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64,
        // Kernels have this clock since 2.6. If a filter denies the call, time stops, which breaks
        // no step of a protocol.
        Err(_) => 0,
    }
}

/// How late a process may wake, or how long it may work between two readings, in full.
const SLACK: Duration = Duration::from_millis(20);

/// Measures the time during which this process could run. Limits on other processes use it.
///
/// A batch scheduler may suspend all processes of a job for an hour. CLOCK_MONOTONIC continues
/// meanwhile, so after the resume every limit would be exceeded at once. This clock adds at most
/// the planned sleep and 20 ms between two readings. On an overloaded machine it is slow.
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

    /// Time since the start. `planned` is the longest planned sleep since the last reading.
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

    /// A [`RunningClock`] with a simulated time.
    pub(crate) struct FakeClock {
        clock: RunningClock,
        now: Instant,
    }

    impl FakeClock {
        pub(crate) fn start() -> Self {
            let clock = RunningClock::start();
            Self {
                now: clock.last,
                clock,
            }
        }

        /// Advances the time; `planned` of it was planned sleep.
        pub(crate) fn pass(&mut self, time: Duration, planned: Duration) -> Duration {
            self.now += time;
            self.clock.read_at(self.now, planned)
        }
    }

    #[test]
    fn the_clock_goes_while_the_process_runs_and_stands_while_it_is_stopped() {
        let ms = Duration::from_millis;
        let mut t = FakeClock::start();
        assert_eq!(t.pass(ms(0), ms(50)), ms(0));
        // Woken early, on time, slightly late; working.
        assert_eq!(t.pass(ms(20), ms(50)), ms(20));
        assert_eq!(t.pass(ms(50), ms(50)), ms(70));
        assert_eq!(t.pass(ms(60), ms(50)), ms(130));
        assert_eq!(t.pass(ms(5), ms(0)), ms(135));
        // Suspended for an hour, during a sleep and during work.
        assert_eq!(t.pass(ms(3_600_000), ms(50)), ms(205));
        assert_eq!(t.pass(ms(3_600_000), ms(0)), ms(225));
        assert_eq!(t.pass(ms(10), Duration::MAX), ms(235));
    }
}
