//! diffusers: `generate_aspect_ratio_buckets`, `find_nearest_bucket`, and `_bucket_for_image` and
//! `train_transform` of its DreamBooth scripts.

use super::bucket_fit::{BucketFit, rounded};

/// Width and height.
const RATIOS: [(u32, u32); 11] = [
    (1, 1),
    (4, 5),
    (5, 4),
    (2, 3),
    (3, 2),
    (3, 4),
    (4, 3),
    (9, 16),
    (16, 9),
    (1, 2),
    (2, 1),
];

/// The sides of the ladder are those of an area that is at most the image's.
pub(super) fn fit((height, width): (u32, u32), area: u64, step: u32) -> BucketFit {
    let pixels = u64::from(height) * u64::from(width);
    let own = rounded((pixels as f64).sqrt());
    let resolution = (area as f64).sqrt().floor().min(own);
    let target = resolution * resolution;
    let step = f64::from(step);
    let multiple = |side: f64| (rounded(side / step) * step).max(step) as u32;
    // Each size once, at its first place: the last of several nearest ones is taken.
    let mut ladder = Vec::with_capacity(RATIOS.len());
    for (w, h) in RATIOS {
        let aspect = f64::from(w) / f64::from(h);
        let high = (target / aspect).sqrt();
        let size = (multiple(high), multiple(high * aspect));
        if !ladder.contains(&size) {
            ladder.push(size);
        }
    }
    let metric = |(h, w): (u32, u32)| {
        (u64::from(height) * u64::from(w)).abs_diff(u64::from(width) * u64::from(h))
    };
    let nearest = ladder.into_iter().rev().min_by_key(|size| metric(*size));
    let row = nearest.unwrap_or_default();
    let (h, w) = (f64::from(height), f64::from(width));
    let scale = (f64::from(row.0) / h).max(f64::from(row.1) / w);
    BucketFit {
        row,
        resized: (rounded(h * scale) as u32, rounded(w * scale) as u32),
    }
}
