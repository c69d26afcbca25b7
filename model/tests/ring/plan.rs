//! Configuration of an exploration: size of the ring, tickets of the consumer, allowed failures.

use crate::faults::Fault;
use crate::pool::ring::ticket::{BatchKey, Ticket};

/// One epoch of the consumer's plan.
#[derive(Debug, Clone)]
pub(crate) struct Epoch {
    /// Rows of each ticket.
    pub(crate) tickets: Vec<u32>,
    /// Number of delivered tickets after which the epoch is cancelled.
    pub(crate) break_after: Option<usize>,
}

/// Configuration of an exploration: size of the ring, tickets of the consumer, allowed failures.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) workers: u32,
    pub(crate) slots: u32,
    pub(crate) rows: u32,
    pub(crate) epochs: Vec<Epoch>,
    /// Batches that the consumer keeps while it waits for the next.
    pub(crate) hold: usize,
    /// Workers that may die, each between any two operations.
    pub(crate) worker_deaths: u8,
    pub(crate) coordinator_dies: bool,
    pub(crate) consumer_dies: bool,
    /// Sleepers that may wake spuriously.
    pub(crate) spurious_wakes: u8,
    /// The attempt of a dead worker fails: its row advances to the next attempt, or fails after the
    /// last. Otherwise the row is reopened as it is.
    pub(crate) quarantine: bool,
    /// Number of substitutes for a row's own sample.
    pub(crate) tries: u32,
    /// Number of attempts, from the first, that fail.
    pub(crate) bad: u32,
    /// The coordinator fails the pool at this death.
    pub(crate) give_up_at: Option<u32>,
    /// Workers prefer some rows.
    pub(crate) prefers: bool,
    pub(crate) fault: Fault,
    /// Check every change of a row word or payload by `properties::row_rules`.
    pub(crate) row_rules: bool,
    /// Merge states that differ only in values that are never read. Off only to test that.
    pub(crate) merge: bool,
}

impl Config {
    /// Every ticket, in sequence from 1. Its key is epoch and number.
    pub(crate) fn ticket(&self, index: usize) -> Ticket {
        let mut first = 0;
        for (epoch, e) in self.epochs.iter().enumerate() {
            if let Some(&rows) = e.tickets.get(index - first) {
                return Ticket {
                    sequence: index as u32 + 1,
                    key: BatchKey([epoch as u64, (index - first) as u64]),
                    rows,
                };
            }
            first += e.tickets.len();
        }
        panic!("the plan has no ticket {index}")
    }

    pub(crate) fn tickets(&self) -> usize {
        self.epochs.iter().map(|e| e.tickets.len()).sum()
    }

    pub(crate) fn first_of(&self, epoch: usize) -> usize {
        self.epochs[..epoch].iter().map(|e| e.tickets.len()).sum()
    }

    /// Tickets known before anything beyond `deliver` is delivered: up to the end of the first
    /// epoch that will be cancelled.
    pub(crate) fn known(&self, deliver: usize) -> usize {
        (0..self.epochs.len())
            .find(|&e| self.epochs[e].break_after.is_some() && deliver < self.first_of(e + 1))
            .map_or(self.tickets(), |e| self.first_of(e + 1))
    }

    /// The next ticket if the epoch is cancelled before `deliver`.
    pub(crate) fn break_at(&self, deliver: usize) -> Option<usize> {
        (0..self.epochs.len())
            .find(|&e| self.epochs[e].break_after.map(|k| self.first_of(e) + k) == Some(deliver))
            .map(|e| self.first_of(e + 1))
    }
}
