//! Builds a sampling table. Images are added one by one, so that at most one mask needs to be in
//! memory.
//!
//! Runs in the consumer. Not here: mask decoding, draws.

use std::collections::{HashMap, HashSet};

use super::region::{RegionShape, SamplingRegion};
use super::sampler::RaySampler;
use super::table::RayTable;
use super::table_format::{ImageRecord, MAGIC, RayTableHeader, TableSections, encode_sampler};
use crate::error::{Error, Result};
use crate::order::key::{DrawKind, OrderKey};

/// An unfinished table. Images are added in the order of their numbers.
#[derive(Debug)]
pub(crate) struct RayTableBuilder {
    sampler: RaySampler,
    seed: u64,
    joining: u32,
    images: Vec<ImageRecord>,
    /// Number of units of each image.
    units: Vec<u64>,
    counts: Vec<u32>,
    weights: Vec<u64>,
    /// Start of the rows of images without a mask, by size and shape.
    shared: HashMap<(u32, u32, RegionShape), Rows>,
    empty_masks: u32,
}

/// Start of an image's rows, and its number of units.
#[derive(Debug, Clone, Copy)]
struct Rows {
    counts: u32,
    weights: u32,
    units: u64,
}

impl RayTableBuilder {
    /// Starts a table. `joining` images join at each step, in a random order that the seed
    /// determines. Step s draws from the first `joining` x (s + 1) of them. With 0, all steps draw
    /// from all images.
    ///
    /// # Errors
    ///
    /// `Config` for an invalid sampler.
    pub(crate) fn new(sampler: RaySampler, seed: u64, joining: u32) -> Result<Self> {
        sampler.check()?;
        Ok(Self {
            sampler,
            seed,
            joining,
            images: Vec::new(),
            units: Vec::new(),
            counts: Vec::new(),
            weights: Vec::new(),
            shared: HashMap::new(),
            empty_masks: 0,
        })
    }

    /// Maximum bytes of the table for images of these sizes and shapes, with or without a mask.
    pub(crate) fn most_bytes(images: impl Iterator<Item = ((u32, u32), RegionShape, bool)>) -> u64 {
        let mut shared = HashSet::new();
        let mut bytes = size_of::<RayTableHeader>() as u64;
        for (size, shape, is_masked) in images {
            // Its sum, its record, and its position in the order.
            bytes += (8 + size_of::<ImageRecord>() + 4) as u64;
            let image = ImageRecord::new(size, shape, is_masked);
            if image.is_whole() || !(is_masked || shared.insert((size, shape))) {
                continue;
            }
            let of_a_row = if image.is_sphere() { 12 } else { 4 };
            bytes += of_a_row * u64::from(size.1);
        }
        bytes
    }

    /// Adds the next image. An image gets a number, but is never drawn from, if it has 0 x 0 pixels
    /// (a missing image), is smaller than a patch, or has an empty mask.
    ///
    /// # Errors
    ///
    /// `Config` for 2^32 pixels or more, and for a mask of another size.
    pub(crate) fn add(&mut self, size: (u32, u32), region: &SamplingRegion<'_>) -> Result<()> {
        let (width, height) = size;
        let number = self.images.len();
        let too_many = |what: &str| Error::config(format!("image {number}: {what}"));
        if u64::from(width) * u64::from(height) > u64::from(u32::MAX) {
            return Err(too_many(&format!(
                "{width} x {height} pixels are too many: use at most 2^32 - 1"
            )));
        }
        if let Some(mask) = region.mask.filter(|mask| mask.size() != size) {
            let (w, h) = mask.size();
            return Err(Error::config(format!(
                "image {number} has {width} x {height} pixels, but its mask has {w} x {h}: use a \
                 mask of the same size"
            )));
        }
        if u32::try_from(number + 1).is_err() {
            return Err(too_many("it exceeds the maximum of 2^32 - 1 images"));
        }
        let mut image = ImageRecord::new(size, region.shape, region.mask.is_some());
        let units = if image.is_whole() {
            let (width, height) = image.room(self.sampler.extent());
            u64::from(width) * u64::from(height)
        } else {
            let rows = self.rows(&image, region);
            let rows = rows.ok_or_else(|| too_many("the masks have more than 2^32 - 1 rows"))?;
            (image.counts, image.weights) = (rows.counts, rows.weights);
            rows.units
        };
        self.empty_masks += u32::from(units == 0 && region.mask.is_some());
        self.images.push(image);
        self.units.push(units);
        Ok(())
    }

    /// The rows of an image that is not whole. Counts them, or shares those of an equal image.
    fn rows(&mut self, image: &ImageRecord, region: &SamplingRegion<'_>) -> Option<Rows> {
        let key = (image.width, image.height, region.shape);
        if region.mask.is_none()
            && let Some(rows) = self.shared.get(&key)
        {
            return Some(*rows);
        }
        let rows = self.counted(image, region)?;
        if region.mask.is_none() {
            self.shared.insert(key, rows);
        }
        Some(rows)
    }

    fn counted(&mut self, image: &ImageRecord, region: &SamplingRegion<'_>) -> Option<Rows> {
        let extent = self.sampler.extent();
        let mut rows = Rows {
            counts: u32::try_from(self.counts.len()).ok()?,
            weights: 0,
            units: 0,
        };
        if region.shape == RegionShape::Sphere {
            rows.weights = u32::try_from(self.weights.len()).ok()?;
        }
        let mut weight = 0;
        for row in 0..image.room(extent).1 {
            let columns = region.shape.columns(image.size(), extent, row);
            let here = match region.mask {
                Some(mask) => mask.count_in(row, columns),
                None => columns.len() as u32,
            };
            // Below 2^32 for all rows, and below 2^63 in weights.
            rows.units += u64::from(here);
            self.counts.push(rows.units as u32);
            if region.shape == RegionShape::Sphere {
                weight += u64::from(here) * region.shape.row_weight(image.height, extent, row);
                self.weights.push(weight);
            }
        }
        Some(rows)
    }

    /// Seals the table.
    ///
    /// # Errors
    ///
    /// `Config` if no image has a pixel to sample; `Io`.
    pub(crate) fn finish(self) -> Result<RayTable> {
        let images = self.images.len() as u32;
        let key = OrderKey {
            seed: self.seed,
            epoch: 0,
        };
        let shuffled = key.permutation(u64::from(images), DrawKind::Rays, 0);
        let shuffled = (0..u64::from(images)).map(|place| shuffled.at(place) as u32);
        let units = |image: u32| self.units.get(image as usize).copied().unwrap_or(0);
        let (mut order, none): (Vec<u32>, Vec<u32>) = shuffled.partition(|&i| units(i) > 0);
        let mut sum = 0;
        let running = |&image: &u32| {
            // Below 2^64: 2^32 images of 2^32 pixels.
            sum += units(image);
            sum
        };
        let sums: Vec<u64> = order.iter().map(running).collect();
        if sums.is_empty() {
            return Err(self.no_pixels_error());
        }
        order.extend(none);
        let header = RayTableHeader {
            magic: MAGIC,
            seed: self.seed,
            weights: self.weights.len() as u64,
            counts: self.counts.len() as u64,
            images,
            drawn: sums.len() as u32,
            joining: self.joining,
            sampler: encode_sampler(self.sampler),
            zero: [0; 2],
        };
        let parts = TableSections {
            sums: &sums,
            weights: &self.weights,
            images: &self.images,
            order: &order,
            counts: &self.counts,
        };
        RayTable::seal(&header, &parts)
    }

    fn no_pixels_error(&self) -> Error {
        let images = self.images.len();
        let masks = self.empty_masks;
        Error::config(match self.sampler.extent() {
            _ if images == 0 => {
                "there is no image to sample rays from: choose another split".into()
            }
            0 => format!(
                "none of {images} images has a pixel to sample, and {masks} masks are empty: in a \
                 mask, pixels of value 0 are not sampled"
            ),
            extent => format!(
                "a patch of {} x {} pixels fits in none of {images} images ({masks} masks have no \
                 room): use smaller patches or a smaller dilation",
                u64::from(extent) + 1,
                u64::from(extent) + 1
            ),
        })
    }
}
