//! Where a worker's time goes.
//!
//! Runs in workers, and in the consumer with zero workers. Plain counters, no
//! shared memory: the worker's loop copies them into its record.

use serde::{Deserialize, Serialize};

use crate::sys::clock::monotonic_ns;

/// The stages of a sample, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// Nothing to claim: the consumer is slower.
    Idle = 0,
    /// Open, map, header.
    Open = 1,
    /// Entropy decoding, IDCT, colour.
    Decode = 2,
    /// Resampling.
    Resample = 3,
    /// Flip, normalise, cast, layout.
    Emit = 4,
}

pub(crate) const STAGES: usize = 5;

/// Counters of one worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    pub(crate) ns: [u64; STAGES],
    /// Encoded bytes of the files that were decoded.
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    /// Rows whose crop had no room to be handed over, and was resized here.
    pub(crate) resized: u64,
    mark: u64,
}

impl Meter {
    /// Starts the clock of the first stage.
    pub(crate) fn start(&mut self) {
        self.mark = monotonic_ns();
    }

    /// Ends a stage and starts the next.
    pub(crate) fn lap(&mut self, stage: Stage) {
        let now = monotonic_ns();
        self.ns[stage as usize] += now.saturating_sub(self.mark);
        self.mark = now;
    }
}
