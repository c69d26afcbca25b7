//! The options of a run, as data: one definition for the command line's flags and the Python
//! package's keywords. Everything may be left out.
//!
//! - `source`: where samples come from, and how that is read;
//! - `loader`: what is done with them, and by how many;
//! - `rays`: rays of a scene; `views`: its whole images; `scene`: what makes both of a list;
//! - `units`: sizes and times; `cli`: what the command line needs beside the options;
//! - `setup`: both together with the PaddleClas config that may be named as the recipe,
//!   whose values hold where the caller says nothing.
//!
//! In the consumer. Never in here: what an option does; that is the builder's.

#[cfg(feature = "cli")]
pub mod cli;
mod loader;
mod rays;
mod scene;
mod setup;
mod source;
pub mod units;
mod views;

use crate::error::{Error, Result};
use crate::plan::Rank;

pub use loader::{LoaderOptions, UploadOption};
pub use rays::RaysOptions;
pub use setup::Setup;
pub use source::{LabelSource, SourceOptions};
pub use views::ViewsOptions;

/// Gives a builder the options that have a value, by the methods of their names.
macro_rules! set_given {
    ($builder:ident, $options:expr, $($name:ident)*) => {$(
        if let Some(value) = $options.$name.clone() {
            $builder = $builder.$name(value);
        }
    )*};
}
use set_given;

/// A process's place among those that train together, where options name it.
///
/// # Errors
/// One of the two options alone.
fn place(rank: Option<u32>, world_size: Option<u32>) -> Result<Option<Rank>> {
    let missing = match (rank, world_size) {
        (Some(rank), Some(world)) => return Ok(Some(Rank::new(rank, world))),
        (None, None) => return Ok(None),
        (Some(_), None) => "world_size",
        (None, Some(_)) => "rank",
    };
    Err(Error::option(
        missing,
        format!("rank and world_size go together: {missing} is missing"),
    ))
}
