//! Builds the sampling table from frames, masks and sampler.
//!
//! Runs in the consumer. Not here: processes, decoding.

use crate::camera::Lens;
use crate::error::{Error, Result};
use crate::scene::draw::RaySampler;
use crate::scene::draw::{
    CropDisc, MaskBits, MaskView, RayTable, RayTableBuilder, RegionShape, SamplingRegion, erode,
};
use crate::scene::jobs::shared::masks::SceneMasks;
use crate::scene::run::SplitFrames;

/// Builds the sampling table, and the masks that belong to it. `words` are the masks of the frames
/// that have one, in frame order.
///
/// # Errors
/// No pixel to sample in any image; an invalid sampler.
pub(super) fn table(
    chosen: &SplitFrames,
    sampler: RaySampler,
    (seed, joining): (u64, u32),
    words: &[Vec<u64>],
) -> Result<(RayTable, SceneMasks)> {
    let mut table = RayTableBuilder::new(sampler, seed, joining)?;
    let mut words = words.iter();
    let mut sealed: Vec<MaskBits> = Vec::new();
    for (image, frame) in chosen.frames.frames.iter().enumerate() {
        let camera = chosen.frames.camera(image);
        let (width, height) = camera.map_or((0, 0), |c| (c.width, c.height));
        let mut region = SamplingRegion {
            shape: shape_of(chosen, image)?,
            mask: None,
        };
        if frame.has_mask {
            let view = words.next().and_then(|w| MaskView::new(w, width, height));
            let view = view.ok_or_else(|| Error::protocol("a mask has another size"))?;
            let bits = match sampler {
                RaySampler::Patches { size, dilation } => erode(view, size, dilation),
                _ => view.to_bits(),
            };
            sealed.push(bits);
            region.mask = sealed.last().map(|bits| bits.view());
        }
        table.add((width, height), &region)?;
    }
    let words: Vec<&[u64]> = sealed.iter().map(|bits| bits.words()).collect();
    Ok((table.finish()?, SceneMasks::seal(&chosen.frames, &words)?))
}

pub(super) fn shape_of(chosen: &SplitFrames, image: usize) -> Result<RegionShape> {
    let lens = chosen.frames.camera(image).map(|camera| camera.lens);
    if lens == Some(Lens::Equirectangular) {
        return Ok(RegionShape::Sphere);
    }
    match chosen.crop_radii.get(image).copied().flatten() {
        Some(radius) => CropDisc::new(radius).map(RegionShape::Disc),
        None => Ok(RegionShape::Whole),
    }
}
