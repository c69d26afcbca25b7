//! The states of a slot in the consumer, as types: free, posted, held, free.
//!
//! Runs in the consumer only. A slot number exists in one of these values at a time, and none can
//! be copied. So a slot that a batch uses cannot be posted, and a posted slot cannot be read.
//! Exception: a [`WatchedSlot`] reads the final rows of a posted or held slot one by one. The slot
//! is free after all of them are dropped.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::unistd::{Pid, getpid};

use crate::error::SampleFault;
use crate::pool::ring::consumer_side;
use crate::pool::ring::consumer_side::{SlotDamage, SlotWait};
use crate::pool::ring::region::Ring;
use crate::pool::ring::ticket::Ticket;
use crate::pool::ring::words::RingWords;

/// An unused slot.
#[derive(Debug)]
pub(crate) struct FreeSlot(u32);

/// A slot in use. It is free again after its last user is dropped and workers have finished with
/// it.
#[derive(Debug)]
struct SlotGuard {
    slot: u32,
    returned: Arc<FreeList>,
    /// No worker uses it now or later.
    is_unused: AtomicBool,
}

/// A slot that workers are filling.
#[derive(Debug)]
pub(crate) struct PostedSlot {
    taken: Arc<SlotGuard>,
    ticket: Ticket,
}

/// A ready slot. It is free again after it and its watchers are dropped.
#[derive(Debug)]
pub struct HeldSlot {
    taken: Arc<SlotGuard>,
    ticket: Ticket,
    ring: Arc<Ring>,
}

/// A slot whose rows are read as they become final.
#[derive(Debug)]
pub(crate) struct WatchedSlot {
    taken: Arc<SlotGuard>,
    ticket: Ticket,
    ring: Arc<Ring>,
}

/// Slots of dropped batches, from any thread.
#[derive(Debug)]
struct FreeList {
    slots: Mutex<Vec<FreeSlot>>,
    changed: Condvar,
    /// The process that owns the slots. In a forked copy the lock may belong to a thread that was
    /// not copied.
    owner: Pid,
}

/// All slots of a ring.
#[derive(Debug)]
pub(crate) struct RingSlots {
    ring: Arc<Ring>,
    returned: Arc<FreeList>,
}

impl RingSlots {
    /// Takes every slot of a new ring.
    pub(crate) fn new(ring: Ring) -> Self {
        let slots = (0..ring.layout().shape().slots).rev().map(FreeSlot);
        Self {
            returned: Arc::new(FreeList {
                slots: Mutex::new(slots.collect()),
                changed: Condvar::new(),
                owner: getpid(),
            }),
            ring: Arc::new(ring),
        }
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The ring, for users that keep the mapping longer than the slots.
    pub(crate) fn shared_ring(&self) -> Arc<Ring> {
        self.ring.clone()
    }

    /// A free slot, if there is one.
    pub(crate) fn take_free(&self) -> Option<FreeSlot> {
        self.returned.lock().pop()
    }

    /// Waits until a batch is dropped, at most `limit`. True if a slot is free.
    pub(crate) fn wait_free(&self, limit: Duration) -> bool {
        let slots = self.returned.lock();
        let (slots, _) = self
            .returned
            .changed
            .wait_timeout_while(slots, limit, |s| s.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        !slots.is_empty()
    }

    pub(crate) fn post(&self, free: FreeSlot, ticket: Ticket) -> PostedSlot {
        consumer_side::post(&self.ring.words(), self.ring.layout(), free.0, ticket);
        let taken = Arc::new(SlotGuard {
            slot: free.0,
            returned: self.returned.clone(),
            is_unused: AtomicBool::new(false),
        });
        PostedSlot { taken, ticket }
    }

    /// Gives access to final rows of a posted slot, while others are still open.
    pub(crate) fn watch(&self, posted: &PostedSlot) -> WatchedSlot {
        WatchedSlot {
            taken: posted.taken.clone(),
            ticket: posted.ticket,
            ring: self.ring.clone(),
        }
    }

    /// Waits once for a posted slot, at most `limit`.
    pub(crate) fn wait(&self, posted: &PostedSlot, limit: Duration) -> SlotWait {
        consumer_side::wait_ready(
            &self.ring.words(),
            self.ring.layout(),
            posted.slot(),
            posted.ticket,
            limit,
        )
    }

    /// Damage to a posted slot, if any.
    pub(crate) fn damage(&self, posted: &PostedSlot) -> Option<SlotDamage> {
        let (w, l) = (self.ring.words(), self.ring.layout());
        consumer_side::damage(&w, l, posted.slot(), posted.ticket)
    }

    /// Damage to a cancelled slot, if any.
    pub(crate) fn damage_of_cancelled(&self, draining: &[PostedSlot]) -> Option<SlotDamage> {
        let (w, l) = (self.ring.words(), self.ring.layout());
        draining.iter().find_map(|posted| {
            consumer_side::damage_of_cancelled(&w, l, posted.slot(), posted.ticket)
        })
    }

    /// Takes a ready slot for a batch, or returns it if it is not ready.
    pub(crate) fn hold(&self, posted: PostedSlot) -> Result<HeldSlot, PostedSlot> {
        let (w, l) = (self.ring.words(), self.ring.layout());
        if !consumer_side::is_ready(&w, l, posted.slot(), posted.ticket) {
            return Err(posted);
        }
        let PostedSlot { taken, ticket } = posted;
        taken.is_unused.store(true, Relaxed);
        Ok(HeldSlot {
            taken,
            ticket,
            ring: self.ring.clone(),
        })
    }

    /// Voids unclaimed rows of cancelled tickets. Slots that no worker uses become free. The others
    /// stay in `draining`, to be called again.
    pub(crate) fn drain(&self, draining: &mut Vec<PostedSlot>) {
        let (w, l) = (self.ring.words(), self.ring.layout());
        draining.retain(|posted| {
            let idle = consumer_side::drain(&w, l, posted.slot(), posted.ticket);
            if idle {
                consumer_side::retire(&w, l, posted.slot());
                posted.taken.is_unused.store(true, Relaxed);
            }
            // A removed slot is free, or becomes free when its last watcher is dropped.
            !idle
        });
    }

    /// Waits once for a cancelled slot, at most `limit`: reads the word, drains all, sleeps on that
    /// value if none became free.
    pub(crate) fn wait_drained(&self, draining: &mut Vec<PostedSlot>, limit: Duration) -> SlotWait {
        let (w, l) = (self.ring.words(), self.ring.layout());
        let done = w.load(l.done(), Acquire);
        let before = draining.len();
        self.drain(draining);
        if draining.len() < before {
            return SlotWait::Ready;
        }
        if w.load(l.fatal(), Acquire) != 0 {
            return SlotWait::Fatal;
        }
        w.wait(l.done(), done, limit);
        SlotWait::Again
    }
}

impl PostedSlot {
    fn slot(&self) -> u32 {
        self.taken.slot
    }
}

impl WatchedSlot {
    /// Whether a row is final.
    pub(crate) fn is_final(&self, row: u32) -> bool {
        let (w, l) = (self.ring.words(), self.ring.layout());
        consumer_side::is_final(&w, l, self.taken.slot, row, self.ticket)
    }

    /// How a final row ended, see [`HeldSlot::final_attempt`].
    pub(crate) fn final_attempt(&self, row: u32, tries: u32) -> Option<Option<u32>> {
        let (w, l) = (self.ring.words(), self.ring.layout());
        consumer_side::final_attempt(&w, l, (self.taken.slot, row), &self.ticket, tries)
    }

    /// Copies bytes of the slot, see [`Ring::copy`].
    pub(crate) fn copy(&self, from: usize, to: &mut [u8]) -> bool {
        self.ring.copy(self.taken.slot, from, to)
    }

    /// Address and length of the slot.
    pub(crate) fn memory(&self) -> (*const u8, usize) {
        self.ring.slot_memory(self.taken.slot)
    }
}

impl HeldSlot {
    /// Gives access to its rows independently of this value.
    pub(crate) fn watch(&self) -> WatchedSlot {
        WatchedSlot {
            taken: self.taken.clone(),
            ticket: self.ticket,
            ring: self.ring.clone(),
        }
    }

    /// The bytes of the slot. Bytes of failed rows and between rows are undefined.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `hold` saw every row of the ticket final, and the slot cannot
        // be posted again before `self`, which the slice borrows, is dropped.
        unsafe { self.ring.slot_bytes(self.taken.slot) }
    }

    /// Copies bytes of the slot, see [`Ring::copy`].
    pub(crate) fn copy(&self, from: usize, to: &mut [u8]) -> bool {
        self.ring.copy(self.taken.slot, from, to)
    }

    /// Writes bytes of the slot, see [`Ring::write`]. Watchers may read them meanwhile.
    pub(crate) fn write(&mut self, from: usize, bytes: &[u8]) -> bool {
        self.ring.write(self.taken.slot, from, bytes)
    }

    /// Damage to the ticket or its rows, if any.
    pub(crate) fn damage(&self) -> Option<SlotDamage> {
        let (w, l) = (self.ring.words(), self.ring.layout());
        consumer_side::damage(&w, l, self.taken.slot, self.ticket)
    }

    /// Prevents further claims, even if a row word is overwritten.
    pub(crate) fn retire(&self) {
        consumer_side::retire(&self.ring.words(), self.ring.layout(), self.taken.slot);
    }

    /// How a row ended; `tries` is the last attempt. `None` if it was damaged. See
    /// [`consumer_side::final_attempt`].
    pub(crate) fn final_attempt(&self, row: u32, tries: u32) -> Option<Option<u32>> {
        let (w, l) = (self.ring.words(), self.ring.layout());
        consumer_side::final_attempt(&w, l, (self.taken.slot, row), &self.ticket, tries)
    }

    pub(crate) fn fault(&self, row: u32) -> SampleFault {
        self.ring.read_fault(self.taken.slot, row)
    }

    /// Offset and length of its bytes in `ring`; `None` if the slot belongs to another ring.
    pub(crate) fn place_in(&self, ring: &Arc<Ring>) -> Option<(usize, usize)> {
        Arc::ptr_eq(&self.ring, ring).then(|| ring.layout().slot_data(self.taken.slot))
    }

    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Like [`HeldSlot::bytes`], but mutable. Empty while the slot is watched.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // No watcher can be added: that would borrow `self`.
        if Arc::get_mut(&mut self.taken).is_none() {
            return &mut [];
        }
        // SAFETY: as in `bytes`. Slices of the slot borrow `self`, of which this is the only
        // borrow, or a watcher, and there is none by the line above.
        unsafe { self.ring.slot_bytes_mut(self.taken.slot) }
    }
}

impl AsRef<[u8]> for HeldSlot {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        if self.is_unused.load(Relaxed) && getpid() == self.returned.owner {
            self.returned.put(self.slot);
        }
    }
}

impl FreeList {
    fn lock(&self) -> MutexGuard<'_, Vec<FreeSlot>> {
        // The list is valid between any two operations, so a poisoned lock is harmless.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, slot: u32) {
        self.lock().push(FreeSlot(slot));
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::ring::RingShape;
    use crate::pool::ring::attempt;
    use crate::pool::ring::receipt;
    use crate::pool::ring::row_word::{RowState, RowWord};
    use crate::pool::ring::ticket::BatchKey;
    use crate::pool::ring::worker_side;
    use crate::pool::ring::worker_side::{RowOutcome, WorkerStep};

    fn slots() -> RingSlots {
        RingSlots::new(
            Ring::create(RingShape {
                slots: 2,
                rows: 3,
                slot_bytes: 48,
                lanes: 1,
            })
            .unwrap(),
        )
    }

    fn ticket(sequence: u32, rows: u32) -> Ticket {
        Ticket {
            sequence,
            key: BatchKey([0, 0]),
            rows,
        }
    }

    fn fill_one(s: &RingSlots, byte: u8, outcome: RowOutcome) {
        let (w, l) = (s.ring().words(), s.ring().layout());
        let WorkerStep::Fill(c) = worker_side::next(&w, l, 1, Duration::ZERO, None) else {
            panic!("nothing to fill");
        };
        let place = c.row as usize * 16..(c.row as usize + 1) * 16;
        // SAFETY: claimed just above; the places of these tests are 16 bytes each.
        unsafe { s.ring().row_mut(&c, place) }.unwrap().fill(byte);
        let filled = (outcome == RowOutcome::Done).then_some(0);
        receipt::write(&w, l, (c.slot, c.row), &c.ticket, filled);
        worker_side::commit(&w, l, 1, c, outcome).unwrap();
    }

    #[test]
    fn a_slot_goes_round() {
        let s = slots();
        for sequence in 1..10 {
            let posted = s.post(s.take_free().unwrap(), ticket(sequence, 2));
            assert_eq!(s.wait(&posted, Duration::ZERO), SlotWait::Again);
            fill_one(&s, 7, RowOutcome::Done);
            let posted = s.hold(posted).unwrap_err();
            fill_one(&s, 8, RowOutcome::Failed);
            assert_eq!(s.wait(&posted, Duration::ZERO), SlotWait::Ready);
            let mut taken_slot = s.hold(posted).unwrap();
            assert_eq!(taken_slot.bytes()[..16], [7; 16]);
            assert_eq!(taken_slot.bytes()[16..32], [8; 16]);
            taken_slot.bytes_mut()[16..].fill(0);
            assert_eq!(taken_slot.bytes()[16..], [0; 32]);
            assert_eq!(
                (
                    taken_slot.final_attempt(0, 0),
                    taken_slot.final_attempt(1, 0)
                ),
                (Some(Some(0)), Some(None))
            );
        }
    }

    #[test]
    fn a_place_outside_of_the_slot_is_refused() {
        let s = slots();
        let _posted = s.post(s.take_free().unwrap(), ticket(1, 1));
        let (w, l) = (s.ring().words(), s.ring().layout());
        let WorkerStep::Fill(c) = worker_side::next(&w, l, 1, Duration::ZERO, None) else {
            panic!("nothing to fill");
        };
        for (place, fits) in [
            (0..48, true),
            (32..48, true),
            (48..48, true),
            (32..49, false),
        ] {
            // SAFETY: claimed just above; no other process has rows.
            let row = unsafe { s.ring().row_mut(&c, place.clone()) };
            assert_eq!(row.is_ok(), fits, "{place:?}");
        }
    }

    fn scribble(s: &RingSlots, at: usize, word: u64) -> u64 {
        let w = s.ring().words();
        let before = w.load(at, std::sync::atomic::Ordering::Acquire);
        w.store(at, word, std::sync::atomic::Ordering::Release);
        before
    }

    #[test]
    fn destroyed_tickets_rows_and_attempts_are_found() {
        let s = slots();
        let posted = s.post(s.take_free().unwrap(), ticket(1, 3));
        assert_eq!(s.damage(&posted), None);
        fill_one(&s, 7, RowOutcome::Done);
        assert_eq!(s.damage(&posted), None);
        let l = *s.ring().layout();
        let owned = RowWord::new(RowState::Open, 4, 1).pack();
        for scribbled in [0, u64::MAX, 9 << 56 | 1, owned] {
            let before = scribble(&s, l.row(posted.slot(), 1), scribbled);
            assert_eq!(s.damage(&posted), Some(SlotDamage::Row(1)));
            scribble(&s, l.row(posted.slot(), 1), before);
        }
        let at = attempt::word(&l, posted.slot(), 2);
        let before = scribble(&s, at, 3 << 32 | 1);
        assert_eq!(s.damage(&posted), Some(SlotDamage::Row(2)));
        scribble(&s, at, before);
        use crate::pool::ring::layout::ticket_word::{KEY, ROWS, SEQUENCE};
        for word in [SEQUENCE, KEY[0], KEY[1], ROWS] {
            for other in [2, u64::MAX] {
                let before = scribble(&s, l.ticket(posted.slot(), word), other);
                assert_eq!(s.damage(&posted), Some(SlotDamage::Ticket), "{word}");
                scribble(&s, l.ticket(posted.slot(), word), before);
            }
        }
        assert_eq!(s.damage(&posted), None);
        let mut draining = vec![posted];
        assert_eq!(
            s.wait_drained(&mut draining, Duration::ZERO),
            SlotWait::Ready
        );
    }

    #[test]
    fn a_cancelled_slot_whose_row_is_destroyed_is_found() {
        for scribbled in [
            RowWord::open(7).pack(),
            RowWord::claimed(1, 9).pack(),
            77 << 56,
            RowWord::new(RowState::Open, 4, 1).pack(),
        ] {
            let s = slots();
            let posted = s.post(s.take_free().unwrap(), ticket(1, 3));
            let WorkerStep::Fill(_) = worker_side::next(
                &s.ring().words(),
                s.ring().layout(),
                1,
                Duration::ZERO,
                None,
            ) else {
                panic!("nothing to fill");
            };
            let mut draining = vec![posted];
            assert_eq!(
                s.wait_drained(&mut draining, Duration::ZERO),
                SlotWait::Again
            );
            assert_eq!(s.damage_of_cancelled(&draining), None);
            let at = s.ring().layout().row(draining[0].slot(), 2);
            scribble(&s, at, scribbled);
            let found = s.damage_of_cancelled(&draining);
            assert_eq!(found, Some(SlotDamage::Row(2)));
        }
    }

    #[test]
    fn a_cancelled_slot_is_not_free_while_a_destroyed_word_hides_who_is_at_it() {
        for scribbled in [0, RowWord::void(7).pack(), 77 << 56 | 1] {
            let s = slots();
            let posted = s.post(s.take_free().unwrap(), ticket(1, 3));
            let (w, l) = (s.ring().words(), s.ring().layout());
            let WorkerStep::Fill(c) = worker_side::next(&w, l, 1, Duration::ZERO, None) else {
                panic!("nothing to fill");
            };
            let mut draining = vec![posted];
            s.drain(&mut draining);
            scribble(&s, l.row(c.slot, c.row), scribbled);
            s.drain(&mut draining);
            let found = s.damage_of_cancelled(&draining);
            assert_eq!(found, Some(SlotDamage::Row(c.row)));
        }
    }

    #[test]
    fn nobody_claims_a_row_of_a_slot_that_is_handed_over_or_free() {
        let s = slots();
        let posted = s.post(s.take_free().unwrap(), ticket(1, 1));
        fill_one(&s, 7, RowOutcome::Done);
        let (w, l) = (s.ring().words(), s.ring().layout());
        let row = l.row(posted.slot(), 0);
        let taken_slot = s.hold(posted).unwrap();
        assert_eq!(taken_slot.damage(), None);
        taken_slot.retire();
        let next = || worker_side::next(&w, l, 1, Duration::ZERO, None);
        scribble(&s, row, RowWord::open(1).pack());
        assert_eq!(next(), WorkerStep::Again);
        let posted = s.post(s.take_free().unwrap(), ticket(2, 1));
        let row = l.row(posted.slot(), 0);
        s.drain(&mut vec![posted]);
        scribble(&s, row, RowWord::open(2).pack());
        assert_eq!(next(), WorkerStep::Again);
    }

    #[test]
    fn a_row_that_does_not_say_how_it_ended_is_destroyed() {
        let s = slots();
        let t = ticket(1, 3);
        let posted = s.post(s.take_free().unwrap(), t);
        let (w, l) = (s.ring().words(), *s.ring().layout());
        for filled in [Some(0), None, Some(0)] {
            let WorkerStep::Fill(c) = worker_side::next(&w, &l, 1, Duration::ZERO, None) else {
                panic!("nothing to fill");
            };
            receipt::write(&w, &l, (c.slot, c.row), &c.ticket, filled);
            let outcome = filled.map_or(RowOutcome::Failed, |_| RowOutcome::Done);
            worker_side::commit(&w, &l, 1, c, outcome).unwrap();
        }
        let slot = posted.slot();
        let taken_slot = s.hold(posted).unwrap();
        assert_eq!(taken_slot.final_attempt(0, 8), Some(Some(0)));
        assert_eq!(taken_slot.final_attempt(1, 8), Some(None));
        // Marked failed, marked filled, at another attempt, of another sample.
        scribble(
            &s,
            l.row(slot, 0),
            RowWord::new(RowState::Failed, 1, 1).pack(),
        );
        assert_eq!(taken_slot.final_attempt(0, 8), None);
        scribble(
            &s,
            l.row(slot, 1),
            RowWord::new(RowState::Done, 1, 1).pack(),
        );
        assert_eq!(taken_slot.final_attempt(1, 8), None);
        scribble(&s, attempt::word(&l, slot, 2), attempt::pack(1, 2));
        assert_eq!(taken_slot.final_attempt(2, 8), None);
        scribble(&s, attempt::word(&l, slot, 2), 0);
        assert_eq!(taken_slot.final_attempt(2, 8), Some(Some(0)));
        let key = BatchKey([0, 5]);
        receipt::write(&w, &l, (slot, 2), &Ticket { key, ..t }, Some(0));
        assert_eq!(taken_slot.final_attempt(2, 8), None);
    }

    #[test]
    fn a_held_slot_is_not_free() {
        let s = slots();
        let mut taken_slot = Vec::new();
        for sequence in 1..=2 {
            let posted = s.post(s.take_free().unwrap(), ticket(sequence, 1));
            fill_one(&s, 1, RowOutcome::Done);
            taken_slot.push(s.hold(posted).unwrap());
        }
        assert!(s.take_free().is_none());
        assert!(!s.wait_free(Duration::from_millis(5)));
        taken_slot.pop();
        assert!(s.wait_free(Duration::from_millis(5)));
        assert!(s.take_free().is_some());
    }

    #[test]
    fn rows_of_a_watched_slot_are_seen_one_by_one_and_stay() {
        let s = slots();
        let posted = s.post(s.take_free().unwrap(), ticket(1, 3));
        let watched = s.watch(&posted);
        let are_final = |w: &WatchedSlot| [0, 1, 2].map(|row| w.is_final(row));
        assert_eq!(are_final(&watched), [false; 3]);
        fill_one(&s, 7, RowOutcome::Done);
        fill_one(&s, 8, RowOutcome::Failed);
        assert_eq!(are_final(&watched), [true, true, false]);
        assert_eq!(
            (watched.final_attempt(0, 0), watched.final_attempt(1, 0)),
            (Some(Some(0)), Some(None))
        );
        let mut row = [0; 16];
        assert!(watched.copy(0, &mut row));
        assert_eq!(row, [7; 16]);
        assert!(!watched.copy(48, &mut [0]));
        // A word that the protocol does not write does not count as final.
        let at = s.ring().layout().row(posted.slot(), 0);
        let before = scribble(&s, at, RowWord::void(1).pack());
        assert!(!watched.is_final(0));
        scribble(&s, at, before);
        fill_one(&s, 9, RowOutcome::Done);
        let mut taken_slot = s.hold(posted).unwrap();
        assert!(taken_slot.bytes_mut().is_empty());
        let _other = s.take_free().unwrap();
        drop(taken_slot);
        assert!(s.take_free().is_none());
        drop(watched);
        assert!(s.take_free().is_some());
    }

    #[test]
    fn a_watched_slot_that_is_cancelled_is_free_when_workers_and_watchers_are_over() {
        for watcher_is_last in [false, true] {
            let s = slots();
            let posted = s.post(s.take_free().unwrap(), ticket(1, 2));
            let _other = s.take_free().unwrap();
            let mut watched = Some(s.watch(&posted));
            let (w, l) = (s.ring().words(), s.ring().layout());
            let WorkerStep::Fill(c) = worker_side::next(&w, l, 1, Duration::ZERO, None) else {
                panic!("nothing to fill");
            };
            let mut draining = vec![posted];
            s.drain(&mut draining);
            assert_eq!(draining.len(), 1);
            if !watcher_is_last {
                watched = None;
                assert!(s.take_free().is_none());
            }
            worker_side::commit(&w, l, 1, c, RowOutcome::Done).unwrap();
            s.drain(&mut draining);
            assert!(draining.is_empty());
            assert_eq!(s.take_free().is_none(), watcher_is_last);
            drop(watched);
            assert_eq!(s.take_free().is_some(), watcher_is_last);
        }
    }

    #[test]
    fn a_forked_copy_waits_for_no_lock() {
        let mut s = slots();
        let returned = Arc::get_mut(&mut s.returned).unwrap();
        returned.owner = Pid::from_raw(1);
        let posted = s.post(s.take_free().unwrap(), ticket(1, 1));
        fill_one(&s, 1, RowOutcome::Done);
        let taken_slot = s.hold(posted).unwrap();
        let _taken = s.returned.lock();
        drop(taken_slot);
    }

    #[test]
    fn a_cancelled_slot_is_free_once_nobody_is_at_it() {
        let s = slots();
        let posted = s.post(s.take_free().unwrap(), ticket(1, 3));
        let (w, l) = (s.ring().words(), s.ring().layout());
        let WorkerStep::Fill(c) = worker_side::next(&w, l, 1, Duration::ZERO, None) else {
            panic!("nothing to fill");
        };
        let mut draining = vec![posted];
        assert_eq!(
            s.wait_drained(&mut draining, Duration::ZERO),
            SlotWait::Again
        );
        assert_eq!(draining.len(), 1);
        assert_eq!(
            worker_side::next(&w, l, 1, Duration::ZERO, None),
            WorkerStep::Again
        );
        worker_side::commit(&w, l, 1, c, RowOutcome::Done).unwrap();
        assert_eq!(
            s.wait_drained(&mut draining, Duration::ZERO),
            SlotWait::Ready
        );
        assert!(draining.is_empty());
        assert!(s.take_free().is_some() && s.take_free().is_some());
    }
}
