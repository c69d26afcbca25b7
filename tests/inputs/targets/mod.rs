//! What becomes of any bytes from outside: a function for each kind of them, which
//! panics when what must hold does not.
//!
//! `smoke` feeds them a few thousand inputs, always the same. `scripts/fuzz` feeds
//! them new ones for as long as one likes, with AddressSanitizer.

pub mod decode;
mod header;
mod jpeg;
mod list;
mod recipe;
mod ring;
mod saved_index;
mod table;
mod tar;

use std::path::Path;

/// Takes one input after the other.
pub type Target = Box<dyn FnMut(&[u8])>;

/// A target that has seen nothing yet.
pub type Make = fn() -> Target;

/// What makes each target, by its name.
pub const TARGETS: &[(&str, Make)] = &[
    ("decode", decode::target),
    ("header", header::target),
    ("jpeg", jpeg::target),
    ("list", list::target),
    ("recipe", recipe::target),
    ("ring", ring::target),
    ("saved_index", saved_index::target),
    ("table", table::target),
    ("tar", tar::target),
];

/// True for a path that stays under the folder that it starts from.
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
