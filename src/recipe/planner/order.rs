//! The running order: how far each unit moves towards the end.

use serde::Serialize;

use super::rules::{self, MoveEffect};
use crate::recipe::move_unit::MoveUnit;
use crate::recipe::op::Op;
use crate::recipe::operation::Operation;
use crate::recipe::recipe_spec::ReorderMode;

/// A move that was made or rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperationMove {
    /// The operation that moves.
    pub op: String,
    /// The operation after which it moves.
    pub behind: String,
    /// True if no bit of any batch changes.
    pub exact: bool,
    /// The reason.
    pub why: String,
}

/// The running order, with the moves made and rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedOrder {
    pub(crate) order: Vec<MoveUnit>,
    pub(crate) moves: Vec<OperationMove>,
    pub(crate) refused: Vec<OperationMove>,
}

/// Plans the order of `written` units of `ops`.
pub(crate) fn plan(ops: &[Op], written: Vec<MoveUnit>, reorder: ReorderMode) -> PlannedOrder {
    let mut planned = PlannedOrder {
        order: written,
        moves: Vec::new(),
        refused: Vec::new(),
    };
    if reorder == ReorderMode::Off {
        return planned;
    }
    // From the last to the first: by then, units that were in the way have moved.
    for i in (0..planned.order.len()).rev() {
        move_to_end(ops, &mut planned, i, reorder);
    }
    planned.moves.reverse();
    planned.refused.reverse();
    planned
}

/// Moves the unit at `i` towards the end, as far as the rules allow and something is gained.
fn move_to_end(ops: &[Op], planned: &mut PlannedOrder, i: usize, reorder: ReorderMode) {
    let unit = planned.order[i];
    let mut to = i;
    let (mut gained, mut passed) = (Vec::new(), Vec::new());
    for (j, next) in planned.order.iter().enumerate().skip(i + 1) {
        let Some(verdict) = rules::judge_move(ops, unit, *next) else {
            break;
        };
        let a_move = OperationMove {
            op: unit_name(ops, unit),
            behind: unit_name(ops, *next),
            exact: verdict.effect == MoveEffect::Exact,
            why: verdict.why.to_owned(),
        };
        let allowed = match verdict.effect {
            MoveEffect::Exact => true,
            MoveEffect::ChangesValues => reorder == ReorderMode::Fast,
            MoveEffect::Never => false,
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

/// The name of a unit for users.
pub(crate) fn unit_name(ops: &[Op], unit: MoveUnit) -> String {
    let Some(op) = ops.get(unit.op) else {
        return "decode (grey)".into();
    };
    match op.part_name(unit.part) {
        Some(part) => format!("{} ({part})", op.name()),
        None => op.name().into(),
    }
}
