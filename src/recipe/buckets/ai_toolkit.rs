//! ostris' ai-toolkit: `get_bucket_for_image_size` and `BucketsMixin.setup_buckets`.

use super::bucket_fit::BucketFit;

/// Of the sizes around the reduced one, that with the nearest area, of several the first.
pub(super) fn fit((height, width): (u32, u32), area: u64, step: u32) -> BucketFit {
    let resolution = (area as f64).sqrt().floor() as u64;
    let most = resolution * resolution;
    let pixels = u64::from(height) * u64::from(width);
    let target = pixels.min(most);
    let scale = (target as f64 / pixels as f64).sqrt();
    let steps = |side: u32| f64::from(side) * scale / f64::from(step);
    let (wide, high) = (steps(width), steps(height));
    let candidates = [
        (wide.floor(), high.floor()),
        (wide.floor(), high.ceil()),
        (wide.ceil(), high.floor()),
        (wide.ceil(), high.ceil()),
    ];
    let sides = |(w, h): (f64, f64)| (w as u32 * step, h as u32 * step);
    let pixels_of = |(w, h): (u32, u32)| u64::from(w) * u64::from(h);
    let fitting = candidates.map(sides).into_iter();
    let fitting = fitting.filter(|size| size.0 > 0 && size.1 > 0 && pixels_of(*size) <= most);
    let nearest = fitting.min_by_key(|size| pixels_of(*size).abs_diff(target));
    let least = || sides((wide.floor().max(1.0), high.floor().max(1.0)));
    let (w, h) = nearest.unwrap_or_else(least);
    let factor = (f64::from(w) / f64::from(width)).max(f64::from(h) / f64::from(height));
    let resized = |side: u32| (f64::from(side) * factor).ceil() as u32;
    BucketFit {
        row: (h, w),
        resized: (resized(height), resized(width)),
    }
}
