//! Arithmetic on decoded pixels.
//!
//! Runs in workers, and in the consumer with zero workers. Pure: never a file, a
//! path, a ring, a thread, a random number that was not handed in; the same bits
//! on every CPU. Pixels are three channels, in `u8` or `f32`, as stored: how the
//! picture is turned is the caller's [`Placement`](crate::recipe::Placement).
//! Values are levels, 0 to 255, unless a function says otherwise.
//!
//! - `pixel_view`: rows of pixels in memory;
//! - `oriented_pixels`: a picture upright, whichever way it is stored;
//! - `level`: what the two types of a channel have in common;
//! - `canvas`: a picture and the steps on it;
//! - `resample/`: the separable resize;
//! - `pad`: pixels around a picture;
//! - `rotate`: a turn by any angle, as torchvision; `warp`: as OpenCV; `elastic`: every
//!   pixel from a place near it;
//! - `remap`: every pixel from a given place of another picture;
//! - `jitter`, `grey`, `convert`, `blur`, `erase`, `normalise`: operations that
//!   change values, not places; `normal_numbers`: numbers for noise;
//! - `augment/`: Pillow's operations, which augmentation policies are made of;
//! - `emit`: from pixels to the elements of a row.

mod augment;
mod blur;
pub(crate) mod canvas;
mod convert;
mod elastic;
pub(crate) mod emit;
mod erase;
mod grey;
mod jitter;
mod level;
mod normal_numbers;
pub(crate) mod normalise;
mod oriented_pixels;
mod pad;
pub(crate) mod pixel_view;
pub(crate) mod remap;
pub(crate) mod resample;
mod rotate;
mod warp;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::rounding;
