//! How the rays of a batch are distributed over images and pixels, as data.
//!
//! Used in every process. Not here: the draws (`draw`).

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How the rays of a batch are distributed over the images of a scene.
///
/// Rays are drawn with replacement. One draw selects a unit: a pixel, a pair or a patch. The rays
/// of a unit are consecutive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RaySampler {
    /// All pixels of all images that may be sampled are equally likely.
    #[default]
    Uniform,
    /// All images are equally likely, then all pixels of the image.
    ByImage,
    /// Patches of `size` x `size` pixels that are `dilation` apart, row by row. A patch may start
    /// wherever all its pixels may be sampled; all such positions are equally likely.
    Patches { size: u32, dilation: u32 },
    /// Pairs of pixels of one image. The first is drawn as in [`RaySampler::Uniform`]. The second
    /// is at most `radius` rows and `radius` columns away, and all pixels there that may be sampled
    /// are equally likely. If there is no other pixel, the second is the first again.
    Pairs { radius: u32 },
}

impl RaySampler {
    /// The largest [`RaySampler::Patches`] `size`.
    pub const MAX_PATCH: u32 = 4096;
    /// The largest [`RaySampler::Pairs`] `radius`. A pair in a mask reads each row of its window.
    pub const MAX_RADIUS: u32 = 4096;

    /// Rays per unit. A batch holds whole units only.
    #[must_use]
    pub fn rays_per_unit(self) -> u32 {
        match self {
            Self::Uniform | Self::ByImage => 1,
            Self::Patches { size, .. } => size.saturating_mul(size).max(1),
            Self::Pairs { .. } => 2,
        }
    }

    /// The number of rays in whole units that fit in a batch of `rays`. The remainder is less than
    /// one unit.
    #[must_use]
    pub fn whole_rays(self, rays: u64) -> u64 {
        rays - rays % u64::from(self.rays_per_unit())
    }

    /// Checks sizes and distances.
    ///
    /// # Errors
    ///
    /// `Config` for a size, dilation or radius that is 0 or above its limit.
    pub fn check(self) -> Result<()> {
        let within = |what: &str, value: u32, most: u32| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(Error::config(format!(
                "the {what} is {value}: use 1 to {most}"
            ))),
        };
        match self {
            Self::Uniform | Self::ByImage => Ok(()),
            Self::Patches { size, dilation } => {
                within("size of a patch", size, Self::MAX_PATCH)?;
                within("dilation of a patch", dilation, u32::from(u16::MAX))
            }
            Self::Pairs { radius } => within("radius of a pair", radius, Self::MAX_RADIUS),
        }
    }

    /// Distance of the last row and column of a unit's window from its first: 0, except for
    /// patches.
    pub(super) fn extent(self) -> u32 {
        match self {
            Self::Patches { size, dilation } => size.saturating_sub(1).saturating_mul(dilation),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_units_are_in_a_batch() {
        let patches = RaySampler::Patches {
            size: 7,
            dilation: 3,
        };
        assert_eq!((patches.rays_per_unit(), patches.extent()), (49, 18));
        assert_eq!(
            [0, 48, 49, 4096].map(|n| patches.whole_rays(n)),
            [0, 0, 49, 4067]
        );
        assert_eq!(RaySampler::Pairs { radius: 2 }.whole_rays(4095), 4094);
        assert_eq!(RaySampler::ByImage.whole_rays(4095), 4095);
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let patches = |size, dilation| RaySampler::Patches { size, dilation };
        let pairs = |radius| RaySampler::Pairs { radius };
        for wrong in [
            patches(0, 1),
            patches(4, 0),
            patches(4097, 1),
            patches(4, 65_536),
            patches(u32::MAX, u32::MAX),
            pairs(0),
            pairs(4097),
        ] {
            assert!(wrong.check().unwrap_err().is_config(), "{wrong:?}");
            // Nor does it overflow before it is refused.
            let _ = (wrong.extent(), wrong.whole_rays(u64::MAX));
        }
        for right in [
            RaySampler::Uniform,
            RaySampler::ByImage,
            patches(1, 1),
            patches(4096, 65_535),
            pairs(4096),
        ] {
            right.check().unwrap();
        }
    }

    #[test]
    fn samplers_are_written_by_name() {
        let patches = RaySampler::Patches {
            size: 32,
            dilation: 1,
        };
        let text = serde_json::to_string(&[RaySampler::ByImage, patches]).unwrap();
        assert_eq!(text, r#"["by_image",{"patches":{"size":32,"dilation":1}}]"#);
    }
}
