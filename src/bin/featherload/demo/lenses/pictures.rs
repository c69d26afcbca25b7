//! The files of one view: its image, its mask, its depth.

use std::io;
use std::path::Path;

use featherload::{Camera, Result};
use image::ExtendedColorType;

use super::super::encode::{self, ChromaSampling, JpegOptions, png_of};
use super::super::files::{DemoFile, make_file};
use super::sets::{Coding, LensSet};
use super::texture::TexturedRoom;

/// File names of a view, without extension.
pub(super) fn name(number: usize) -> String {
    format!("{number:03}")
}

/// Writes the missing files of view `number`.
pub(super) fn make(
    dir: &Path,
    set: &LensSet,
    number: usize,
    room: &TexturedRoom,
) -> Result<DemoFile> {
    let view = &set.views[number];
    let Camera { width, height, .. } = view.camera;
    let shown = view.show(room, set.form.depth_unit());
    let name = name(number);
    let png = |pixels: &[u8], color| png_of((width, height), pixels, color);
    let image = dir.join(format!("images/{name}.{}", set.coding.extension()));
    let mut made = make_file(&image, || match set.coding {
        Coding::Png => png(&shown.rgb, ExtendedColorType::Rgb8),
        Coding::Rgba => {
            let pixels = shown.rgb.chunks_exact(3).zip(view.alpha());
            let rgba: Vec<u8> = pixels.flat_map(|(p, a)| [p[0], p[1], p[2], a]).collect();
            png(&rgba, ExtendedColorType::Rgba8)
        }
        Coding::Jpeg => {
            let size = |side: u32| u16::try_from(side).map_err(io::Error::other);
            let form = encode::JpegCoding::Jpeg(JpegOptions::Baseline(ChromaSampling::Full));
            form.encode(size(width)?, size(height)?, shown.rgb.clone(), 95)
        }
    })?;
    made.pixels = u64::from(width) * u64::from(height);
    if let Some(mask) = view.mask() {
        let path = dir.join(format!("masks/{name}.png"));
        made.add(&make_file(&path, || png(&mask, ExtendedColorType::L8))?);
    }
    if set.depths {
        let path = dir.join(format!("depths/{name}.png"));
        made.add(&make_file(&path, || {
            let levels: Vec<u8> = shown.depth.iter().flat_map(|d| d.to_ne_bytes()).collect();
            png(&levels, ExtendedColorType::L16)
        })?);
    }
    Ok(made)
}
