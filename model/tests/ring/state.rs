//! A global state: the words, the node of each process, the remaining failures; and its key.

use crate::automaton::{Automaton, NodeId, Pending};
use crate::memory::Place;
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::processes;
use crate::processes::{End, Local};

/// Whether a process is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// Alive, or it has ended by itself, as its node shows.
    Runs,
    /// In a futex wait, on the word of its pending operation.
    Asleep,
    /// Dead. A worker still owns its rows.
    Zombie,
    /// Dead and reaped.
    Absent,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pub(crate) life: Life,
    pub(crate) node: NodeId,
    pub(crate) serial: u32,
}

/// A global state. Processes are the workers by lane, the consumer, the coordinator.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) words: Vec<u64>,
    pub(crate) processes: Vec<Process>,
    pub(crate) worker_deaths: u8,
    pub(crate) coordinator_deaths: u8,
    pub(crate) consumer_deaths: u8,
    pub(crate) spurious_wakes: u8,
}

impl State {
    pub(crate) fn start(a: &mut Automaton) -> Self {
        let c = a.config.clone();
        let mut processes: Vec<_> = (1..=c.workers)
            .map(|serial| (serial, Local::Worker { serial }))
            .collect();
        processes.push((0, processes::consumer(&c)));
        processes.push((0, processes::coordinator(&c)));
        Self {
            words: a.places.fresh(),
            processes: processes
                .into_iter()
                .map(|(serial, local)| Process {
                    life: Life::Runs,
                    node: a.start(local),
                    serial,
                })
                .collect(),
            worker_deaths: c.worker_deaths,
            coordinator_deaths: u8::from(c.coordinator_dies),
            consumer_deaths: u8::from(c.consumer_dies),
            spurious_wakes: c.spurious_wakes,
        }
    }

    pub(crate) fn consumer(&self) -> usize {
        self.processes.len() - 2
    }

    pub(crate) fn coordinator(&self) -> usize {
        self.processes.len() - 1
    }

    pub(crate) fn lives(&self) -> impl Iterator<Item = Life> {
        self.processes.iter().map(|p| p.life)
    }

    pub(crate) fn life(&self, process: usize) -> Life {
        self.processes[process].life
    }

    pub(crate) fn name(&self, process: usize) -> String {
        if process == self.consumer() {
            "consumer".into()
        } else if process == self.coordinator() {
            "coordinator".into()
        } else {
            format!("worker {}", self.processes[process].serial)
        }
    }

    /// Whether a worker with this serial is alive, or dead but not reaped.
    pub(crate) fn not_reaped(&self, serial: u32) -> bool {
        self.processes
            .iter()
            .any(|p| p.serial == serial && p.life != Life::Absent)
    }

    pub(crate) fn end(&self, a: &Automaton, process: usize) -> Option<End> {
        match a.pending(self.processes[process].node) {
            Pending::Ended(end) => Some(*end),
            _ => None,
        }
    }

    /// Dead, or ended by itself.
    pub(crate) fn gone(&self, a: &Automaton, process: usize) -> bool {
        matches!(self.life(process), Life::Zombie | Life::Absent) || self.end(a, process).is_some()
    }

    /// Distinguishes states. Workers are interchangeable: unless the coordinator handles one, they
    /// are distinguished by their behaviour and their rows, not by lane and serial.
    pub(crate) fn key(&self, a: &Automaton) -> u128 {
        let coordinator = &self.processes[self.coordinator()];
        let merge = a.config.merge;
        let alike = merge && (coordinator.life == Life::Zombie || !a.burying(coordinator.node));
        let mut owned = [0_u32; 8];
        let mut hash = KeyHash::default();
        for (i, (value, place)) in self.words.iter().zip(a.places.all()).enumerate() {
            let mut value = *value;
            if let Place::Row(..) = place {
                if merge {
                    value = a.what_matters(value);
                }
                let row = RowWord::unpack(value);
                if alike && row.state == RowState::Claimed {
                    let is_owner = |p: &Process| p.serial == row.owner && p.life != Life::Absent;
                    if let Some(owner) = self.processes.iter().position(is_owner) {
                        owned[owner] |= 1 << i;
                        value = RowWord::claimed(0, row.sequence).pack();
                    }
                }
            }
            hash.add(value);
        }
        let mut processes = [(0, 0, 0, 0); 8];
        let count = self.processes.len();
        for (i, p) in self.processes.iter().enumerate() {
            let (class, serial) = match p.life {
                Life::Runs | Life::Asleep => {
                    (if merge { a.class(p.node) } else { p.node }, p.serial)
                }
                Life::Zombie => (0, p.serial),
                Life::Absent => (0, 0),
            };
            let serial = if alike { 0 } else { serial };
            processes[i] = (p.life as u32, class, serial, owned[i]);
        }
        if alike {
            processes[..self.consumer()].sort_unstable();
        }
        for (life, class, serial, owned) in &processes[..count] {
            hash.add(u64::from(*life) << 32 | u64::from(*class));
            hash.add(u64::from(*serial) << 32 | u64::from(*owned));
        }
        hash.add(u64::from_le_bytes([
            u8::from(alike),
            self.worker_deaths,
            self.coordinator_deaths,
            self.consumer_deaths,
            self.spurious_wakes,
            0,
            0,
            0,
        ]));
        hash.finish()
    }
}

/// Two independent 64-bit hashes, each with one multiplication per word whose halves are folded.
/// XXH3 took a third of the time.
struct KeyHash(u64, u64);

impl Default for KeyHash {
    fn default() -> Self {
        Self(0x2d35_8dcc_aa6c_78a5, 0x8bb8_4b93_962e_acc9)
    }
}

impl KeyHash {
    fn add(&mut self, word: u64) {
        self.0 = folded(self.0 ^ word, 0x9e37_79b9_7f4a_7c15);
        self.1 = folded(self.1.rotate_left(23) ^ word, 0xd6e8_feb8_6659_fd93);
    }

    fn finish(self) -> u128 {
        u128::from(self.0) << 64 | u128::from(self.1)
    }
}

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
