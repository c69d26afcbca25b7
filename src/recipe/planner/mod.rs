//! From the written order of operations to the one that runs.
//!
//! Pure, the same in every process. Operations that change values one pixel at a time
//! sink behind the crops and resizes that follow, where fewer pixels are left to change;
//! everything else keeps its place. Never in here: names of operations: what one may do
//! is its [`MoveRights`](super::operation::Rights).
//!
//! - [`order`]: how far each unit sinks;
//! - [`rules`]: which unit may pass which, one small function each.

mod order;
mod rules;

pub use order::OperationMove;
pub(crate) use order::{plan, unit_name};
