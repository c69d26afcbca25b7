//! The processes as automata, discovered during the exploration.
//!
//! A *node* is a local state, the record of the current routine, and its next operation. The
//! behaviour of a process depends only on its node and the operation's result. So each production
//! function runs once per distinct record, not once per global state.

use rustc_hash::FxHashMap;

use crate::memory::{CONSUMER_GONE, Entry, FRESH, Op, Place, Places, Replay, STALE};
use crate::plan::Config;
use crate::pool::ring::layout::{RingLayout, RingShape};
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::processes;
use crate::processes::{End, Flow, Local};

/// Identifies a node.
pub(crate) type NodeId = u32;

/// What a process does next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Pending {
    Do(Op),
    Ended(End),
    /// The process itself detected a broken property.
    Broken(String),
}

type Key = (Local, Vec<Entry>);

struct Node {
    key: Key,
    pending: Pending,
    /// Equal for nodes that differ only in values that are never read again.
    class: u32,
    /// A coordinator that handles a certain worker.
    burying: bool,
}

/// All nodes discovered so far.
pub(crate) struct Automaton {
    pub(crate) config: Config,
    pub(crate) layout: RingLayout,
    pub(crate) places: Places,
    nodes: Vec<Node>,
    ids: FxHashMap<Key, NodeId>,
    classes: FxHashMap<(Local, Vec<Entry>, Pending), u32>,
    next: FxHashMap<(NodeId, u64), NodeId>,
    aged: FxHashMap<(NodeId, usize), NodeId>,
}

impl Automaton {
    pub(crate) fn new(config: Config) -> Self {
        let layout = RingLayout::new(RingShape {
            slots: config.slots,
            rows: config.rows,
            slot_bytes: 8 * u64::from(config.rows),
            lanes: config.workers,
        })
        .expect("a small ring");
        Self {
            places: Places::new(&layout),
            config,
            layout,
            nodes: Vec::new(),
            ids: FxHashMap::default(),
            classes: FxHashMap::default(),
            next: FxHashMap::default(),
            aged: FxHashMap::default(),
        }
    }

    /// The node of a process at the start of a routine.
    pub(crate) fn start(&mut self, local: Local) -> NodeId {
        self.node((local, Vec::new()))
    }

    pub(crate) fn pending(&self, node: NodeId) -> &Pending {
        &self.nodes[node as usize].pending
    }

    pub(crate) fn class(&self, node: NodeId) -> u32 {
        self.nodes[node as usize].class
    }

    /// Whether a coordinator handles a certain worker.
    pub(crate) fn burying(&self, node: NodeId) -> bool {
        self.nodes[node as usize].burying
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node after the pending operation returned `result`.
    pub(crate) fn after(&mut self, node: NodeId, result: u64) -> NodeId {
        if let Some(&id) = self.next.get(&(node, result)) {
            return id;
        }
        let from = &self.nodes[node as usize];
        let Pending::Do(op) = from.pending else {
            unreachable!("an ended process does nothing")
        };
        let (local, mut record) = from.key.clone();
        record.push(Entry { op, result });
        let id = self.node((local, record));
        self.next.insert((node, result), id);
        id
    }

    /// The node after the counter `word` was incremented.
    pub(crate) fn aged(&mut self, node: NodeId, word: usize) -> NodeId {
        if let Some(&id) = self.aged.get(&(node, word)) {
            return id;
        }
        let (local, mut record) = self.nodes[node as usize].key.clone();
        for entry in &mut record {
            match &mut entry.op {
                Op::Load(w) if *w == word && entry.result == FRESH => entry.result = STALE,
                Op::SlotWait(w, value) if *w == word => *value = STALE,
                _ => {}
            }
        }
        let id = self.node((local, record));
        self.aged.insert((node, word), id);
        id
    }

    fn node(&mut self, key: Key) -> NodeId {
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let (mut local, mut record) = key.clone();
        let pending = loop {
            let run = Replay::run(&record, |replay| {
                processes::step(&self.config, &self.layout, replay, &local)
            });
            match run {
                // Under sequential consistency a fence has no effect.
                Err(op @ Op::Fence) => record.push(Entry { op, result: 0 }),
                Err(op) => break Pending::Do(op),
                Ok(Err(what)) => break Pending::Broken(what),
                Ok(Ok(Flow::End(end))) => break Pending::Ended(end),
                Ok(Ok(Flow::Go(after))) => {
                    local = after;
                    record.clear();
                }
            }
        };
        let settled = (local, record);
        // The same node reached in another way: a routine that just ended.
        if let Some(&id) = self.ids.get(&settled) {
            self.ids.insert(key, id);
            return id;
        }
        let class = self.class_of(&settled, &pending);
        let burying = burying(&settled);
        let id = NodeId::try_from(self.nodes.len()).expect("few nodes");
        self.nodes.push(Node {
            key: settled.clone(),
            pending,
            class,
            burying,
        });
        self.ids.insert(settled, id);
        self.ids.insert(key, id);
        id
    }

    /// Classifies what a node will do, without the parts of its record that the production
    /// functions have forgotten:
    ///
    /// - For a row word that was read, the next operation shows the consequence at once. Only
    ///   `drain` remembers something for later: whether the row was open or claimed. A
    ///   compare-and-swap also leaves its success.
    /// - A worker that has claimed a row remembers only which one, and the compare-and-swap shows
    ///   that. What it read before is forgotten.
    /// - The identity of a worker: `State::key` uses the rows that it owns.
    /// - The serials that a coordinator knows, unless it handles one: they are those of the
    ///   processes.
    ///
    /// The words and records themselves do not change: this only distinguishes states.
    fn class_of(&mut self, key: &Key, pending: &Pending) -> u32 {
        let (local, record) = key;
        let claim = record.iter().position(
            |e| matches!(e.op, Op::CompareExchange { current, .. } if e.result == current),
        );
        let first = match local {
            Local::Worker { .. } => claim.unwrap_or(0),
            _ => 0,
        };
        let mut record = record[first..].to_vec();
        let swapped: Vec<_> = record
            .iter()
            .map(|e| matches!(e.op, Op::CompareExchange { current, .. } if e.result == current))
            .collect();
        let mut pending = pending.clone();
        let mut local = local.clone();
        match &mut local {
            Local::Worker { serial } => {
                *serial = 0;
                let ops = record.iter_mut().map(|e| &mut e.op);
                for op in ops.chain(match &mut pending {
                    Pending::Do(op) => Some(op),
                    _ => None,
                }) {
                    forget_owner(op, &self.places);
                }
            }
            Local::Coordinator(s) if !burying(key) => s.forget_serials(),
            _ => {}
        }
        for (i, entry) in record.iter_mut().enumerate() {
            let alive = |value| {
                let state = RowWord::unpack(value).state;
                let alive = matches!(state, RowState::Open | RowState::Claimed);
                u64::from(alive && matches!(key.0, Local::Consumer(_)))
            };
            match entry.op {
                Op::Load(word) if matches!(self.places.place(word), Place::Row(..)) => {
                    entry.result = alive(entry.result);
                }
                Op::CompareExchange { .. } => {
                    entry.result = alive(entry.result) << 1 | u64::from(swapped[i]);
                }
                _ => {}
            }
        }
        let fresh = u32::try_from(self.classes.len()).expect("few nodes");
        *self
            .classes
            .entry((local, record, pending))
            .or_insert(fresh)
    }

    /// The part of a row word that any process reads, only to distinguish states. The owner of a
    /// final row is neither compared nor printed, because every compare-and-swap expects an open or
    /// a claimed row.
    pub(crate) fn what_matters(&self, value: u64) -> u64 {
        let word = RowWord::unpack(value);
        match word.state {
            RowState::Done | RowState::Failed => RowWord::new(word.state, 0, word.sequence).pack(),
            _ => value,
        }
    }
}

/// Whether a coordinator has reaped a worker and still handles it.
fn burying((local, record): &Key) -> bool {
    matches!(local, Local::Coordinator(_))
        && !matches!(
            record.first(),
            None | Some(Entry {
                op: Op::Reap,
                result: CONSUMER_GONE
            })
        )
}

/// Removes the worker's own serial from an operation on a row word.
fn forget_owner(op: &mut Op, places: &Places) {
    let forget = |value: &mut u64| {
        let word = RowWord::unpack(*value);
        *value = RowWord::new(word.state, 0, word.sequence).pack();
    };
    match op {
        Op::CompareExchange { current, new, .. } => {
            forget(current);
            forget(new);
        }
        Op::Store(word, value) if matches!(places.place(*word), Place::Row(..)) => forget(value),
        _ => {}
    }
}
