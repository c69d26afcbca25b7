//! Pillow's operations on 8-bit RGB, equal to the bit: the parts of augmentation policies, and
//! torchvision's single operations on Pillow images.
//!
//! Runs with the other arithmetic on pixels. It allocates nothing and draws nothing: the caller
//! passes strengths. `canvas` decides which buffer an operation reads and which it writes.
//!
//! - `table`: maps each level by a table of 256: invert, posterize, solarize;
//! - `histogram`: tables from the levels of the image: autocontrast, equalize;
//! - `blend`: mixes with black, a mean, grey or a smooth image;
//! - `hue`: through Pillow's `HSV`;
//! - `affine`: the source of each pixel, and `Image.rotate`; `perspective`: the same with vanishing
//!   points; `interpolate`: values between pixels, by the sums of `kernel`; `inside` and `avx2`: the
//!   same far from edges;
//! - `mix`: AugMix's sum of images; `box_blur`: `ImageFilter.GaussianBlur`;
//! - `opencv_affine`: OpenCV's `warpAffine`;
//! - `opencv_blur`, `opencv_resize`: operations of OpenCV that PaddleClas uses;
//! - `opencv_hsv`: OpenCV's `HSV`.
//!
//! `tests/goldens/augment.tar` has Pillow's results for the same images.

pub(super) mod affine;
#[cfg(target_arch = "x86_64")]
mod avx2;
pub(super) mod blend;
pub(crate) mod box_blur;
pub(super) mod histogram;
pub(super) mod hue;
mod inside;
pub(super) mod interpolate;
mod kernel;
pub(super) mod mix;
pub(super) mod opencv_affine;
pub(super) mod opencv_blur;
pub(super) mod opencv_hsv;
pub(super) mod opencv_resize;
pub(super) mod perspective;
pub(super) mod table;

#[cfg(test)]
mod tests;
