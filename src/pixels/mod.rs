//! Arithmetic on decoded pixels.
//!
//! Runs in workers, and in the consumer with zero workers. Pure: no files, paths, rings or threads.
//! Random numbers come from the caller. The results have the same bits on every CPU. Pixels have
//! three channels, in `u8` or `f32`, in the stored orientation. The caller's
//! [`PixelPlacement`](crate::recipe::PixelPlacement) has the orientation of the image. Values are
//! levels, 0 to 255, unless a function states another range.
//!
//! - `pixel_view`: rows of pixels in memory;
//! - `oriented_pixels`: an upright view of an image in any stored orientation;
//! - `level`: the common interface of the two channel types;
//! - `canvas`: an image and the steps on it;
//! - `resample/`: the separable resize;
//! - `pad`: pixels around an image;
//! - `rotate`: a rotation by any angle, as in torchvision; `warp`: as in OpenCV; `elastic`: moves
//!   every pixel by a small random distance;
//! - `joining`: joins pictures of several samples;
//! - `remap`: takes every pixel from a given place of another image;
//! - `jitter`, `grey`, `convert`, `blur`, `erase`, `noise`, `normalise`: operations that change
//!   values and move no pixel; `normal_numbers`: numbers for noise;
//! - `tensor`: torchvision's operations on tensors of bytes;
//! - `augment/`: Pillow's operations, for augmentation policies;
//! - `emit`: converts pixels to the elements of a row.

pub(crate) mod augment;
pub(crate) mod blur;
pub(crate) mod canvas;
mod convert;
pub(crate) mod elastic;
pub(crate) mod emit;
mod erase;
mod grey;
pub(crate) mod jitter;
pub(crate) mod joining;
mod level;
mod noise;
mod normal_numbers;
pub(crate) mod normalise;
mod oriented_pixels;
mod pad;
pub(crate) mod pixel_view;
pub(crate) mod remap;
pub(crate) mod resample;
mod rotate;
mod tensor;
mod warp;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::rounding;
