//! The processes as automata, found out while exploring.
//!
//! A *node* is a local state, the record of the routine under way, and the
//! operation that comes next. What a process does is a function of its node and
//! of the operation's result, so each production function is run once for each
//! distinct record, not once for each global state.

use rustc_hash::FxHashMap;

use crate::memory::{CONSUMER_GONE, Entry, FRESH, Op, Place, Places, Replay, STALE};
use crate::plan::Config;
use crate::pool::ring::layout::{RingLayout, RingShape};
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::processes;
use crate::processes::{End, Flow, Local};

/// Names a node.
pub(crate) type NodeId = u32;

/// What a process does next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Pending {
    Do(Op),
    Ended(End),
    /// The process itself saw a broken property.
    Broken(String),
}

type Key = (Local, Vec<Entry>);

struct Node {
    key: Key,
    pending: Pending,
    /// The same for nodes that differ only in what nobody looks at.
    class: u32,
    /// A coordinator with a certain worker in mind.
    burying: bool,
}

/// All nodes found so far.
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

    /// Whether a coordinator has a certain worker in mind.
    pub(crate) fn burying(&self, node: NodeId) -> bool {
        self.nodes[node as usize].burying
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node after the pending operation gave `result`.
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

    /// The node after `word`, a counter, was counted up by somebody.
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
                // Under sequential consistency a fence does nothing.
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
        // The same node by another way: a routine that just ended.
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

    /// Names what a node will do, leaving out of its record what the production
    /// functions have forgotten:
    ///
    /// - Of a row word that was looked at, the next operation shows what was
    ///   made of it at once; only `drain` remembers one thing for later: whether
    ///   it was open or claimed. A compare-and-swap also leaves behind whether it did.
    /// - A worker that has claimed a row remembers which, and the
    ///   compare-and-swap says that; what it saw on the way there is forgotten.
    ///
    /// - Who a worker is: `State::key` tells by the rows that it owns.
    /// - The serials that a coordinator knows, unless it has one in mind: they
    ///   are those of the processes.
    ///
    /// The words and records themselves stay as they are: this is for telling
    /// states apart only.
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

    /// The part of a row word that any process looks at, for telling states apart only. The
    /// owner of a final row is neither compared nor printed: every compare-and-swap expects an
    /// open or a claimed row.
    pub(crate) fn what_matters(&self, value: u64) -> u64 {
        let word = RowWord::unpack(value);
        match word.state {
            RowState::Done | RowState::Failed => RowWord::new(word.state, 0, word.sequence).pack(),
            _ => value,
        }
    }
}

/// Whether a coordinator has reaped a worker and is not done with it.
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

/// Takes the worker's own serial out of an operation on a row word.
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
