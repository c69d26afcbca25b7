//! kohya's sd-scripts: `make_bucket_resolutions` and `BucketManager.select_bucket`.

use super::bucket_fit::BucketFit;

/// The ladder of sizes: width and height, in ascending order.
#[derive(Debug, Default)]
pub(super) struct SdScriptsBuckets(Vec<(u32, u32)>);

impl SdScriptsBuckets {
    /// The square below the area, and for each width from the least side on the largest height.
    pub(super) fn new(area: u64, (least, most): (u32, u32), step: u32) -> Self {
        let square = ((area as f64).sqrt() / f64::from(step)).floor() as u32 * step;
        let mut sizes = vec![(square, square)];
        for width in (least..=most).step_by(step as usize) {
            let height = area / u64::from(width) / u64::from(step) * u64::from(step);
            let height = height.min(u64::from(most)) as u32;
            if height >= least {
                sizes.extend([(width, height), (height, width)]);
            }
        }
        sizes.sort_unstable();
        sizes.dedup();
        Self(sizes)
    }

    /// The size with the nearest ratio, of several the first. An image that has a size of the ladder
    /// keeps it.
    pub(super) fn fit(&self, (height, width): (u32, u32)) -> BucketFit {
        let aspect = f64::from(width) / f64::from(height);
        let error = |(w, h): &(u32, u32)| (f64::from(*w) / f64::from(*h) - aspect).abs();
        let own = self.0.contains(&(width, height)).then_some((width, height));
        let nearest = || {
            let all = self.0.iter();
            all.min_by(|a, b| error(a).total_cmp(&error(b))).copied()
        };
        let (w, h) = own.or_else(nearest).unwrap_or_default();
        let scale = match aspect > f64::from(w) / f64::from(h) {
            true => f64::from(h) / f64::from(height),
            false => f64::from(w) / f64::from(width),
        };
        let side = |side: u32| (f64::from(side) * scale + 0.5) as u32;
        BucketFit {
            row: (h, w),
            resized: (side(height), side(width)),
        }
    }
}

/// `bucket_no_upscale`: an image above the area is reduced so that one side is a multiple of the step,
/// and each side of the row is cut to one.
pub(super) fn fit_without_upscale((height, width): (u32, u32), area: u64, step: u32) -> BucketFit {
    let (w, h) = (f64::from(width), f64::from(height));
    let multiple = |side: f64| {
        let side = (side + 0.5) as u32;
        side - side % step
    };
    let resized = if u64::from(width) * u64::from(height) > area {
        let aspect = w / h;
        let wide = (area as f64 * aspect).sqrt();
        let high = area as f64 / wide;
        let of_width = multiple(wide);
        let height_of_it = multiple(f64::from(of_width) / aspect);
        let of_height = multiple(high);
        let width_of_it = multiple(f64::from(of_height) * aspect);
        let error = |w: u32, h: u32| (f64::from(w) / f64::from(h) - aspect).abs();
        match error(of_width, height_of_it) < error(width_of_it, of_height) {
            true => ((f64::from(of_width) / aspect + 0.5) as u32, of_width),
            false => (of_height, (f64::from(of_height) * aspect + 0.5) as u32),
        }
    } else {
        (height, width)
    };
    let cut = |side: u32| side - side % step;
    BucketFit {
        row: (cut(resized.0), cut(resized.1)),
        resized,
    }
}
