//! The order: how far each unit sinks.

use serde::Serialize;

use super::rules::{self, Effect};
use crate::recipe::op::Op;
use crate::recipe::operation::Operation;
use crate::recipe::unit::Unit;
use crate::recipe::written::Reorder;

/// A move that was made, or was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The operation that moves.
    pub op: String,
    /// The one that it moves behind.
    pub behind: String,
    /// True: not a bit of any batch changes by it.
    pub exact: bool,
    /// Why that is so.
    pub why: String,
}

/// An order, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) order: Vec<Unit>,
    pub(crate) moves: Vec<Move>,
    pub(crate) refused: Vec<Move>,
}

/// Plans the order of `written` units of `ops`.
pub(crate) fn plan(ops: &[Op], written: Vec<Unit>, reorder: Reorder) -> Planned {
    let mut planned = Planned {
        order: written,
        moves: Vec::new(),
        refused: Vec::new(),
    };
    if reorder == Reorder::Off {
        return planned;
    }
    // The last first: whoever stands in the way has left by then.
    for i in (0..planned.order.len()).rev() {
        sink(ops, &mut planned, i, reorder);
    }
    planned.moves.reverse();
    planned.refused.reverse();
    planned
}

/// Moves the unit at `i` as far back as its rules allow and anything is gained.
fn sink(ops: &[Op], planned: &mut Planned, i: usize, reorder: Reorder) {
    let unit = planned.order[i];
    let mut to = i;
    let (mut gained, mut passed) = (Vec::new(), Vec::new());
    for (j, next) in planned.order.iter().enumerate().skip(i + 1) {
        let Some(verdict) = rules::pass(ops, unit, *next) else {
            break;
        };
        let a_move = Move {
            op: name(ops, unit),
            behind: name(ops, *next),
            exact: verdict.effect == Effect::Exact,
            why: verdict.why.to_owned(),
        };
        let allowed = match verdict.effect {
            Effect::Exact => true,
            Effect::ChangesValues => reorder == Reorder::Fast,
            Effect::Never => false,
        };
        if !allowed {
            planned.refused.push(a_move);
            break;
        }
        passed.push(a_move);
        if verdict.gains {
            to = j;
            gained.append(&mut passed);
        }
    }
    planned.order.remove(i);
    planned.order.insert(to, unit);
    gained.reverse();
    planned.moves.extend(gained);
}

/// As a user reads it.
pub(crate) fn name(ops: &[Op], unit: Unit) -> String {
    let Some(op) = ops.get(unit.op) else {
        return "decode (grey)".into();
    };
    match op.part_name(unit.part) {
        Some(part) => format!("{} ({part})", op.name()),
        None => op.name().into(),
    }
}
