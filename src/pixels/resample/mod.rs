//! Separable resize of RGB8, the fast CPU one: `u8` in, `u8` out, `i16`
//! coefficients, `i32` sums, two passes with a `u8` level between them.
//!
//! Runs in the worker, and in the consumer when there are no workers. The
//! folder is the table: one file an instruction set, each with the same two
//! functions (one row across, one row down), all of them bit-identical to
//! `scalar`, because integers are: `avx2` and `sse41`, by groups of `lane_weights`; `rows` has
//! the two orders of them. What the pixels become is a function of the
//! arguments alone, never of the CPU. Must never be in here: a formula for
//! weights (they are `recipe::weights`), floats (only `floats`, which resizes
//! pixels that are floats, and `reference` have them), threads, and allocation
//! in a warm call.
//!
//! ```text
//! across first (as Pillow)            down first (strong reductions)
//! src row --across--> ring of rows    src rows --down--> one row
//! ring    --down----> dst row         one row  --across-> dst row
//! ```
//!
//! Either order goes through the image once, with a few rows of scratch that
//! stay in the first-level cache. Nearest neighbour is no sum: its pixels are
//! copied (`nearest`), on every CPU by the same code.
//!
//! - `axes`: what is resized to what; `resampler`: the order of the passes, and memory;
//! - `passes`: one row across or down, by `scalar`, `sse41` or `avx2`; `lane_weights`: weights in
//!   the order that the latter two read them;
//! - `nearest`: nearest neighbour; `rows`: pictures that come row by row; `floats`: pixels
//!   that are floats.

mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod sse41;

mod axes;
mod floats;
mod lane_weights;
mod nearest;
mod passes;
mod resampler;
mod rows;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use crate::recipe::geometry::FractionalBox;
#[cfg(any(test, feature = "internals"))]
pub use axes::ResizeTarget;
pub use axes::{PixelSource, ResizeAxes};
pub use resampler::ImageResampler;
pub(crate) use resampler::down_first;
pub(crate) use rows::RowSource;
