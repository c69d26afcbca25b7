//! Rings with slots that look as workers leave them, for the tests of the stages.

use std::sync::Arc;
use std::time::Duration;

use crate::pool::ring::slots::{HeldSlot, RingSlots};
use crate::pool::ring::ticket::{BatchKey, Ticket};
use crate::pool::ring::worker_side;
use crate::pool::ring::worker_side::{RowOutcome, WorkerStep};
use crate::pool::ring::{Ring, RingShape};

pub(in crate::device::cuda) struct TestRing {
    slots: RingSlots,
    rows: u32,
    sequence: u32,
}

impl TestRing {
    pub(in crate::device::cuda) fn new(slots: u32, rows: u32, slot_bytes: usize) -> Self {
        let ring = Ring::create(RingShape {
            slots,
            rows,
            slot_bytes: slot_bytes as u64,
            lanes: 1,
        })
        .unwrap();
        ring.allocate_rest().unwrap();
        Self {
            slots: RingSlots::new(ring),
            rows,
            sequence: 0,
        }
    }

    pub(in crate::device::cuda) fn ring(&self) -> Arc<Ring> {
        self.slots.shared_ring()
    }

    /// True when a slot is neither held nor under way.
    pub(in crate::device::cuda) fn has_free(&self) -> bool {
        self.slots.wait_free(Duration::ZERO)
    }

    /// How many slots are neither held nor under way. They are gone after this.
    pub(in crate::device::cuda) fn into_free(self) -> usize {
        std::iter::from_fn(|| self.slots.take_free()).count()
    }

    /// A ready slot with these bytes at its beginning.
    pub(in crate::device::cuda) fn held_slot(&mut self, bytes: &[u8]) -> HeldSlot {
        self.sequence += 1;
        let free = self.slots.take_free().expect("a free slot");
        let ticket = Ticket {
            sequence: self.sequence,
            key: BatchKey([0, 0]),
            rows: self.rows,
        };
        let posted = self.slots.post(free, ticket);
        let (w, l) = (self.slots.ring().words(), self.slots.ring().layout());
        for _ in 0..self.rows {
            let WorkerStep::Fill(claim) = worker_side::next(&w, l, 1, Duration::ZERO, None) else {
                panic!("nothing to fill");
            };
            worker_side::commit(&w, l, 1, claim, RowOutcome::Done).unwrap();
        }
        let mut slot = self.slots.hold(posted).unwrap();
        slot.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        slot
    }
}
