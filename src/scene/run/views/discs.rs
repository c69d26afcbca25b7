//! Crop discs of fisheye images as masks: a view masks out pixels beyond the crop radius.
//!
//! Runs in the consumer. For rays, the sampler handles discs without masks.

use crate::error::{Error, Result};
use crate::scene::draw::{CropDisc, MaskBits, MaskView};
use crate::scene::run::SplitFrames;

/// Returns the masks of all images that have a mask or a crop radius, in frame order. `words` are
/// the masks of the images with a mask.
///
/// # Errors
/// An invalid radius.
pub(super) fn masks_within_discs(
    chosen: &mut SplitFrames,
    words: Vec<Vec<u64>>,
) -> Result<Vec<Vec<u64>>> {
    if chosen.crop_radii.iter().all(Option::is_none) {
        return Ok(words);
    }
    let mut words = words.into_iter();
    let mut within = Vec::new();
    for image in 0..chosen.frames.frames.len() {
        let camera = chosen.frames.camera(image);
        let (width, height) = camera.map_or((0, 0), |camera| (camera.width, camera.height));
        let radius = chosen.crop_radii.get(image).copied().flatten();
        let frame = &mut chosen.frames.frames[image];
        let mask = match frame.has_mask {
            true => words.next(),
            false => None,
        };
        frame.has_mask |= radius.is_some();
        let Some(radius) = radius else {
            within.extend(mask);
            continue;
        };
        let mask = match &mask {
            None => None,
            Some(words) => {
                let view = MaskView::new(words, width, height);
                Some(view.ok_or_else(|| Error::protocol("a mask has another size"))?)
            }
        };
        let both = within_disc(CropDisc::new(radius)?, mask, (width, height));
        let both = both.ok_or_else(|| Error::protocol("an image without pixels"))?;
        within.push(both.words().to_vec());
    }
    Ok(within)
}

fn within_disc(disc: CropDisc, mask: Option<MaskView<'_>>, size: (u32, u32)) -> Option<MaskBits> {
    let (width, height) = size;
    let mut pixels = vec![0; width as usize * height as usize];
    for (row, line) in (0..height).zip(pixels.chunks_exact_mut(width as usize)) {
        for col in disc.columns(width, height, row) {
            let holds = mask.is_none_or(|mask| mask.holds(row, col));
            line[col as usize] = u8::from(holds);
        }
    }
    MaskBits::from_pixels(&pixels, width, height)
}
