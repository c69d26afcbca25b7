//! Pillow's operations on 8-bit RGB, bit by bit: what augmentation policies are
//! made of, and torchvision's single operations on Pillow pictures.
//!
//! Runs where the other arithmetic on pixels does; allocates nothing, draws
//! nothing: strengths are handed in. `canvas` says which buffer an operation
//! reads and which it writes.
//!
//! - `table`: levels by themselves, out of a table of 256: invert, posterize, solarize;
//! - `histogram`: tables that the picture's levels give: autocontrast, equalize;
//! - `blend`: towards black, a mean, grey or a smooth picture, or away from it;
//! - `hue`: through Pillow's `HSV`;
//! - `affine`: where each pixel comes from, and `Image.rotate`; `perspective`: the same
//!   with vanishing points; `interpolate`: what is there, where that lies between pixels;
//! - `mix`: AugMix's sum of pictures;
//! - `opencv_blur`, `opencv_resize`: not Pillow's: what of OpenCV PaddleClas takes.
//!
//! `tests/goldens/augment.tar` holds what Pillow makes of the same pictures.

pub(super) mod affine;
pub(super) mod blend;
pub(super) mod histogram;
pub(super) mod hue;
mod interpolate;
pub(super) mod mix;
pub(super) mod opencv_blur;
pub(super) mod opencv_resize;
pub(super) mod perspective;
pub(super) mod table;

#[cfg(test)]
mod tests;
