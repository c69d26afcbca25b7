//! Byte format of a sampling table, and its checks.
//!
//! Used in every process. Values from shared memory are checked once, here. After the check no
//! value of the table leads outside of it. Not here: draws.
//!
//! ```text
//! header | running sums | weights of rows | images    | order | counts of rows
//!   64 B |       u64s   |          u64s   | 32 B each | u32s  |           u32s
//! ```
//!
//! Running sums: the units of the first image of the order, of the first two, and so on. Counts and
//! weights of rows are running sums too. Images without a mask that have equal size and shape share
//! them.

use bytemuck::{Pod, Zeroable};

use super::region::{CropDisc, RegionShape, SINE};
use super::sampler::RaySampler;
use crate::error::{Error, Result};

/// "RAYS" and a version.
pub(super) const MAGIC: u64 = 0x5241_5953_0000_0001;

/// Header of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RayTableHeader {
    pub(super) magic: u64,
    pub(super) seed: u64,
    /// Number of weights of rows.
    pub(super) weights: u64,
    /// Number of counts of rows.
    pub(super) counts: u64,
    pub(super) images: u32,
    /// Images with at least one unit. They come first in the order.
    pub(super) drawn: u32,
    /// Images that join at each step; 0 for all at once.
    pub(super) joining: u32,
    /// The sampler: its kind and two numbers.
    pub(super) sampler: [u32; 3],
    pub(super) zero: [u32; 2],
}

/// Record of one image. The records are in the order of image numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ImageRecord {
    /// Limit of a disc.
    pub(super) limit: u64,
    pub(super) width: u32,
    pub(super) height: u32,
    /// 0 whole, 1 disc, 2 sphere; combined with [`MASKED`].
    pub(super) shape: u32,
    /// Start of its counts of rows; 0 for a whole image without a mask.
    pub(super) counts: u32,
    /// Start of its weights of rows; 0 unless it is a sphere.
    pub(super) weights: u32,
    pub(super) zero: u32,
}

const WHOLE: u32 = 0;
const DISC: u32 = 1;
const SPHERE: u32 = 2;
const MASKED: u32 = 1 << 31;

impl ImageRecord {
    pub(super) fn new(size: (u32, u32), shape: RegionShape, masked: bool) -> Self {
        let (number, limit) = match shape {
            RegionShape::Whole => (WHOLE, 0),
            RegionShape::Disc(disc) => (DISC, disc.limit),
            RegionShape::Sphere => (SPHERE, 0),
        };
        Self {
            limit,
            width: size.0,
            height: size.1,
            shape: number | if masked { MASKED } else { 0 },
            counts: 0,
            weights: 0,
            zero: 0,
        }
    }

    pub(super) fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    pub(super) fn is_masked(&self) -> bool {
        self.shape & MASKED != 0
    }

    /// Whether every pixel counts and there is no mask. Then rows have no counts.
    pub(super) fn is_whole(&self) -> bool {
        self.shape == WHOLE
    }

    /// Whether rows are weighted by their sine.
    pub(super) fn is_sphere(&self) -> bool {
        self.shape & !MASKED == SPHERE
    }

    /// Whether every pixel of every row may be drawn.
    pub(super) fn has_full_rows(&self) -> bool {
        matches!(self.shape, WHOLE | SPHERE)
    }

    pub(super) fn shape(&self) -> RegionShape {
        match self.shape & !MASKED {
            DISC => RegionShape::Disc(CropDisc { limit: self.limit }),
            SPHERE => RegionShape::Sphere,
            _ => RegionShape::Whole,
        }
    }

    /// Number of columns and of rows where a unit fits.
    pub(super) fn room(&self, extent: u32) -> (u32, u32) {
        match (
            self.width.checked_sub(extent),
            self.height.checked_sub(extent),
        ) {
            (Some(width), Some(height)) if width > 0 && height > 0 => (width, height),
            _ => (0, 0),
        }
    }
}

/// Encodes a sampler as numbers.
pub(super) fn encode_sampler(sampler: RaySampler) -> [u32; 3] {
    match sampler {
        RaySampler::Uniform => [0, 0, 0],
        RaySampler::ByImage => [1, 0, 0],
        RaySampler::Patches { size, dilation } => [2, size, dilation],
        RaySampler::Pairs { radius } => [3, radius, 0],
    }
}

fn sampler(numbers: [u32; 3]) -> Option<RaySampler> {
    let sampler = match numbers {
        [0, 0, 0] => RaySampler::Uniform,
        [1, 0, 0] => RaySampler::ByImage,
        [2, size, dilation] => RaySampler::Patches { size, dilation },
        [3, radius, 0] => RaySampler::Pairs { radius },
        _ => return None,
    };
    sampler.check().ok().map(|()| sampler)
}

/// The sections of a table after the header.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableSections<'a> {
    pub(super) sums: &'a [u64],
    pub(super) weights: &'a [u64],
    pub(super) images: &'a [ImageRecord],
    pub(super) order: &'a [u32],
    pub(super) counts: &'a [u32],
}

/// Reads the header. `None` if the table's length does not match it.
pub(super) fn header(bytes: &[u8]) -> Option<RayTableHeader> {
    let header: RayTableHeader =
        bytemuck::pod_read_unaligned(bytes.get(..size_of::<RayTableHeader>())?);
    let known = header.magic == MAGIC && header.zero == [0, 0];
    let longs = header.weights.checked_add(u64::from(header.drawn))?;
    let shorts = header.counts.checked_add(u64::from(header.images))?;
    let images = size_of::<ImageRecord>() as u64 * u64::from(header.images);
    let whole = (longs.checked_mul(8)?)
        .checked_add(shorts.checked_mul(4)?)?
        .checked_add(images + size_of::<RayTableHeader>() as u64)?;
    (known && whole == bytes.len() as u64 && header.drawn <= header.images).then_some(header)
}

impl<'a> TableSections<'a> {
    /// Splits the bytes of a table into sections. They are empty if the bytes are too short or not
    /// aligned, which a mapping always is.
    pub(super) fn split(header: &RayTableHeader, bytes: &'a [u8]) -> Self {
        let mut rest = bytes.get(size_of::<RayTableHeader>()..).unwrap_or_default();
        Self {
            sums: part(&mut rest, u64::from(header.drawn)),
            weights: part(&mut rest, header.weights),
            images: part(&mut rest, u64::from(header.images)),
            order: part(&mut rest, u64::from(header.images)),
            counts: part(&mut rest, header.counts),
        }
    }

    /// Running counts of an image's rows, if the image is not whole.
    pub(super) fn counts_of(&self, image: &ImageRecord, rows: u32) -> &'a [u32] {
        rows_of(self.counts, image.counts, rows)
    }

    /// Running weights of a sphere's rows.
    pub(super) fn weights_of(&self, image: &ImageRecord, rows: u32) -> &'a [u64] {
        rows_of(self.weights, image.weights, rows)
    }

    /// Number of units of an image. `None` if its record is invalid.
    fn units(&self, image: &ImageRecord, extent: u32) -> Option<u64> {
        let shape = image.shape & !MASKED;
        let pixels = u64::from(image.width) * u64::from(image.height);
        let used = (shape == DISC || image.limit == 0) && (shape == SPHERE || image.weights == 0);
        if shape > SPHERE || image.zero != 0 || !used || pixels > u64::from(u32::MAX) {
            return None;
        }
        let (width, height) = image.room(extent);
        if image.is_whole() {
            let units = u64::from(width) * u64::from(height);
            return (image.counts == 0).then_some(units);
        }
        let counts = self.counts_of(image, height);
        let mut before = 0;
        for &count in counts {
            if count.checked_sub(before)? > width {
                return None;
            }
            before = count;
        }
        if shape == SPHERE {
            check_row_weights(counts, self.weights_of(image, height))?;
        }
        (counts.len() == height as usize).then_some(u64::from(before))
    }
}

/// Returns `Some` if each row's weight is its count times a valid sine.
fn check_row_weights(counts: &[u32], weights: &[u64]) -> Option<()> {
    if counts.len() != weights.len() {
        return None;
    }
    let mut before = (0, 0);
    for (&count, &weight) in counts.iter().zip(weights) {
        let (here, weighs) = (u64::from(count - before.0), weight.checked_sub(before.1)?);
        let sine = weighs.checked_div(here).unwrap_or(1);
        if sine * here != weighs || !(1..=SINE).contains(&sine) {
            return None;
        }
        before = (count, weight);
    }
    Some(())
}

fn part<'a, T: Pod>(rest: &mut &'a [u8], number: u64) -> &'a [T] {
    let bytes = number.saturating_mul(size_of::<T>() as u64);
    let length = usize::try_from(bytes)
        .ok()
        .and_then(|n| rest.split_at_checked(n));
    let (part, behind) = length.unwrap_or_default();
    *rest = behind;
    bytemuck::try_cast_slice(part).unwrap_or_default()
}

fn rows_of<T>(all: &[T], first: u32, rows: u32) -> &[T] {
    let first = first as usize;
    all.get(first..first + rows as usize).unwrap_or_default()
}

/// Checks every value of a table. Returns its sampler.
pub(super) fn check_table(
    header: &RayTableHeader,
    parts: &TableSections<'_>,
) -> Result<RaySampler> {
    let wrong = |what: String| Error::protocol(format!("the received table of rays: {what}"));
    let sampler = sampler(header.sampler)
        .ok_or_else(|| wrong(format!("no sampler has the numbers {:?}", header.sampler)))?;
    let extent = sampler.extent();
    let mut units = Vec::with_capacity(parts.images.len());
    for (number, image) in parts.images.iter().enumerate() {
        let counted = parts.units(image, extent);
        let counted = counted.ok_or_else(|| wrong(format!("image {number} is invalid")))?;
        units.push(Some(counted));
    }
    if header.drawn == 0 {
        return Err(wrong("no image has a pixel to sample".into()));
    }
    let mut before = 0;
    for (place, &number) in parts.order.iter().enumerate() {
        // Each image must occur once: `take` leaves `None`.
        let counted = units.get_mut(number as usize).and_then(Option::take);
        let sum = parts.sums.get(place).copied().unwrap_or(before);
        let drawn = place < parts.sums.len();
        if counted.is_none_or(|n| before.checked_add(n) != Some(sum) || (n > 0) != drawn) {
            return Err(wrong(format!(
                "place {place} of the order, image {number}, does not add up"
            )));
        }
        before = sum;
    }
    Ok(sampler)
}
