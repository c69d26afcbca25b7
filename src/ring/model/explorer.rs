//! Walks every order of operations, and every place for a death among them.
//!
//! Depth first, with an explicit stack; states are told apart by a 128-bit hash.
//! A state that is met again on the way from the start would be an execution
//! that never ends, and is a violation, so all executions are finite and "every
//! maximal execution ends well" is what is checked. Every operation on a
//! word is interleaved with every other, but for those named at [`settle`].

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Instant;

use twox_hash::XxHash3_128;

use super::automaton::{Automaton, NodeId, Pending};
use super::memory::{CONSUMER_GONE, FRESH, Op, Place, STALE};
use super::processes::{self, Config, End, Local, is_whole};
use super::properties::{self, Actor};
use crate::ring::row_word::{RowState, RowWord};

/// Whether a process is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Or has ended by itself: its node says so.
    Runs,
    /// In a futex wait, on the word of its pending operation.
    Asleep,
    /// Dead; a worker's rows are still its own.
    Zombie,
    /// Dead and reaped.
    Absent,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    life: Life,
    node: NodeId,
    serial: u32,
}

/// One global state. Processes: the workers by lane, the consumer, the
/// coordinator.
#[derive(Debug, Clone)]
pub(super) struct State {
    words: Vec<u64>,
    processes: Vec<Process>,
    worker_deaths: u8,
    coordinator_deaths: u8,
    consumer_deaths: u8,
    spurious_wakes: u8,
}

impl State {
    fn start(a: &mut Automaton) -> Self {
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

    pub(super) fn consumer(&self) -> usize {
        self.processes.len() - 2
    }

    pub(super) fn coordinator(&self) -> usize {
        self.processes.len() - 1
    }

    pub(super) fn lives(&self) -> impl Iterator<Item = Life> {
        self.processes.iter().map(|p| p.life)
    }

    pub(super) fn life(&self, process: usize) -> Life {
        self.processes[process].life
    }

    pub(super) fn name(&self, process: usize) -> String {
        if process == self.consumer() {
            "consumer".into()
        } else if process == self.coordinator() {
            "coordinator".into()
        } else {
            format!("worker {}", self.processes[process].serial)
        }
    }

    /// Whether a worker of this serial runs, or is dead but not waited for.
    pub(super) fn not_reaped(&self, serial: u32) -> bool {
        self.processes
            .iter()
            .any(|p| p.serial == serial && p.life != Life::Absent)
    }

    fn end(&self, a: &Automaton, process: usize) -> Option<End> {
        match a.pending(self.processes[process].node) {
            Pending::Ended(end) => Some(*end),
            _ => None,
        }
    }

    /// Dead, or ended by itself.
    fn gone(&self, a: &Automaton, process: usize) -> bool {
        matches!(self.life(process), Life::Zombie | Life::Absent) || self.end(a, process).is_some()
    }

    /// Tells states apart. Workers are alike: unless the coordinator has one in
    /// mind, they are told apart by what they do and which rows they own, not
    /// by lane and serial.
    fn key(&self, a: &Automaton) -> u128 {
        let coordinator = &self.processes[self.coordinator()];
        let alike = coordinator.life == Life::Zombie || !a.burying(coordinator.node);
        let mut owned = [0_u32; 8];
        let mut bytes = Vec::with_capacity(256);
        for (i, (value, place)) in self.words.iter().zip(a.places.all()).enumerate() {
            let mut value = a.what_matters(*place, *value);
            let row = RowWord::unpack(value);
            if alike && matches!(place, Place::Row(..)) && row.state == RowState::Claimed {
                let is_owner = |p: &Process| p.serial == row.owner && p.life != Life::Absent;
                if let Some(owner) = self.processes.iter().position(is_owner) {
                    owned[owner] |= 1 << i;
                    value = RowWord::claimed(0, row.sequence).pack();
                }
            }
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        let mut processes = [(0, 0, 0, 0); 8];
        let count = self.processes.len();
        for (i, p) in self.processes.iter().enumerate() {
            let (class, serial) = match p.life {
                Life::Runs | Life::Asleep => (a.class(p.node), p.serial),
                Life::Zombie => (0, p.serial),
                Life::Absent => (0, 0),
            };
            let serial = if alike { 0 } else { serial };
            processes[i] = (p.life as u32, class, serial, owned[i]);
        }
        if alike {
            processes[..self.consumer()].sort_unstable();
        }
        for p in &processes[..count] {
            for part in [p.0, p.1, p.2, p.3] {
                bytes.extend_from_slice(&part.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&[
            u8::from(alike),
            self.worker_deaths,
            self.coordinator_deaths,
            self.consumer_deaths,
            self.spurious_wakes,
        ]);
        XxHash3_128::oneshot(&bytes)
    }
}

/// One transition.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The pending operation; the number is for the kernel's calls that may
    /// give several results.
    Do(usize, u64),
    Die(usize),
    /// A sleeper wakes without a wake: spurious, or the consumer's look at the
    /// coordinator's pidfd.
    Rise(usize),
}

/// A broken property and the way to it.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) what: String,
    pub(super) path: Vec<String>,
}

/// What an exploration found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) states: usize,
    pub(super) transitions: usize,
    /// Executions' ends, told apart by their last state.
    pub(super) ends: usize,
    pub(super) violation: Option<Violation>,
}

/// A larger exploration is a mistake in the configuration.
const MOST_STATES: usize = 20_000_000;

struct Frame {
    state: State,
    key: u128,
    steps: Vec<Step>,
    taken: usize,
}

/// Explores everything, or up to the first violation.
pub(super) fn explore(name: &str, config: Config) -> Report {
    let started = Instant::now();
    let mut a = Automaton::new(config);
    let mut state = State::start(&mut a);
    settle(&mut a, &mut state).expect("a start breaks no rule");
    let mut seen = Seen::default();
    let mut report = Report {
        states: 1,
        transitions: 0,
        ends: 0,
        violation: None,
    };
    let mut stack = Vec::new();
    let found = enter(&a, state, &mut seen, &mut stack, &mut report.ends);
    let mut found = found.err();
    while found.is_none()
        && let Some(top) = stack.last_mut()
    {
        let Some(&step) = top.steps.get(top.taken) else {
            seen.insert(top.key, false);
            stack.pop();
            continue;
        };
        top.taken += 1;
        report.transitions += 1;
        assert!(
            seen.len() < MOST_STATES,
            "{name}: over {MOST_STATES} states, {} nodes",
            a.len()
        );
        let mut state = top.state.clone();
        found = match take(&mut a, &mut state, step) {
            Ok(()) => enter(&a, state, &mut seen, &mut stack, &mut report.ends).err(),
            broken => broken.err(),
        };
    }
    report.states = seen.len();
    report.violation = found.map(|what| Violation {
        what,
        path: stack.iter().map(|f| describe(&a, f)).collect(),
    });
    println!(
        "{name}: {} states, {} transitions, {} ends, {} nodes, {:.1} s{}",
        report.states,
        report.transitions,
        report.ends,
        a.len(),
        started.elapsed().as_secs_f64(),
        report.violation.as_ref().map_or(String::new(), |v| format!(
            "; after {} steps: {}",
            v.path.len(),
            v.what
        ))
    );
    report
}

/// Puts a state on the stack unless it was visited.
fn enter(
    a: &Automaton,
    state: State,
    seen: &mut Seen,
    stack: &mut Vec<Frame>,
    ends: &mut usize,
) -> Result<(), String> {
    let key = state.key(a);
    match seen.get(&key) {
        Some(true) => return Err("an execution that never ends".into()),
        Some(false) => return Ok(()),
        None => {}
    }
    seen.insert(key, true);
    let mut steps = steps(a, &state);
    if steps.is_empty() {
        *ends += 1;
        let all: Vec<_> = (0..state.processes.len())
            .map(|p| state.end(a, p))
            .collect();
        properties::at_the_end(&a.config, &state, &all)?;
    }
    // What may happen, but need not: it must not hide that nothing else can.
    steps.extend(mishaps(a, &state));
    stack.push(Frame {
        state,
        key,
        steps,
        taken: 0,
    });
    Ok(())
}

/// What will happen sooner or later.
fn steps(a: &Automaton, s: &State) -> Vec<Step> {
    let mut steps = Vec::new();
    let orphans = s.life(s.coordinator()) == Life::Zombie;
    for (i, p) in s.processes.iter().enumerate() {
        let worker = i < s.consumer();
        match p.life {
            Life::Zombie | Life::Absent => continue,
            Life::Asleep if orphans && i == s.consumer() => steps.push(Step::Rise(i)),
            Life::Asleep => {}
            Life::Runs => match a.pending(p.node) {
                Pending::Do(Op::Reap) => {
                    let dead = (0..s.consumer()).filter(|&w| s.life(w) == Life::Zombie);
                    steps.extend(dead.map(|w| Step::Do(i, w as u64)));
                    if s.gone(a, s.consumer()) {
                        steps.push(Step::Do(i, CONSUMER_GONE));
                    }
                }
                Pending::Do(Op::AllEnded) => {
                    if (0..s.consumer()).all(|w| s.gone(a, w)) {
                        steps.push(Step::Do(i, 0));
                    }
                }
                Pending::Do(Op::Load(w)) if a.places.is_hint(*w) => {
                    steps.extend((0..a.config.rows).map(|hint| Step::Do(i, hint.into())));
                }
                Pending::Do(_) => steps.push(Step::Do(i, 0)),
                Pending::Ended(_) | Pending::Broken(_) => continue,
            },
        }
        // The parent-death signal arrives, some time after the death.
        if worker && orphans {
            steps.push(Step::Die(i));
        }
    }
    steps
}

/// Deaths and wakes that the budget of the configuration allows.
fn mishaps(a: &Automaton, s: &State) -> Vec<Step> {
    let mut steps = Vec::new();
    for (i, p) in s.processes.iter().enumerate() {
        if s.gone(a, i) {
            continue;
        }
        let deaths = if i == s.consumer() {
            s.consumer_deaths
        } else if i == s.coordinator() {
            s.coordinator_deaths
        } else {
            s.worker_deaths
        };
        if deaths > 0 {
            steps.push(Step::Die(i));
        }
        if p.life == Life::Asleep && s.spurious_wakes > 0 {
            steps.push(Step::Rise(i));
        }
    }
    steps
}

fn take(a: &mut Automaton, s: &mut State, step: Step) -> Result<(), String> {
    match step {
        Step::Do(i, answer) => perform(a, s, i, answer)?,
        Step::Die(i) => {
            s.processes[i].life = Life::Zombie;
            if i == s.consumer() {
                s.consumer_deaths -= 1;
            } else if i == s.coordinator() {
                s.coordinator_deaths -= 1;
            } else {
                s.worker_deaths = s.worker_deaths.saturating_sub(1);
            }
            return Ok(());
        }
        Step::Rise(i) => {
            if s.life(s.coordinator()) != Life::Zombie || i != s.consumer() {
                s.spurious_wakes -= 1;
            }
            wake(a, s, i);
        }
    }
    settle(a, s)?;
    for p in &s.processes {
        if let Pending::Broken(what) = a.pending(p.node) {
            return Err(what.clone());
        }
    }
    Ok(())
}

/// Performs at once what needs no interleaving.
///
/// - A hint is any number: loads of it give every row in turn, so stores to it
///   do nothing. That is more than can really happen.
/// - The other words of a ticket are written by the consumer only, while no row
///   of the slot is claimed, and read by workers only, while they have one
///   claimed. `write` checks the former at every store; so no store can fall
///   between a claim and the reads that follow it, and when they happen within
///   that time makes no difference.
/// - The first half of a row's bytes is written with the claim, and the
///   consumer reads a row's bytes with the look at its row word: `row_rules`
///   checks that bytes change only while their row is claimed. The second half
///   is an operation of its own, so a death may leave a torn row.
fn settle(a: &mut Automaton, s: &mut State) -> Result<(), String> {
    for i in 0..s.processes.len() {
        while s.life(i) == Life::Runs
            && let Pending::Do(op) = *a.pending(s.processes[i].node)
            && match op {
                Op::Load(word) => a.places.is_guarded(word),
                Op::Store(word, value) => {
                    a.places.is_hint(word) || a.places.is_guarded(word) && !is_whole(value)
                }
                _ => false,
            }
        {
            perform(a, s, i, 0)?;
        }
    }
    Ok(())
}

fn wake(a: &mut Automaton, s: &mut State, i: usize) {
    let p = &mut s.processes[i];
    p.life = Life::Runs;
    p.node = a.after(p.node, 0);
}

/// Performs the pending operation of a process.
fn perform(a: &mut Automaton, s: &mut State, i: usize, answer: u64) -> Result<(), String> {
    let Pending::Do(op) = *a.pending(s.processes[i].node) else {
        unreachable!("only pending operations are chosen")
    };
    let result = match op {
        Op::Load(word) if a.places.is_hint(word) => answer,
        Op::Store(word, _) if a.places.is_hint(word) => 0,
        Op::Load(word) => s.words[a.places.index(word)],
        Op::Store(word, value) => {
            write(a, s, i, word, value)?;
            0
        }
        Op::CompareExchange { word, current, new } => {
            let found = s.words[a.places.index(word)];
            if found == current {
                write(a, s, i, word, new)?;
            }
            found
        }
        Op::Add(word, value) => {
            if a.places.is_counter(word) {
                let p = &mut s.processes[i];
                p.node = a.after(p.node, STALE);
                for p in &mut s.processes {
                    if matches!(p.life, Life::Runs | Life::Asleep) {
                        p.node = a.aged(p.node, word);
                    }
                }
                return Ok(());
            }
            let at = &mut s.words[a.places.index(word)];
            *at += value;
            *at - value
        }
        Op::Fence => 0,
        Op::Wait(_, value) => {
            if value == FRESH {
                s.processes[i].life = Life::Asleep;
                return Ok(());
            }
            0
        }
        Op::Wake(word) => {
            for j in 0..s.processes.len() {
                let sleeps_on =
                    |op: &Pending| matches!(op, Pending::Do(Op::Wait(w, _)) if *w == word);
                if s.life(j) == Life::Asleep && sleeps_on(a.pending(s.processes[j].node)) {
                    wake(a, s, j);
                }
            }
            0
        }
        Op::CoordinatorLives => u64::from(s.life(s.coordinator()) != Life::Zombie),
        Op::Reap => {
            if answer != CONSUMER_GONE {
                s.processes[answer as usize].life = Life::Absent;
            }
            answer
        }
        Op::Fork(lane, serial) => {
            s.processes[lane as usize] = Process {
                life: Life::Runs,
                node: a.start(Local::Worker { serial }),
                serial,
            };
            0
        }
        Op::AllEnded => 0,
    };
    let p = &mut s.processes[i];
    p.node = a.after(p.node, result);
    Ok(())
}

fn write(a: &Automaton, s: &mut State, i: usize, word: usize, value: u64) -> Result<(), String> {
    let at = a.places.index(word);
    let place = a.places.place(word);
    if a.config.row_rules
        && let Place::Row(slot, row) | Place::Payload(slot, row) = place
    {
        let actor = if i == s.consumer() {
            Actor::Consumer
        } else if i == s.coordinator() {
            Actor::Coordinator
        } else {
            Actor::Worker {
                lane: i,
                serial: s.processes[i].serial,
            }
        };
        let row_word = s.words[a.places.index(a.layout.row(slot, row))];
        properties::row_rules(s, actor, place, row_word, value)?;
    }
    if let Place::Ticket(slot, _) = place {
        let rows = (0..a.config.rows).map(|row| s.words[a.places.index(a.layout.row(slot, row))]);
        properties::ticket_rule(slot, rows)?;
    }
    s.words[at] = value;
    Ok(())
}

/// The step that a frame took last, in words.
fn describe(a: &Automaton, f: &Frame) -> String {
    let Some(step) = f.taken.checked_sub(1).map(|at| f.steps[at]) else {
        return "nothing can happen".into();
    };
    match step {
        Step::Die(i) => format!("{} dies", f.state.name(i)),
        Step::Rise(i) => format!("{} wakes by itself", f.state.name(i)),
        Step::Do(i, answer) => {
            let op = match a.pending(f.state.processes[i].node) {
                Pending::Do(op) => *op,
                other => unreachable!("{other:?} was performed"),
            };
            let on = |word| (a.places.place(word), f.state.words[a.places.index(word)]);
            let what = match op {
                Op::Load(w) => format!("loads {:?} = {:#x}", on(w).0, on(w).1),
                Op::Store(w, v) => format!("stores {v:#x} to {:?}", on(w).0),
                Op::CompareExchange { word, current, new } => format!(
                    "swaps {:?} {current:#x} -> {new:#x}, found {:#x}",
                    on(word).0,
                    on(word).1
                ),
                Op::Add(w, v) => format!("adds {v} to {:?}", on(w).0),
                Op::Wait(w, v) => format!(
                    "waits on {:?}, {}",
                    on(w).0,
                    if v == FRESH {
                        "sleeps"
                    } else {
                        "which has changed"
                    }
                ),
                Op::Wake(w) => format!("wakes who sleeps on {:?}", on(w).0),
                Op::Reap if answer == CONSUMER_GONE => "sees that the consumer is gone".into(),
                other => format!("{other:?} ({answer})"),
            };
            format!("{}: {what}", f.state.name(i))
        }
    }
}

/// The keys of the states visited; true = on the way to the present one.
type Seen = HashMap<u128, bool, BuildHasherDefault<KeyHasher>>;

/// Keys are hashes already.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u128")
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}
