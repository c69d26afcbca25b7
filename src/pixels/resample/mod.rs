//! Separable resize of RGB8, the fast CPU one: `u8` in, `u8` out, coefficients
//! of 16 or 24 bits, `i32` sums, two passes with a `u8` level between them.
//!
//! Runs in workers, and in the consumer with zero workers. Each instruction set has a file with the
//! same two functions (one row across, one row down): `avx2` and `sse41`. Their results equal those
//! of `scalar` to the bit, because they add integers. So the pixels depend on the arguments only,
//! never on the CPU. `rows` has the two orders of the passes. Never in here: a formula for weights
//! (they are in `recipe::weights`), floats (except in `floats`, which resizes float pixels, and in
//! `reference`), threads, and allocation in a warm call.
//!
//! ```text
//! across first                        down first
//! src row --across--> ring of rows    src rows --down--> one row
//! ring    --down----> dst row         one row  --across-> dst row
//! ```
//!
//! Either order goes through the image once, with a few rows of scratch that
//! stay in the first-level cache. Nearest neighbour copies pixels (`nearest`), by the same code on
//! every CPU.
//!
//! `down_first` has the rule for the order.
//!
//! - `axes`: source and target of a resize; `resampler`: the order of the passes, and memory;
//! - `passes`: one row across or down, by `scalar`, `sse41` or `avx2`; `lane_weights`: weights in
//!   the order that the latter two read them;
//! - `nearest`: nearest neighbour; `rows`: images that arrive row by row; `floats`: float pixels.

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
