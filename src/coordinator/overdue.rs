//! Which rows have been in the same hands for too long.
//!
//! Runs in the coordinator. Looks at row words, not at what workers say: a
//! worker that was stopped just after its claim has said nothing yet. Each
//! attempt at a row has the whole limit.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::ring::coordinator_side::Held;

/// First sight of each claimed row, at each attempt.
#[derive(Debug)]
pub(super) struct Overdue {
    limit: Duration,
    seen: HashMap<Held, Instant>,
}

impl Overdue {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            seen: HashMap::new(),
        }
    }

    /// How often to look, so that the limit is kept to a quarter, or a second.
    pub(super) fn tick(&self) -> Duration {
        (self.limit / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }

    /// Takes a look and returns the rows that are over the limit.
    pub(super) fn look(&mut self, now: Instant, held: impl Iterator<Item = Held>) -> Vec<Held> {
        let mut still = HashMap::with_capacity(self.seen.len());
        let mut over = Vec::new();
        for h in held {
            let since = self.seen.get(&h).copied().unwrap_or(now);
            if now.duration_since(since) >= self.limit {
                over.push(h);
            }
            still.insert(h, since);
        }
        self.seen = still;
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_claim_ages() {
        let h = |owner, sequence| Held {
            slot: 0,
            row: 0,
            owner,
            sequence,
            attempt: 0,
        };
        let mut o = Overdue::new(Duration::from_secs(60));
        let t = Instant::now();
        let at = |s| t + Duration::from_secs(s);
        assert!(o.look(t, [h(1, 1)].into_iter()).is_empty());
        assert!(o.look(at(59), [h(1, 1)].into_iter()).is_empty());
        assert_eq!(o.look(at(60), [h(1, 1)].into_iter()), [h(1, 1)]);
        assert!(o.look(at(61), [h(2, 1)].into_iter()).is_empty());
        let next = Held {
            attempt: 1,
            ..h(2, 1)
        };
        assert!(o.look(at(119), [next].into_iter()).is_empty());
        assert!(o.look(at(178), [next].into_iter()).is_empty());
        assert_eq!(o.look(at(179), [next].into_iter()), [next]);
        assert!(o.look(at(180), [h(2, 2)].into_iter()).is_empty());
        assert!(o.look(at(200), [].into_iter()).is_empty());
        assert!(o.look(at(300), [h(2, 2)].into_iter()).is_empty());
        assert_eq!(o.tick(), Duration::from_secs(1));
    }
}
