//! Whole images of a scene, as a trainer holds them.
//!
//! - `builder`: the methods of their builder; `options`: what those set;
//! - `kind`: what they take, and who makes them;
//! - `discs`: crop radii of fisheye images, as masks;
//! - `state`: from where, and with what, a run goes on;
//! - `steps`: views, step by step; `report`: what happened.
//!
//! All in the consumer. Never in here: how views are made; the order of the start, and what rays
//! have too (`scene`).

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
