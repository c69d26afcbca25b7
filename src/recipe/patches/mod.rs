//! Patches of images for vision language models: the grid of an image, and the order of its values.
//!
//! Pure: no pixels, no files. The rules are those of the image processors of Hugging Face
//! transformers 5.24, number by number:
//! - `qwen`: `Qwen2VLImageProcessor`, which Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5 use;
//! - `siglip2`: `Siglip2ImageProcessor`, for the NaFlex models;
//! - `pix2struct`: `Pix2StructImageProcessor`;
//! - `tiles`: `GotOcr2ImageProcessor`, which InternVL uses, and `LlavaNextImageProcessor`.
//!
//! `patch_rule` has the numbers of the first three, `cut_rule` the rules of patches and tiles.
//! `patch_grid` is the result for an image. `patch_order` is the place of each pixel in it.

mod cut_rule;
mod patch_grid;
mod patch_order;
mod patch_rule;
mod pix2struct;
mod qwen;
mod siglip2;
#[cfg(test)]
mod tests;
mod tiles;

pub use cut_rule::CutRule;
pub use patch_grid::PatchGrid;
pub use patch_order::PatchOrder;
pub use patch_rule::{PatchRule, PatchStyle};
pub(crate) use tiles::OverviewPlace;
pub use tiles::{GridPinpoints, TileCanvases, TileRule, TileStyle};
