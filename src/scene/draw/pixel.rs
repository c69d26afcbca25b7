//! Draws the pixels of rays.
//!
//! Used in every process. A pure function of (seed, step, rank, ray) and of the table, without
//! state or rejection. Per unit it makes one call of the generator and two searches, over images
//! and over rows. Not here: computing a ray from its pixel.

use super::mask_bits::MaskView;
use super::random::{DrawPurpose, below};
use super::sampler::RaySampler;
use super::table::{RayStep, RayTable};
use super::table_format::{ImageRecord, TableSections};

/// One pixel of one image. All numbers count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ScenePixel {
    /// Number of the image in the scene.
    pub image: u32,
    pub row: u32,
    pub col: u32,
}

/// The image's mask is missing, or has other pixels than the table counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrongMask {
    pub(crate) image: u32,
}

impl RayTable {
    /// Draws the pixel of one ray of a step. The sequence is endless: n rays are its first n.
    ///
    /// `mask` returns the mask of the ray's image, if it has one. For patches it must return the
    /// mask after [`erode`](super::erode), with which the table was built.
    ///
    /// Takes one call of Philox, a search over images, one over rows, and one row of the mask. With
    /// a mask or a disc, the second pixel of a pair reads 2 x radius + 1 rows.
    #[cfg(test)]
    pub(crate) fn pixel<'m>(
        &self,
        step: &RayStep,
        ray: u64,
        mut mask: impl FnMut(u32) -> Option<MaskView<'m>>,
    ) -> Result<ScenePixel, WrongMask> {
        let draws = self.draws(step);
        let per_unit = u64::from(self.sampler().rays_per_unit());
        let (unit, within) = match per_unit {
            1 => (ray, 0),
            _ => (ray / per_unit, (ray % per_unit) as u32),
        };
        let first = draws.first(unit, &mut mask)?;
        match self.sampler() {
            RaySampler::Uniform | RaySampler::ByImage => Ok(first),
            RaySampler::Patches { size, dilation } => {
                Ok(in_patch(first, within / size, within % size, dilation))
            }
            RaySampler::Pairs { radius } => match within {
                0 => Ok(first),
                _ => draws.partner(unit, first, radius, &mut mask),
            },
        }
    }

    /// Draws the pixels of the rays from `ray` on, until `out` is full. The same pixels as
    /// `RayTable::pixel`, in less time. Calls `mask` at most once a ray, and for patches once a
    /// patch.
    pub(crate) fn fill<'m>(
        &self,
        step: &RayStep,
        ray: u64,
        mut mask: impl FnMut(u32) -> Option<MaskView<'m>>,
        out: &mut [ScenePixel],
    ) -> Result<(), WrongMask> {
        let draws = self.draws(step);
        let per_unit = u64::from(self.sampler().rays_per_unit());
        match self.sampler() {
            RaySampler::Uniform | RaySampler::ByImage => {
                if let Some(room) = self.common_size {
                    for (ray, pixel) in numbered_rays(ray, out) {
                        *pixel = draws.pixel_in_equal_images(ray, room);
                    }
                    return Ok(());
                }
                for (ray, pixel) in numbered_rays(ray, out) {
                    *pixel = draws.first(ray, &mut mask)?;
                }
            }
            RaySampler::Patches { size, dilation } => {
                let (mut unit, mut within) = (ray / per_unit, ray % per_unit);
                let mut left = out;
                while !left.is_empty() {
                    let here = (per_unit - within).min(left.len() as u64);
                    let (patch, behind) = left.split_at_mut(here as usize);
                    left = behind;
                    let first = draws.first(unit, &mut mask)?;
                    let (mut y, mut x) = (within as u32 / size, within as u32 % size);
                    for pixel in patch {
                        *pixel = in_patch(first, y, x, dilation);
                        x += 1;
                        if x == size {
                            (y, x) = (y + 1, 0);
                        }
                    }
                    (unit, within) = (unit.wrapping_add(1), 0);
                }
            }
            RaySampler::Pairs { radius } => {
                let mut first = None;
                for (ray, pixel) in numbered_rays(ray, out) {
                    let base = match first.take().filter(|_| ray % 2 == 1) {
                        Some(base) => base,
                        None => draws.first(ray / 2, &mut mask)?,
                    };
                    *pixel = match ray % 2 {
                        0 => *first.insert(base),
                        _ => draws.partner(ray / 2, base, radius, &mut mask)?,
                    };
                }
            }
        }
        Ok(())
    }

    /// The image of one ray. It must be decoded before the ray's pixel is drawn.
    #[cfg(test)]
    pub(crate) fn image(&self, step: &RayStep, ray: u64) -> u32 {
        let unit = ray / u64::from(self.sampler().rays_per_unit());
        self.draws(step)
            .image(step.key.words(unit, DrawPurpose::Place)[0])
    }

    /// Time of a ray within the exposure of its image, from 0 to below 1.
    pub(crate) fn exposure_time(&self, step: &RayStep, ray: u64) -> f64 {
        // An f64 holds 53 bits.
        (step.key.words(ray, DrawPurpose::Moment)[0] >> 11) as f64 / (1u64 << 53) as f64
    }

    fn draws<'a>(&'a self, step: &'a RayStep) -> Draws<'a> {
        let parts = self.parts();
        let last = (step.images as usize).checked_sub(1);
        let even = self.images_equal || self.sampler() == RaySampler::ByImage;
        Draws {
            step,
            parts,
            extent: self.sampler().extent(),
            total: match even {
                true => u64::from(step.images),
                false => last.and_then(|l| parts.sums.get(l)).copied().unwrap_or(0),
            },
            even,
        }
    }
}

/// The rays from `ray` on, each with the place of its pixel.
fn numbered_rays(ray: u64, out: &mut [ScenePixel]) -> impl Iterator<Item = (u64, &mut ScenePixel)> {
    (0u64..)
        .zip(out)
        .map(move |(i, pixel)| (ray.wrapping_add(i), pixel))
}

fn in_patch(first: ScenePixel, y: u32, x: u32, dilation: u32) -> ScenePixel {
    ScenePixel {
        row: first.row + y * dilation,
        col: first.col + x * dilation,
        ..first
    }
}

/// The current table and step.
struct Draws<'a> {
    step: &'a RayStep,
    parts: TableSections<'a>,
    extent: u32,
    /// Number of images to draw from if all are equally likely, otherwise number of units.
    total: u64,
    /// Whether all images are equally likely.
    even: bool,
}

impl Draws<'_> {
    /// The image that a random word selects.
    #[inline]
    fn image(&self, word: u64) -> u32 {
        let (drawn, _) = below(word, self.total);
        let place = match self.even {
            true => drawn as usize,
            // The sums of images that have not joined are above every number drawn.
            false => self.parts.sums.partition_point(|&sum| sum <= drawn),
        };
        self.parts.order.get(place).copied().unwrap_or_default()
    }

    /// The pixel of a unit of one ray, if all images are whole and of equal size.
    #[inline]
    fn pixel_in_equal_images(&self, unit: u64, (width, height): (u32, u32)) -> ScenePixel {
        let [which, place] = self.step.key.words(unit, DrawPurpose::Place);
        let (drawn, _) = below(which, u64::from(self.step.images));
        let (row, rest) = below(place, u64::from(height));
        let (col, _) = below(rest, u64::from(width));
        ScenePixel {
            image: self
                .parts
                .order
                .get(drawn as usize)
                .copied()
                .unwrap_or_default(),
            row: row as u32,
            col: col as u32,
        }
    }

    /// The first pixel of a unit.
    fn first<'m>(
        &self,
        unit: u64,
        mask: &mut impl FnMut(u32) -> Option<MaskView<'m>>,
    ) -> Result<ScenePixel, WrongMask> {
        let [which, place] = self.step.key.words(unit, DrawPurpose::Place);
        let number = self.image(which);
        let wrong = WrongMask { image: number };
        let image = self.parts.images.get(number as usize).ok_or(wrong)?;
        let (width, height) = image.room(self.extent);
        if image.is_whole() {
            let (row, rest) = below(place, u64::from(height));
            return Ok(ScenePixel {
                image: number,
                row: row as u32,
                col: below(rest, u64::from(width)).0 as u32,
            });
        }
        let (row, n) = self.row(image, height, place);
        let columns = image.shape().columns(image.size(), self.extent, row);
        let col = match image.is_masked() {
            true => mask_of(number, image, mask)?
                .select_in(row, columns, n)
                .ok_or(wrong)?,
            // The table counts a disc's rows. A count may not lead beyond the disc's columns.
            false => columns.clone().nth(n as usize).ok_or(wrong)?,
        };
        Ok(ScenePixel {
            image: number,
            row,
            col,
        })
    }

    /// The row that a random word selects, and the index of the unit in it, from 0.
    fn row(&self, image: &ImageRecord, height: u32, word: u64) -> (u32, u32) {
        let counts = self.parts.counts_of(image, height);
        let weights = self.parts.weights_of(image, height);
        if !image.is_sphere() {
            let (n, _) = below(word, u64::from(counts.last().copied().unwrap_or(0)));
            let n = n as u32;
            let row = counts.partition_point(|&count| count <= n);
            return (row as u32, n - sum_before(counts, row));
        }
        let (n, _) = below(word, weights.last().copied().unwrap_or(0));
        let row = weights.partition_point(|&weight| weight <= n);
        let (start, first) = (sum_before(weights, row), sum_before(counts, row));
        let weight = weights.get(row).map_or(0, |end| end - start);
        let units = counts.get(row).map_or(0, |end| u64::from(end - first));
        // All pixels of a row have the same weight: its sine.
        let sine = weight.checked_div(units).unwrap_or(1);
        (
            row as u32,
            (n - start).checked_div(sine).unwrap_or(0) as u32,
        )
    }

    /// The second pixel of a pair: any other pixel of the window around the first.
    fn partner<'m>(
        &self,
        unit: u64,
        first: ScenePixel,
        radius: u32,
        mask: &mut impl FnMut(u32) -> Option<MaskView<'m>>,
    ) -> Result<ScenePixel, WrongMask> {
        let [word, _] = self.step.key.words(unit, DrawPurpose::Partner);
        let wrong = WrongMask { image: first.image };
        let image = self.parts.images.get(first.image as usize).ok_or(wrong)?;
        let (width, height) = image.size();
        let around = |at: u32, size: u32| {
            at.saturating_sub(radius)..at.saturating_add(radius).saturating_add(1).min(size)
        };
        let (rows, cols) = (around(first.row, height), around(first.col, width));
        let mask = match image.is_masked() {
            true => Some(mask_of(first.image, image, mask)?),
            false => None,
        };
        let shape = image.shape();
        let columns = |row: u32| {
            let all = shape.columns((width, height), 0, row);
            all.start.max(cols.start)..all.end.min(cols.end)
        };
        let count = |row: u32| match mask {
            Some(mask) => mask.count_in(row, columns(row)),
            None => columns(row).len() as u32,
        };
        let at = |row: u32, n: u32| match mask {
            Some(mask) => mask.select_in(row, columns(row), n),
            None => Some(columns(row).start + n),
        };
        // A window has at most 8193^2 pixels. If every pixel of the image counts, all rows of the
        // window have equal length.
        let even = (image.has_full_rows()).then(|| columns(first.row).len() as u32);
        let total: u32 = match even {
            Some(each) => each * rows.len() as u32,
            None => rows.clone().map(count).sum(),
        };
        // The first pixel of the pair is excluded: the last pixel of the window takes its place.
        let others = total.saturating_sub(1);
        let mut n = below(word, u64::from(others)).0 as u32;
        let found = |mut n: u32| match even {
            Some(each) => {
                let row = rows.start + n / each.max(1);
                Some((row, columns(row).start + n % each.max(1)))
            }
            None => rows.clone().find_map(|row| {
                let here = count(row);
                match n < here {
                    true => at(row, n).map(|col| (row, col)),
                    false => {
                        n -= here;
                        None
                    }
                }
            }),
        };
        let mut pair = found(n);
        if pair == Some((first.row, first.col)) && others > 0 {
            n = others;
            pair = found(n);
        }
        let (row, col) = pair.ok_or(wrong)?;
        Ok(ScenePixel { row, col, ..first })
    }
}

/// The running sum before this row.
fn sum_before<T: Copy + Default>(sums: &[T], row: usize) -> T {
    let last = row.checked_sub(1).and_then(|last| sums.get(last));
    last.copied().unwrap_or_default()
}

/// The mask of an image, if its size is right.
fn mask_of<'m>(
    number: u32,
    image: &ImageRecord,
    mask: &mut impl FnMut(u32) -> Option<MaskView<'m>>,
) -> Result<MaskView<'m>, WrongMask> {
    mask(number)
        .filter(|mask| mask.size() == image.size())
        .ok_or(WrongMask { image: number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::draw::{MaskBits, RayTableBuilder, RegionShape, SamplingRegion};

    /// Rows without a pixel are first, last and between: no word selects one, and the
    /// words of a row begin and end where its share does.
    #[test]
    fn a_word_leads_to_the_row_whose_share_it_is_in() {
        let rows: [[u8; 3]; 6] = [
            [0, 0, 0],
            [0, 1, 1],
            [0, 0, 0],
            [1, 1, 1],
            [1, 0, 0],
            [0; 3],
        ];
        let mask = MaskBits::from_pixels(rows.as_flattened(), 3, 6).unwrap();
        for shape in [RegionShape::Whole, RegionShape::Sphere] {
            let mut builder = RayTableBuilder::new(RaySampler::Uniform, 1, 0).unwrap();
            let region = SamplingRegion {
                shape,
                mask: Some(mask.view()),
            };
            builder.add((3, 6), &region).unwrap();
            let table = builder.finish().unwrap();
            let step = table.step(0, 0);
            let draws = table.draws(&step);
            let image = &draws.parts.images[0];
            let weight = |row: u32| u128::from(shape.row_weight(6, 0, row));
            let pixels = [(1, 0), (1, 1), (3, 0), (3, 1), (3, 2), (4, 0)];
            let total: u128 = pixels.iter().map(|&(row, _)| weight(row)).sum();
            let mut start = 0;
            for (row, n) in pixels {
                let end = start + weight(row);
                let first = (start << 64).div_ceil(total) as u64;
                let last = ((end << 64).div_ceil(total) - 1) as u64;
                for word in [first, first + 1, last - 1, last] {
                    assert_eq!(draws.row(image, 6, word), (row, n), "{shape:?} {word:x}");
                }
                start = end;
            }
        }
    }
}
