//! Arithmetic on decoded pixels.
//!
//! Runs in workers, and in the consumer with zero workers. Pure: never a file, a
//! path, a ring, a thread, a random number that was not handed in; the same bits
//! on every CPU. Pixels are three channels, in `u8` or `f32`, as stored: how the
//! picture is turned is the caller's [`Placement`](crate::recipe::Placement).
//! Values are levels, 0 to 255, unless a function says otherwise.
//!
//! - `view`: rows of pixels in memory;
//! - `resample/`: the separable resize;
//! - `level`: what the two types of a channel have in common;
//! - `jitter`, `grey`, `convert`, `blur`, `erase`, `normalise`: operations that
//!   change values, not places;
//! - `emit`: from pixels to the elements of a row.

pub(crate) mod blur;
pub(crate) mod convert;
pub(crate) mod emit;
pub(crate) mod erase;
pub(crate) mod grey;
pub(crate) mod jitter;
pub(crate) mod level;
pub(crate) mod normalise;
pub(crate) mod resample;
pub(crate) mod view;

#[cfg(test)]
mod colour_goldens;
