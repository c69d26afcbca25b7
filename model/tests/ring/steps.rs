//! The possible events in a state, and their effects.

use crate::automaton::{Automaton, Pending};
use crate::memory::{CONSUMER_GONE, FRESH, Op, Place, STALE};
use crate::processes::{Local, is_whole};
use crate::properties;
use crate::properties::Actor;
use crate::state::{Life, Process, State};

/// One transition.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// The pending operation. The number selects a result of kernel calls that may have several.
    Do(usize, u64),
    Die(usize),
    /// A sleeper wakes without a wake: spuriously, or because the consumer checks the coordinator's
    /// pidfd.
    Rise(usize),
}

/// Events that will happen sooner or later.
pub(crate) fn steps(a: &Automaton, s: &State) -> Vec<Step> {
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
        // The parent-death signal arrives some time after the death.
        if worker && orphans {
            steps.push(Step::Die(i));
        }
    }
    steps
}

/// Deaths and spurious wakes that the configuration allows.
pub(crate) fn mishaps(a: &Automaton, s: &State) -> Vec<Step> {
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

pub(crate) fn take(a: &mut Automaton, s: &mut State, step: Step) -> Result<(), String> {
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

/// Performs operations at once that need no interleaving.
///
/// - A hint may be any number. Loads of it return every row in turn, so stores to it do nothing.
///   This allows more than can really happen.
/// - Only the consumer writes the other words of a ticket, while no row of the slot is claimed.
///   Workers read them only while they have claimed one. `write` checks the former at every store.
///   So no store can happen between a claim and the following reads, and their time within that
///   interval makes no difference.
/// - The attempt at a row is written only while the row is claimed, by its owner or for a dead one.
///   It is read by the claimer, for a dead owner, or together with a final row word. `row_rules`
///   checks the former. Each such store is a separate operation, with a place for a death on both
///   sides.
/// - The first half of a row's bytes is written together with the operation before it. The consumer
///   reads a row's bytes together with its row word. `row_rules` checks that bytes change only
///   while their row is claimed. The second half is a separate operation, so a death may leave a
///   torn row.
pub(crate) fn settle(a: &mut Automaton, s: &mut State) -> Result<(), String> {
    for i in 0..s.processes.len() {
        while s.life(i) == Life::Runs
            && let Pending::Do(op) = *a.pending(s.processes[i].node)
            && match op {
                Op::Load(word) => a.places.is_guarded(word),
                Op::Store(word, value) => {
                    let at_once = a.places.is_guarded(word) && !a.places.is_attempt(word);
                    a.places.is_hint(word) || at_once && !is_whole(value)
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
        Op::SlotWait(_, value) => {
            if value == FRESH {
                s.processes[i].life = Life::Asleep;
                return Ok(());
            }
            0
        }
        Op::Wake(word) => {
            for j in 0..s.processes.len() {
                let sleeps_on =
                    |op: &Pending| matches!(op, Pending::Do(Op::SlotWait(w, _)) if *w == word);
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
        && let Place::Row(slot, row) | Place::Attempt(slot, row) | Place::Payload(slot, row) = place
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
        if matches!(place, Place::Attempt(..)) {
            properties::attempt_rule(&a.config, row_word, s.words[at], value)?;
        }
    }
    if let Place::Ticket(slot, _) = place {
        let rows = (0..a.config.rows).map(|row| s.words[a.places.index(a.layout.row(slot, row))]);
        properties::ticket_rule(slot, rows)?;
    }
    s.words[at] = value;
    Ok(())
}

/// A step from state `s` as text.
pub(crate) fn describe(a: &Automaton, s: &State, step: Step) -> String {
    match step {
        Step::Die(i) => format!("{} dies", s.name(i)),
        Step::Rise(i) => format!("{} wakes by itself", s.name(i)),
        Step::Do(i, answer) => {
            let op = match a.pending(s.processes[i].node) {
                Pending::Do(op) => *op,
                other => unreachable!("{other:?} was performed"),
            };
            let on = |word| (a.places.place(word), s.words[a.places.index(word)]);
            let what = match op {
                Op::Load(w) => format!("loads {:?} = {:#x}", on(w).0, on(w).1),
                Op::Store(w, v) => format!("stores {v:#x} to {:?}", on(w).0),
                Op::CompareExchange { word, current, new } => format!(
                    "swaps {:?} {current:#x} -> {new:#x}, found {:#x}",
                    on(word).0,
                    on(word).1
                ),
                Op::Add(w, v) => format!("adds {v} to {:?}", on(w).0),
                Op::SlotWait(w, v) => format!(
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
            format!("{}: {what}", s.name(i))
        }
    }
}
