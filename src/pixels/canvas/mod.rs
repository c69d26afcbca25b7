//! A picture between its decoding and its emission: the buffers, and each step
//! on them.
//!
//! In workers, and in the consumer with zero workers. Crops, flips and quarter turns move
//! nothing: they change which part of the buffer counts, and how it is turned. Other steps
//! work in place, or write the other buffer of the same type. `cut::needs` says what that
//! takes in advance, and a test holds the two together. Never in here: arithmetic on
//! pixels, random numbers, files.
//!
//! - `buffers`: two of a type, and the part that is the picture; `mix_buffers`: what AugMix keeps;
//! - `steps`: each step on them; `augment`: those of policies.

mod augment;
mod buffers;
mod mix_buffers;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use steps::{CanvasPixels, PictureCanvas};
