//! Targets for any bytes from outside: one function for each kind of input. It panics if an
//! invariant is violated.
//!
//! `smoke` feeds them a few thousand inputs, always the same. `scripts/fuzz` feeds them new inputs
//! for any time, with AddressSanitizer.

mod annotation;
mod arrow;
pub mod decode;
mod header;
mod jpeg;
mod list;
mod raster;
mod recipe;
mod ring;
mod saved_index;
mod table;
mod tar;

use std::path::Path;

/// Takes one input after the other.
pub type Target = Box<dyn FnMut(&[u8])>;

/// Makes a target without earlier inputs.
pub type Make = fn() -> Target;

/// The makers of all targets, by name.
pub const TARGETS: &[(&str, Make)] = &[
    ("annotation", annotation::target),
    ("arrow", arrow::target),
    ("decode", decode::target),
    ("header", header::target),
    ("jpeg", jpeg::target),
    ("list", list::target),
    ("raster", raster::target),
    ("recipe", recipe::target),
    ("ring", ring::target),
    ("saved_index", saved_index::target),
    ("table", table::target),
    ("tar", tar::target),
];

/// Whether a path stays under the folder that it starts from.
fn within(path: &Path) -> bool {
    use std::path::Component::{CurDir, Normal, ParentDir};
    let mut depth = 0i64;
    path.components().all(|part| {
        depth += match part {
            Normal(_) => 1,
            CurDir => 0,
            ParentDir => -1,
            _ => return false,
        };
        depth >= 0
    })
}
