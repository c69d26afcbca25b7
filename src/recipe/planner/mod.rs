//! Plans the order in which operations run.
//!
//! Pure, the same in every process. Operations that change each value independently move after the
//! crops and resizes that follow them, where fewer pixels remain. All others keep their place.
//! Never in here: names of operations. Their [`MoveRights`](super::operation::MoveRights) define
//! what may move.
//!
//! - [`order`]: how far each unit moves;
//! - [`rules`]: which unit may move after which, one small function each.

mod order;
mod rules;

pub use order::OperationMove;
pub(crate) use order::{plan, unit_name};
