//! Explores every order of operations, and every place for a death.
//!
//! Depth first, with an explicit stack. States are distinguished by a 128-bit hash. A state that
//! occurs again on the way from the start would be an endless execution, which is a violation. So
//! all executions are finite, and every maximal execution is checked to end well. Every operation
//! on a word is interleaved with every other, except those listed at `steps::settle`.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Instant;

use crate::automaton::Automaton;
use crate::plan::Config;
use crate::properties;
use crate::state::State;
use crate::steps;
use crate::steps::{Step, mishaps, settle, take};

/// A broken property, and the way to it.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) what: String,
    pub(crate) path: Vec<String>,
}

/// Results of an exploration.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    /// Ends of executions, distinguished by their last state.
    pub(crate) ends: usize,
    pub(crate) violation: Option<Violation>,
}

/// A larger exploration is a mistake in the configuration.
const MOST_STATES: usize = 20_000_000;

struct Frame {
    state: State,
    key: u128,
    steps: Vec<Step>,
    taken: usize,
}

impl Frame {
    /// The last step as text.
    fn describe(&self, a: &Automaton) -> String {
        match self.taken.checked_sub(1) {
            Some(at) => steps::describe(a, &self.state, self.steps[at]),
            None => "nothing can happen".into(),
        }
    }
}

/// Explores everything, or up to the first violation.
pub(crate) fn explore(name: &str, config: Config) -> Report {
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
    let mut found = enter(&a, state, &mut seen, &mut stack, &mut report.ends).err();
    while found.is_none()
        && let Some(top) = stack.last_mut()
    {
        let Some(&step) = top.steps.get(top.taken) else {
            seen.on_the_way.remove(&top.key);
            stack.pop();
            continue;
        };
        top.taken += 1;
        report.transitions += 1;
        assert!(
            seen.all.len() < MOST_STATES,
            "{name}: over {MOST_STATES} states, {} nodes",
            a.len()
        );
        let mut state = top.state.clone();
        found = match take(&mut a, &mut state, step) {
            Ok(()) => enter(&a, state, &mut seen, &mut stack, &mut report.ends).err(),
            broken => broken.err(),
        };
    }
    report.states = seen.all.len();
    report.violation = found.map(|what| Violation {
        what,
        path: stack.iter().map(|f| f.describe(&a)).collect(),
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

/// Puts a state on the stack, unless it was visited.
fn enter(
    a: &Automaton,
    state: State,
    seen: &mut Seen,
    stack: &mut Vec<Frame>,
    ends: &mut usize,
) -> Result<(), String> {
    let key = state.key(a);
    // Most states were visited before, so usually one lookup in the large set is enough.
    if !seen.all.insert(key) {
        return match seen.on_the_way.contains(&key) {
            true => Err("an execution that never ends".into()),
            false => Ok(()),
        };
    }
    seen.on_the_way.insert(key);
    let mut steps = steps::steps(a, &state);
    if steps.is_empty() {
        *ends += 1;
        let all: Vec<_> = (0..state.processes.len())
            .map(|p| state.end(a, p))
            .collect();
        properties::at_the_end(&a.config, &state, &all)?;
    }
    // Optional events must not hide that nothing else can happen.
    steps.extend(mishaps(a, &state));
    stack.push(Frame {
        state,
        key,
        steps,
        taken: 0,
    });
    Ok(())
}

/// The keys of visited states.
#[derive(Default)]
struct Seen {
    all: Keys,
    /// Those on the current path: few, so they stay in the processor's cache.
    on_the_way: Keys,
}

type Keys = HashSet<u128, BuildHasherDefault<KeyHasher>>;

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
