//! An image between its decoding and its output: the buffers, and each step on them.
//!
//! Runs in workers, and in the consumer with zero workers. Crops, flips and quarter turns move no
//! pixels: they change the part of the buffer that is the image, and its orientation. Other steps
//! work in place, or write the other buffer of the same type. `decode_plan::canvas_memory` computes
//! the memory in advance, and a test compares both. Never in here: arithmetic on pixels, random
//! numbers, files.
//!
//! - `buffers`: two buffers of a type, and the part that is the image; `mix_buffers`: buffers of
//!   AugMix;
//! - `steps`: each step on them; `augment`: steps of augmentation policies.

mod augment;
mod buffers;
mod mix_buffers;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use steps::{CanvasPixels, PictureCanvas};
