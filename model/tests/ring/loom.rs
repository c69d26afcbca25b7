//! Checks the order of memory operations, which the explorer cannot.
//!
//! Runs the production functions on loom's atomics. A load there may return every value that the
//! C11 model allows. Small parts only: post, claim, write, commit, read; two commits at once; a
//! commit during a drain. Bytes of rows are Relaxed atomics, so that a missing Release or Acquire
//! shows as a stale value. A wait is a yield; the explorer checks sleeps and wakes.
//!
//! A limit of loom: after a yield, a load does not return a value that the thread saw before. So
//! repeated reads hide stale values, and the tests that must detect them read once.
//!
//! loom is a plain development dependency here, without `--cfg loom`. The number of preemptions is
//! bounded by [`PREEMPTIONS`]. Deaths are not modelled.

use std::sync::Arc;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed};
use std::time::Duration;

use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;

use crate::memory::{Place, Places, payload};
use crate::pool::ring::consumer_side;
use crate::pool::ring::layout::{RingLayout, RingShape};
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::pool::ring::ticket::{BatchKey, Ticket};
use crate::pool::ring::words::{RingWords, WordIndex};
use crate::pool::ring::worker_side;
use crate::pool::ring::worker_side::{RowClaim, RowOutcome, WorkerStep};

/// Enough for every planted fault here.
const PREEMPTIONS: usize = 3;

/// Which orderings are weakened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weak {
    Nothing,
    /// Acquire loads are Relaxed.
    Acquire,
    /// Full fences do nothing.
    Fence,
}

/// The words of a small ring, as loom's atomics.
struct LoomWords {
    places: Places,
    words: Vec<AtomicU64>,
    weak: Weak,
}

impl LoomWords {
    fn new(l: &RingLayout, weak: Weak) -> Self {
        let places = Places::new(l);
        Self {
            words: places.fresh().into_iter().map(AtomicU64::new).collect(),
            places,
            weak,
        }
    }

    fn at(&self, word: WordIndex) -> &AtomicU64 {
        &self.words[self.places.index(word)]
    }
}

impl RingWords for LoomWords {
    fn load(&self, word: WordIndex, order: Ordering) -> u64 {
        let row = matches!(self.places.place(word), Place::Row(..));
        let weak = self.weak == Weak::Acquire && row;
        self.at(word).load(if weak { Relaxed } else { order })
    }

    fn store(&self, word: WordIndex, value: u64, order: Ordering) {
        self.at(word).store(value, order);
    }

    fn compare_exchange(&self, word: WordIndex, current: u64, new: u64) -> Result<u64, u64> {
        self.at(word)
            .compare_exchange(current, new, Ordering::SeqCst, Acquire)
    }

    fn fetch_add(&self, word: WordIndex, value: u64) -> u64 {
        self.at(word).fetch_add(value, Ordering::SeqCst)
    }

    fn full_fence(&self) {
        if self.weak != Weak::Fence {
            fence(Ordering::SeqCst);
        }
    }

    fn wait(&self, _: WordIndex, _: u64, _: Duration) {
        thread::yield_now();
    }

    fn wake_all(&self, _: WordIndex) {}
}

const TICKET: Ticket = Ticket {
    sequence: 1,
    key: BatchKey([7, 8]),
    rows: 2,
};

fn bytes(row: u32) -> u64 {
    100 + u64::from(row)
}

/// Runs `scene` under loom, in every order that the preemption bound allows.
fn model(weak: Weak, scene: fn(Arc<LoomWords>, RingLayout)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(move || {
        let l = RingLayout::new(RingShape {
            slots: 1,
            rows: 2,
            slot_bytes: 16,
            lanes: 2,
        })
        .expect("a small ring");
        scene(Arc::new(LoomWords::new(&l, weak)), l);
    });
}

/// A worker that fills `rows` rows.
fn work(w: &LoomWords, l: &RingLayout, serial: u32, rows: usize) {
    let mut filled = 0;
    while filled < rows {
        match worker_side::next(w, l, serial, Duration::MAX, None) {
            WorkerStep::Fill(claim) => {
                assert_eq!(claim.ticket, TICKET);
                w.store(payload(l, claim.slot, claim.row), bytes(claim.row), Relaxed);
                worker_side::commit(w, l, serial, claim, RowOutcome::Done).expect("it is ours");
                filled += 1;
            }
            WorkerStep::Again => {}
            WorkerStep::Stop => panic!("nobody stops here"),
        }
    }
}

/// The consumer, until it has read the batch.
fn consume(w: &LoomWords, l: &RingLayout) {
    while !consumer_side::is_ready(w, l, 0, TICKET) {
        thread::yield_now();
    }
    for row in 0..TICKET.rows {
        assert_eq!(
            w.load(payload(l, 0, row), Relaxed),
            bytes(row),
            "stale bytes"
        );
    }
}

/// One worker holds the last open row; the consumer checks once.
fn fill_and_look_once(w: Arc<LoomWords>, l: RingLayout) {
    consumer_side::post(&*w, &l, 0, TICKET);
    let claims = [claimed(&w, &l, 1, 0), claimed(&w, &l, 1, 1)];
    let worker = {
        let w = w.clone();
        thread::spawn(move || {
            for c in claims {
                w.store(payload(&l, c.slot, c.row), bytes(c.row), Relaxed);
                worker_side::commit(&*w, &l, 1, c, RowOutcome::Done).expect("it is ours");
            }
        })
    };
    if consumer_side::is_ready(&*w, &l, 0, TICKET) {
        consume(&w, &l);
    }
    worker.join().expect("the worker ends");
}

/// The ticket is posted while the worker searches; the batch is read.
fn post_fill_read(w: Arc<LoomWords>, l: RingLayout) {
    let worker = {
        let w = w.clone();
        thread::spawn(move || work(&w, &l, 1, 2))
    };
    consumer_side::post(&*w, &l, 0, TICKET);
    consume(&w, &l);
    worker.join().expect("the worker ends");
}

/// Two workers share a posted batch.
fn two_fill_one_reads(w: Arc<LoomWords>, l: RingLayout) {
    consumer_side::post(&*w, &l, 0, TICKET);
    let workers = [1, 2].map(|serial| {
        let w = w.clone();
        thread::spawn(move || work(&w, &l, serial, 1))
    });
    consume(&w, &l);
    for worker in workers {
        worker.join().expect("the worker ends");
    }
}

/// A claimed row of the ticket.
fn claimed(w: &LoomWords, l: &RingLayout, serial: u32, row: u32) -> RowClaim {
    let word = RowWord::claimed(serial, TICKET.sequence).pack();
    w.store(l.row(0, row), word, Ordering::Release);
    RowClaim {
        slot: 0,
        row,
        ticket: TICKET,
        attempt: 0,
    }
}

/// The last two rows are committed at once: one of the workers must wake the consumer.
fn two_commits(w: Arc<LoomWords>, l: RingLayout) {
    consumer_side::post(&*w, &l, 0, TICKET);
    let before = w.load(l.done(), Acquire);
    let claims = [claimed(&w, &l, 1, 0), claimed(&w, &l, 2, 1)];
    let other = {
        let w = w.clone();
        thread::spawn(move || {
            worker_side::commit(&*w, &l, 1, claims[0], RowOutcome::Done).expect("it is ours");
        })
    };
    worker_side::commit(&*w, &l, 2, claims[1], RowOutcome::Done).expect("it is ours");
    other.join().expect("the worker ends");
    assert_ne!(
        w.load(l.done(), Acquire),
        before,
        "nobody wakes the consumer"
    );
}

/// A commit while the ticket is cancelled: the consumer sees the slot idle, or is woken.
fn commit_against_drain(w: Arc<LoomWords>, l: RingLayout) {
    consumer_side::post(&*w, &l, 0, TICKET);
    let before = w.load(l.done(), Acquire);
    let claim = claimed(&w, &l, 1, 0);
    let worker = {
        let w = w.clone();
        thread::spawn(move || {
            worker_side::commit(&*w, &l, 1, claim, RowOutcome::Done).expect("it is ours");
        })
    };
    let idle = consumer_side::drain(&*w, &l, 0, TICKET);
    worker.join().expect("the worker ends");
    let woken = w.load(l.done(), Acquire) != before;
    assert!(idle || woken, "nobody wakes the consumer");
    let other = RowWord::unpack(w.load(l.row(0, 1), Acquire));
    assert_eq!(other.state, RowState::Void);
}

#[test]
fn bytes_are_seen_with_the_commit() {
    model(Weak::Nothing, post_fill_read);
}

#[test]
fn bytes_are_seen_at_the_first_look() {
    model(Weak::Nothing, fill_and_look_once);
}

#[test]
fn bytes_of_two_workers_are_seen() {
    model(Weak::Nothing, two_fill_one_reads);
}

#[test]
fn one_of_two_last_commits_wakes() {
    model(Weak::Nothing, two_commits);
}

#[test]
fn a_drained_slot_is_idle_or_wakes() {
    model(Weak::Nothing, commit_against_drain);
}

#[test]
#[should_panic(expected = "stale bytes")]
fn readiness_without_acquire_is_found() {
    model(Weak::Acquire, fill_and_look_once);
}

#[test]
#[should_panic(expected = "nobody wakes the consumer")]
fn a_commit_without_fence_is_found() {
    model(Weak::Fence, two_commits);
}

#[test]
#[should_panic(expected = "nobody wakes the consumer")]
fn a_drain_without_fence_is_found() {
    model(Weak::Fence, commit_against_drain);
}
