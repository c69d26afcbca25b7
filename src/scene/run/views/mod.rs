//! Whole images of a scene: the public stream.
//!
//! - `builder`: builder methods of views; `options`: their options;
//! - `kind`: memory, order and makers of batches;
//! - `discs`: crop discs of fisheye images as masks;
//! - `state`: the position to resume from;
//! - `steps`: views, step by step; `report`: the report.
//!
//! All run in the consumer. Not here: how views are made; what rays share (`scene::run`).

mod builder;
mod discs;
mod kind;
mod options;
mod report;
mod state;
mod steps;

pub use crate::scene::jobs::views::fields::ViewField;
pub use crate::scene::jobs::views::view::{StepImage, View};
pub use builder::ViewsBuilder;
pub use kind::ViewKind;
pub use report::{ViewWork, ViewsReport};
pub use state::ViewsState;
pub use steps::Views;
