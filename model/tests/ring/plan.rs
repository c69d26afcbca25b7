//! What is run: the ring's size, the consumer's tickets, what may go wrong.

use crate::faults::Fault;
use crate::pool::ring::ticket::{BatchKey, Ticket};

/// One epoch of the consumer's plan.
#[derive(Debug, Clone)]
pub(crate) struct Epoch {
    /// Rows of each ticket.
    pub(crate) tickets: Vec<u32>,
    /// Broken off when so many of its tickets were delivered.
    pub(crate) break_after: Option<usize>,
}

/// What is run: the ring's size, the consumer's plan, what may go wrong.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) workers: u32,
    pub(crate) slots: u32,
    pub(crate) rows: u32,
    pub(crate) epochs: Vec<Epoch>,
    /// Batches that the consumer keeps while it asks for the next.
    pub(crate) hold: usize,
    /// Workers that may die, each between any two operations.
    pub(crate) worker_deaths: u8,
    pub(crate) coordinator_dies: bool,
    pub(crate) consumer_dies: bool,
    /// Sleepers that may wake for no reason.
    pub(crate) spurious_wakes: u8,
    /// What a dead worker had under way is given up: its row moves on to the next
    /// attempt, or fails behind the last. Otherwise the row is returned as it is.
    pub(crate) quarantine: bool,
    /// Attempts behind a row's first.
    pub(crate) tries: u32,
    /// Attempts, from the first, that give no pixels.
    pub(crate) bad: u32,
    /// The coordinator gives the pool up at this death.
    pub(crate) give_up_at: Option<u32>,
    /// Workers would rather have some rows than others.
    pub(crate) prefers: bool,
    pub(crate) fault: Fault,
    /// Check every change of a row word or payload by `properties::row_rules`.
    pub(crate) row_rules: bool,
    /// Take states for the same that differ only in what nobody looks at; off
    /// to check just that.
    pub(crate) merge: bool,
}

impl Config {
    /// Every ticket, in sequence from 1; its key is epoch and number.
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

    /// Tickets known before anything beyond `deliver` is delivered: up to the
    /// end of the first epoch that will be broken off.
    pub(crate) fn known(&self, deliver: usize) -> usize {
        (0..self.epochs.len())
            .find(|&e| self.epochs[e].break_after.is_some() && deliver < self.first_of(e + 1))
            .map_or(self.tickets(), |e| self.first_of(e + 1))
    }

    /// The ticket to go on with when the epoch is broken off before `deliver`.
    pub(crate) fn break_at(&self, deliver: usize) -> Option<usize> {
        (0..self.epochs.len())
            .find(|&e| self.epochs[e].break_after.map(|k| self.first_of(e) + k) == Some(deliver))
            .map(|e| self.first_of(e + 1))
    }
}
