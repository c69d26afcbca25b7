//! The bytes of a slot that belong to each row of a batch, and the size of a slot for any batch.
//!
//! Pure, except that it reads image sizes from sealed shared memory. Rows of a batch follow each
//! other and never share a byte.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::data::sample_sizes::SampleSizes;
use crate::decode_plan::row_descriptor::RowDescriptor;
use crate::error::{self, Error, FaultKind, Result, SampleFault};
use crate::jobs::images::crop_sections::CropSections;
use crate::jobs::images::object_section::ObjectSection;
use crate::jobs::images::patch_rows::{BatchPatches, PatchRow};
use crate::jobs::raster_rule::NamedRaster;
use crate::jobs::raster_section::{ROW_ALIGNMENT, RasterSection};
use crate::order::{EpochMark, EpochPlan, RowPlan, RowStatus};
use crate::picture::PictureLimits;
use crate::recipe::{CropRule, CutRule, RowExtent, SampleProgram};

/// The layout of slots.
#[derive(Debug)]
pub(crate) struct SlotPacking {
    plan: EpochPlan,
    /// Substitutes of a row's sample. The row has room for each of them.
    tries: u32,
    rule: PackingRule,
    /// The records of objects, which follow everything else.
    objects: Option<ObjectSection>,
}

#[derive(Debug)]
enum PackingRule {
    /// All rows of a batch have the same number of bytes.
    Equal {
        /// Height and width, unless the plan sets another size for the batch.
        size: (u32, u32),
        row: EqualRow,
        /// The rasters, which follow all rows: masks and others.
        rasters: Vec<RasterSection>,
        /// The sizes of all images, if the batch of an image follows from its size.
        sizes: Option<SampleSizes>,
    },
    /// A sample has several crops.
    Crops(CropSections),
    /// A device makes several crops from a row of this number of bytes.
    Hulls { row: usize, sections: CropSections },
    /// The size of a row follows from that of its image.
    Own {
        sizes: SampleSizes,
        row: OwnRow,
        limits: PictureLimits,
        /// Bytes of the table before the rows. 0 for patches.
        table: usize,
    },
}

/// The content of a row whose size follows from that of its image.
#[derive(Debug, Clone, Copy)]
enum OwnRow {
    /// The image, with this number of bytes per pixel.
    Picture { pixel: u64 },
    /// Its patches, with this number of bytes per value.
    Patches { rule: CutRule, value: u64 },
}

impl OwnRow {
    /// Bytes of the row of an image of this size.
    ///
    /// # Errors
    /// The image is over a limit, or the rule refuses its ratio.
    fn bytes(self, image: (u32, u32), limits: &PictureLimits) -> Result<usize, SampleFault> {
        match self {
            Self::Picture { pixel } => measure(image, pixel, limits),
            Self::Patches { rule, value } => {
                limits.check_pixels("a picture", (image.1, image.0))?;
                let grid = rule.grid(image);
                let grid = grid.map_err(|text| FaultKind::TooLarge.fault(text))?;
                Ok((rule.row_values(Some(grid)) * value) as usize)
            }
        }
    }

    /// Bytes of each row, also without an image. None: rows differ.
    fn equal_bytes(self) -> Option<usize> {
        match self {
            Self::Patches { rule, value } if rule.padded_patches().is_some() => {
                Some((rule.row_values(None) * value) as usize)
            }
            _ => None,
        }
    }

    /// Rows begin at multiples of this. Patches of all rows are one tensor.
    fn alignment(self) -> usize {
        match self {
            Self::Picture { .. } => ROW_ALIGNMENT,
            Self::Patches { .. } => 1,
        }
    }
}

/// The content of a row whose size follows from the recipe.
#[derive(Debug, Clone, Copy)]
enum EqualRow {
    /// Finished elements, with this number of bytes per pixel.
    Finished { pixel: u64 },
    /// A crop, from which a device makes a row.
    Crop(CropRule),
}

impl EqualRow {
    /// Bytes of a row of this height and width.
    fn bytes(self, (height, width): (u32, u32)) -> u64 {
        match self {
            Self::Finished { pixel } => {
                (u64::from(height) * u64::from(width)).saturating_mul(pixel)
            }
            Self::Crop(rule) => rule.row_bytes((height, width)).row_bytes() as u64,
        }
    }
}

/// The places of one batch's rows, cached because they are requested one by one. Allocates nothing
/// after the first full batch.
#[derive(Debug, Default)]
pub(crate) struct PackedBatch {
    /// The position of the batch.
    mark: Option<EpochMark>,
    rows: Vec<Range<usize>>,
    /// The same for records of objects.
    records_mark: Option<EpochMark>,
    records: Vec<Range<usize>>,
}

impl SlotPacking {
    /// # Errors
    /// Sizes that are given and not needed, needed and not given, or of another number of samples.
    pub(crate) fn new(
        program: &SampleProgram,
        plan: EpochPlan,
        tries: u32,
        limits: PictureLimits,
        sizes: Option<SampleSizes>,
    ) -> Result<Self> {
        let sizes_fit =
            |sizes: &SampleSizes| sizes.len() == plan.samples() && plan.buckets().is_some();
        let extent = match program.has_pixels {
            true => program.extent,
            // Rows are empty.
            false => RowExtent::Fixed {
                height: 0,
                width: 0,
            },
        };
        let rule = match (extent, sizes) {
            (RowExtent::Fixed { height, width }, sizes) if sizes.as_ref().is_none_or(sizes_fit) => {
                match CropSections::of(program) {
                    Some(sections) => match &program.hulls {
                        Some(rule) => PackingRule::Hulls {
                            row: rule.row_bytes(),
                            sections,
                        },
                        None => PackingRule::Crops(sections),
                    },
                    None => PackingRule::Equal {
                        size: (height, width),
                        row: match program.crops {
                            Some(rule) => EqualRow::Crop(rule),
                            None => EqualRow::Finished {
                                pixel: program.row_bytes((1, 1)),
                            },
                        },
                        rasters: Vec::new(),
                        sizes,
                    },
                }
            }
            (RowExtent::Own, Some(sizes))
                if sizes.len() == plan.samples() && plan.options().multi_scale.is_none() =>
            {
                PackingRule::Own {
                    sizes,
                    row: OwnRow::Picture {
                        pixel: program.row_bytes((1, 1)),
                    },
                    limits,
                    table: table_bytes(plan.options().batch),
                }
            }
            (RowExtent::Patches(rule), Some(sizes))
                if sizes.len() == plan.samples() && plan.options().multi_scale.is_none() =>
            {
                PackingRule::Own {
                    sizes,
                    row: OwnRow::Patches {
                        rule,
                        value: program.output_format.dtype.size() as u64,
                    },
                    limits,
                    table: 0,
                }
            }
            (_, sizes) => {
                return Err(Error::protocol(format!(
                    "the plan has {} samples, but {} sizes were sent for this layout of rows",
                    plan.samples(),
                    sizes.map_or(0, |s| s.len())
                )));
            }
        };
        Ok(Self {
            plan,
            tries,
            rule,
            objects: None,
        })
    }

    /// The same, with room for rasters. Without effect unless all rows have one size.
    pub(crate) fn with_rasters(mut self, of_run: &[NamedRaster], program: &SampleProgram) -> Self {
        if let PackingRule::Equal { rasters, .. } = &mut self.rule {
            *rasters = of_run.iter().map(|of| of.rule.section(program)).collect();
        }
        self
    }

    /// The same, with room for objects. Not with several crops.
    pub(crate) fn with_objects(self, objects: Option<ObjectSection>) -> Self {
        Self { objects, ..self }
    }

    /// Bytes of a slot that has room for any batch of any epoch in any order.
    pub(crate) fn slot_bytes(&self) -> u64 {
        match &self.rule {
            PackingRule::Equal {
                size, row, rasters, ..
            } => {
                let pixels =
                    |(size, rows)| RasterSection::end(rasters, row.bytes(size), (size, rows));
                if let Some(largest) = self.bucket_of_largest_masks() {
                    let most = self.plan.scales().map(pixels).max().unwrap_or(0);
                    let most = most.max(ROW_ALIGNMENT as u64);
                    return self.with_records(most, Some(largest), self.plan.most_rows());
                }
                let of_scale =
                    |(size, rows)| self.with_records(pixels((size, rows)), Some(size), rows);
                let largest = self.plan.scales().map(of_scale).max();
                let largest = largest.unwrap_or_else(|| of_scale((*size, self.plan.most_rows())));
                // Rows without pixels have no bytes, and a slot has some.
                largest.max(ROW_ALIGNMENT as u64)
            }
            PackingRule::Crops(sections) => sections.slot_bytes(self.plan.most_rows()),
            PackingRule::Hulls { row, .. } => {
                (*row as u64).saturating_mul(u64::from(self.plan.most_rows()))
            }
            PackingRule::Own { table, row, .. } => {
                let rows = u64::from(self.plan.most_rows());
                // At least some, also if no image has a row.
                let least = ROW_ALIGNMENT as u64;
                let pixels = match row.equal_bytes() {
                    Some(bytes) => (bytes as u64).saturating_mul(rows),
                    None => match (self.plan.most_patches(), row) {
                        (Some(patches), OwnRow::Patches { rule, value }) => {
                            patches.saturating_mul(rule.patch_values() as u64 * value)
                        }
                        _ => {
                            let largest = self.largest(self.least_samples_per_slot());
                            self.bound(*table, largest.into_iter().map(|(bytes, _)| bytes))
                        }
                    },
                };
                self.with_records(pixels.max(least), None, self.plan.most_rows())
            }
        }
    }

    pub(crate) fn objects(&self) -> Option<&ObjectSection> {
        self.objects.as_ref()
    }

    /// Bytes of a slot with these bytes of pixels and rasters, and with the largest records of this
    /// number of rows. `size`: height and width, if all rows have one.
    fn with_records(&self, pixels: u64, size: Option<(u32, u32)>, rows: u32) -> u64 {
        let Some(objects) = &self.objects else {
            return pixels;
        };
        let records = self.record_room(objects, size, rows);
        (pixels.checked_next_multiple_of(ROW_ALIGNMENT as u64))
            .map_or(u64::MAX, |start| start.saturating_add(records))
    }

    /// The bucket with the largest instance masks. Without masks any bucket: records have no size.
    /// None without buckets. There may be thousands, and records are counted over all samples.
    fn bucket_of_largest_masks(&self) -> Option<(u32, u32)> {
        let objects = self.objects.as_ref();
        let masks = |size: &(u32, u32)| {
            let masks = objects.and_then(|objects| objects.mask_size(Some(*size)));
            masks.map_or(0, |(height, width)| u64::from(height) * u64::from(width))
        };
        let buckets = self.plan.buckets()?;
        buckets.sizes().max_by_key(masks)
    }

    /// Bytes of the largest records of this number of rows.
    fn record_room(&self, objects: &ObjectSection, size: Option<(u32, u32)>, rows: u32) -> u64 {
        let of_sample = self.plan.most_rows_per_sample(self.tries) as usize;
        let rows = rows as usize;
        let all = (0..self.plan.samples()).map(|id| {
            let size = size.or_else(|| self.scanned_size(id));
            (objects.record_bytes(id, size), id)
        });
        let largest = largest_of(all, rows.div_ceil(of_sample));
        fill_rows(largest.iter().map(|(bytes, _)| *bytes), of_sample, rows)
    }

    /// Most bytes of the rasters and of the record of a row, and of the record if it has instance
    /// masks. 0 unless all rows of a batch have one size.
    pub(crate) fn target_bytes(&self) -> (u64, u64) {
        let PackingRule::Equal { size, rasters, .. } = &self.rule else {
            return (0, 0);
        };
        let sizes = self.plan.scales().map(|(size, _)| size).chain([*size]);
        let objects = self.objects.as_ref();
        let largest = |size| objects.map_or(0, |objects| objects.largest_record(size));
        let of_bucket = self.bucket_of_largest_masks().map(largest);
        let of_size = |size| {
            let record = of_bucket.unwrap_or_else(|| largest(size));
            let rasters = rasters.iter().map(|raster| raster.bytes(size));
            (rasters.fold(record, u64::saturating_add), record)
        };
        let (all, record) = sizes.map(of_size).fold((0, 0), |most, bytes| {
            (most.0.max(bytes.0), most.1.max(bytes.1))
        });
        let has_masks = objects.is_some_and(ObjectSection::has_masks);
        (all, if has_masks { record } else { 0 })
    }

    /// Room for the instance masks of a batch whose rows have one size, each at a multiple of
    /// [`ROW_ALIGNMENT`] after all other bytes: that of the records, which have one, too. 0 without
    /// masks.
    pub(crate) fn mask_bytes(&self) -> u64 {
        let objects = self.objects.as_ref().filter(|objects| objects.has_masks());
        let (Some(objects), PackingRule::Equal { size, .. }) = (objects, &self.rule) else {
            return 0;
        };
        let of_scale = |(size, rows)| self.record_room(objects, Some(size), rows);
        let largest = match self.bucket_of_largest_masks() {
            Some(size) => Some(of_scale((size, self.plan.most_rows()))),
            None => self.plan.scales().map(of_scale).max(),
        };
        let largest = largest.unwrap_or_else(|| of_scale((*size, self.plan.most_rows())));
        largest.saturating_add(ROW_ALIGNMENT as u64)
    }

    /// Height and width of the row of sample `id`, if it has one.
    pub(crate) fn row_size(&self, at: EpochMark, id: u64) -> Option<(u32, u32)> {
        match &self.rule {
            PackingRule::Equal { size, .. } => Some(self.plan.size_at(at).unwrap_or(*size)),
            PackingRule::Own { sizes, row, .. } => match row {
                OwnRow::Picture { .. } => sizes.get(id),
                OwnRow::Patches { rule, .. } => {
                    let grid = rule.grid(sizes.get(id)?).ok()?;
                    Some(grid.resized(rule.side()))
                }
            },
            PackingRule::Crops(_) | PackingRule::Hulls { .. } => None,
        }
    }

    /// Bytes of a row, if all rows of all batches have the same number: with the largest record of
    /// objects.
    pub(crate) fn row_bytes(&self) -> Option<u64> {
        match &self.rule {
            PackingRule::Equal {
                size, row, rasters, ..
            } if self.plan.scales().next().is_none() => {
                let record =
                    (self.objects.as_ref()).map_or(0, |objects| objects.largest_record(*size));
                let rasters = rasters.iter().map(|raster| raster.bytes(*size));
                Some(rasters.fold(row.bytes(*size).saturating_add(record), u64::saturating_add))
            }
            PackingRule::Crops(sections) => Some(sections.sample_bytes()),
            PackingRule::Hulls { row, .. } => Some(*row as u64),
            PackingRule::Own { row, .. } if self.objects.is_none() => {
                row.equal_bytes().map(|bytes| bytes as u64)
            }
            _ => None,
        }
    }

    /// The least number of different samples in a full slot.
    fn least_samples_per_slot(&self) -> usize {
        let rows = self.plan.most_rows_per_sample(self.tries);
        (self.plan.options().batch as usize).div_ceil(rows as usize)
    }

    /// Bytes of a slot for samples of these sizes, largest first.
    fn bound(&self, table: usize, samples: impl Iterator<Item = u64>) -> u64 {
        let rows = self.plan.most_rows_per_sample(self.tries) as usize;
        let most = self.plan.options().batch as usize;
        (table as u64).saturating_add(fill_rows(samples, rows, most))
    }

    /// Bytes of a slot if the `few` largest images were as small as the next one. None if rows are
    /// equal or there is no next one.
    pub(crate) fn slot_bytes_without(&self, few: usize) -> Option<u64> {
        let PackingRule::Own { table, row, .. } = &self.rule else {
            return None;
        };
        if row.equal_bytes().is_some() || self.plan.most_patches().is_some() {
            return None;
        }
        let largest = self.largest(self.least_samples_per_slot().max(few + 1));
        let next = largest.get(few)?.0;
        let pixels = self.bound(*table, largest.iter().map(|&(bytes, _)| bytes.min(next)));
        Some(self.with_records(pixels, None, self.plan.most_rows()))
    }

    /// How a recipe makes smaller rows, if those of the largest images need much memory.
    pub(crate) fn smaller_rows(&self) -> String {
        match &self.rule {
            PackingRule::Own {
                row: OwnRow::Patches { rule, .. },
                ..
            } => match self.plan.most_patches() {
                Some(_) => "lower the budget of patches".to_owned(),
                None => format!("lower {} in the recipe", rule.limit()),
            },
            _ => "add a resize to the recipe".to_owned(),
        }
    }

    /// The `count` samples with the largest rows, largest first: bytes and id. Empty if all rows
    /// are equal.
    pub(crate) fn largest(&self, count: usize) -> Vec<(u64, u64)> {
        let PackingRule::Own { sizes, row, .. } = &self.rule else {
            return Vec::new();
        };
        if row.equal_bytes().is_some() {
            return Vec::new();
        }
        let all = (0..).zip(sizes.iter()).map(|(id, size)| {
            let bytes = self.own_bytes(size).unwrap_or(0);
            (bytes.next_multiple_of(row.alignment()) as u64, id)
        });
        largest_of(all, count)
    }

    /// Height and width of a sample when headers were read. None if they were not read, or could
    /// not be.
    pub(crate) fn scanned_size(&self, id: u64) -> Option<(u32, u32)> {
        match &self.rule {
            PackingRule::Equal { .. } | PackingRule::Crops(_) | PackingRule::Hulls { .. } => None,
            PackingRule::Own { sizes, .. } => sizes.get(id),
        }
    }

    /// Checks that an upright image still has the size for which its row was made, or by which its
    /// batch was chosen.
    ///
    /// # Errors
    /// The image has another size now, or exceeds a limit and has no room.
    pub(crate) fn check_size(
        &self,
        id: u64,
        (height, width): (u32, u32),
    ) -> Result<(), SampleFault> {
        let (sizes, measured) = match &self.rule {
            PackingRule::Own {
                sizes, row, limits, ..
            } => (sizes, row.bytes((height, width), limits).map(|_| ())),
            PackingRule::Equal {
                sizes: Some(sizes), ..
            } => (sizes, Ok(())),
            _ => return Ok(()),
        };
        let what = match sizes.get(id) {
            Some(size) if size == (height, width) => return measured,
            Some((h, w)) => format!("was {w} x {h} when headers were read"),
            // Over a limit then and now: not a change.
            None => {
                measured?;
                "could not be read when headers were".to_owned()
            }
        };
        let what = format!("the image is now {width} x {height}, and {what}");
        Err(SampleFault::new(FaultKind::Changed, what))
    }

    /// The sections of the slot, if samples have several crops.
    pub(crate) fn crop_sections(&self) -> Option<&CropSections> {
        match &self.rule {
            PackingRule::Crops(sections) | PackingRule::Hulls { sections, .. } => Some(sections),
            PackingRule::Equal { .. } | PackingRule::Own { .. } => None,
        }
    }

    /// The rasters of a batch, and where they begin in its slot.
    pub(crate) fn rasters_at(&self, at: EpochMark) -> Vec<(RasterSection, usize)> {
        match &self.rule {
            PackingRule::Equal { row, .. } => self.rasters_after(|size| row.bytes(size), at),
            _ => Vec::new(),
        }
    }

    /// The same in a batch whose rows a device has made.
    pub(crate) fn device_rasters_at(
        &self,
        program: &SampleProgram,
        at: EpochMark,
    ) -> Vec<(RasterSection, usize)> {
        self.rasters_after(|size| program.row_bytes(size), at)
    }

    /// The rasters of a batch, and where they begin after rows of `row_bytes`.
    fn rasters_after(
        &self,
        row_bytes: impl Fn((u32, u32)) -> u64,
        at: EpochMark,
    ) -> Vec<(RasterSection, usize)> {
        let PackingRule::Equal { size, rasters, .. } = &self.rule else {
            return Vec::new();
        };
        if rasters.is_empty() {
            return Vec::new();
        }
        let size = self.plan.size_at(at).unwrap_or(*size);
        let rows = self.plan.rows_at(at);
        let starts = RasterSection::starts(rasters, row_bytes(size), (size, rows));
        rasters.iter().copied().zip(starts).collect()
    }

    /// The ranges of a row after that of [`SlotPacking::place`]: its rasters and its record of
    /// objects, or its further crops and their geometries.
    pub(crate) fn further_places(
        &self,
        packed: &mut PackedBatch,
        at: EpochMark,
        row: u32,
    ) -> Vec<Range<usize>> {
        let mut places = self.further_pixels(at, row);
        places.extend(self.record_place(packed, at, row));
        places
    }

    /// The range of a row's record of objects. None without objects.
    pub(crate) fn record_place(
        &self,
        packed: &mut PackedBatch,
        at: EpochMark,
        row: u32,
    ) -> Option<Range<usize>> {
        let objects = self.objects.as_ref()?;
        if packed.records_mark != Some(at) {
            self.pack_records(objects, packed, at);
        }
        let end = packed.records.last().map_or(0, |record| record.end);
        // Padding has no bytes.
        Some((packed.records.get(row as usize).cloned()).unwrap_or(end..end))
    }

    fn pack_records(&self, objects: &ObjectSection, packed: &mut PackedBatch, at: EpochMark) {
        let rows = self.plan.rows_at(at);
        let last_raster = (rows.checked_sub(1))
            .and_then(|last| self.further_pixels(at, last).pop())
            .map(|raster| raster.end);
        let pixels = last_raster.unwrap_or_else(|| self.batch_bytes(packed, at, rows));
        let mut end = pixels.next_multiple_of(ROW_ALIGNMENT);
        packed.records.clear();
        for row in 0..self.plan.filled_rows_at(at) {
            let start = end;
            let ids = (0..=self.tries).map(|attempt| self.plan.attempt_at(at, row, attempt).id);
            let bytes = |id| objects.record_bytes(id, self.row_size(at, id));
            let largest = ids.map(bytes).max();
            end = start.saturating_add(largest.unwrap_or(0) as usize);
            packed.records.push(start..end);
        }
        packed.records_mark = Some(at);
    }

    /// The ranges of a row's rasters, or of its further crops and their geometries.
    fn further_pixels(&self, at: EpochMark, row: u32) -> Vec<Range<usize>> {
        match &self.rule {
            PackingRule::Equal { size, .. } => {
                let size = self.plan.size_at(at).unwrap_or(*size);
                let place = |(raster, start): (RasterSection, usize)| {
                    let bytes = raster.bytes(size) as usize;
                    let start = start + row as usize * bytes;
                    start..start + bytes
                };
                self.rasters_at(at).into_iter().map(place).collect()
            }
            PackingRule::Crops(sections) => sections
                .places(self.plan.rows_at(at), row)
                .skip(1)
                .collect(),
            // A row for a device has all in one piece.
            PackingRule::Hulls { .. } | PackingRule::Own { .. } => Vec::new(),
        }
    }

    /// The range of a row in the slot. It has room for the sample and each substitute. Of several
    /// crops: the range of the first.
    pub(crate) fn place(&self, packed: &mut PackedBatch, at: EpochMark, row: u32) -> Range<usize> {
        match &self.rule {
            PackingRule::Equal {
                size, row: equal, ..
            } => {
                let of_batch = self.plan.size_at(at);
                let bytes = equal.bytes(of_batch.unwrap_or(*size)) as usize;
                let start = row as usize * bytes;
                start..start + bytes
            }
            PackingRule::Hulls { row: bytes, .. } => {
                let start = row as usize * bytes;
                start..start + bytes
            }
            PackingRule::Crops(sections) => {
                let mut places = sections.places(self.plan.rows_at(at), row);
                places.next().unwrap_or(0..0)
            }
            PackingRule::Own {
                table, row: own, ..
            } => {
                if let Some(bytes) = own.equal_bytes() {
                    let start = row as usize * bytes;
                    return start..start + bytes;
                }
                if packed.mark != Some(at) {
                    self.pack((*table, own.alignment()), packed, at);
                }
                let end = packed.rows.last().map_or(*table, |r| r.end);
                // Padding has no bytes.
                packed.rows.get(row as usize).cloned().unwrap_or(end..end)
            }
        }
    }

    /// Bytes of the slot that a batch of `rows` rows needs.
    pub(crate) fn batch_bytes(&self, packed: &mut PackedBatch, at: EpochMark, rows: u32) -> usize {
        rows.checked_sub(1)
            .map_or(0, |last| self.place(packed, at, last).end)
    }

    fn pack(&self, (table, alignment): (usize, usize), packed: &mut PackedBatch, at: EpochMark) {
        packed.rows.clear();
        packed.rows.reserve(self.plan.options().batch as usize);
        let mut end = table;
        for row in 0..self.plan.filled_rows_at(at) {
            let start = end.next_multiple_of(alignment);
            let largest = (0..=self.tries)
                .map(|attempt| self.plan.attempt_at(at, row, attempt).id)
                .filter_map(|id| self.own_bytes(self.scanned_size(id)))
                .max();
            end = start + largest.unwrap_or(0);
            packed.rows.push(start..end);
        }
        packed.mark = Some(at);
    }

    /// Bytes of a row of this size. None if no image of this size is decoded.
    fn own_bytes(&self, size: Option<(u32, u32)>) -> Option<usize> {
        let PackingRule::Own { row, limits, .. } = &self.rule else {
            return None;
        };
        row.bytes(size?, limits).ok()
    }

    /// The patches of a batch with these rows. None unless rows are patches.
    pub(crate) fn patches(
        &self,
        packed: &mut PackedBatch,
        at: EpochMark,
        rows: &[RowPlan],
    ) -> Option<BatchPatches> {
        let PackingRule::Own {
            sizes,
            row: own,
            limits,
            ..
        } = &self.rule
        else {
            return None;
        };
        let OwnRow::Patches { rule, value } = *own else {
            return None;
        };
        let describe = |(row, stands): (u32, &RowPlan)| {
            let size = match stands.status {
                RowStatus::Padding => None,
                _ => sizes.get(stands.id),
            };
            let size = size.filter(|size| own.bytes(*size, limits).is_ok());
            PatchRow {
                start: self.place(packed, at, row).start,
                grid: size.and_then(|size| rule.grid(size).ok()),
                image: size,
            }
        };
        let rows = (0..).zip(rows).map(describe).collect();
        Some(BatchPatches::new(rule, rows, value as usize))
    }

    /// The table of a batch with these rows. None if rows are equal, or patches.
    pub(crate) fn descriptors(
        &self,
        packed: &mut PackedBatch,
        at: EpochMark,
        rows: &[RowPlan],
    ) -> Option<Vec<RowDescriptor>> {
        let PackingRule::Own {
            sizes,
            row: OwnRow::Picture { .. },
            ..
        } = &self.rule
        else {
            return None;
        };
        let describe = |(row, stands): (u32, &RowPlan)| {
            let place = self.place(packed, at, row);
            let size = match stands.status {
                RowStatus::Padding => None,
                _ => sizes.get(stands.id),
            };
            let bytes = self.own_bytes(size);
            let (height, width) = bytes.and(size).unwrap_or((0, 0));
            RowDescriptor {
                offset: place.start as u64,
                bytes: bytes.unwrap_or(0) as u64,
                height,
                width,
                flags: if stands.status.is_masked() {
                    RowDescriptor::MASKED
                } else {
                    0
                },
                reserved: 0,
            }
        };
        Some((0..).zip(rows).map(describe).collect())
    }
}

/// The `count` samples with the most bytes, largest first: bytes and id.
fn largest_of(all: impl Iterator<Item = (u64, u64)>, count: usize) -> Vec<(u64, u64)> {
    let mut heap = BinaryHeap::new();
    for (bytes, id) in all {
        heap.push(Reverse((bytes, Reverse(id))));
        if heap.len() > count {
            heap.pop();
        }
    }
    let sorted = heap.into_sorted_vec();
    (sorted.into_iter())
        .map(|Reverse((bytes, Reverse(id)))| (bytes, id))
        .collect()
}

/// Bytes of at most `most` rows of samples of these sizes, largest first. A sample may be in `rows`
/// rows.
fn fill_rows(samples: impl Iterator<Item = u64>, rows: usize, most: usize) -> u64 {
    samples
        .flat_map(|bytes| std::iter::repeat_n(bytes, rows))
        .take(most)
        .fold(0, u64::saturating_add)
}

/// Most bytes of one row. Keeps the sums of [`SlotPacking::pack`] in range for the most rows of a
/// slot.
const MAX_ROW: usize = 1 << 40;

/// Bytes of a table for `rows` rows, up to the first row.
fn table_bytes(rows: u32) -> usize {
    (rows as usize * RowDescriptor::BYTES).next_multiple_of(ROW_ALIGNMENT)
}

/// Bytes of the row of an image with `pixel` bytes per pixel. Checks the limits that apply to every
/// format: the decoded pixels must fit a worker's memory.
fn measure(
    (height, width): (u32, u32),
    pixel: u64,
    limits: &PictureLimits,
) -> Result<usize, SampleFault> {
    limits.check_pixels("a picture", (width, height))?;
    let pixels = u64::from(height) * u64::from(width);
    limits.check_scratch("a picture at full size", pixels.saturating_mul(3))?;
    let bytes = pixels.saturating_mul(pixel);
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= MAX_ROW => Ok(bytes),
        _ => Err(SampleFault::new(
            FaultKind::TooLarge,
            format!(
                "a row of {width} x {height} pixels takes {}, over {}: use a \
                     smaller size",
                error::size_rounded_up(bytes),
                error::size_rounded_down(MAX_ROW as u64)
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{EpochTail, MultiScale, OrderOptions};
    use crate::recipe::{DataType, Op, Patches, Recipe, Tiles};
    use proptest::prelude::*;

    fn packing(
        sizes: &[[u32; 2]],
        options: OrderOptions,
        dtype: DataType,
        limits: PictureLimits,
    ) -> SlotPacking {
        with_tries(sizes, options, dtype, limits, 0)
    }

    fn with_tries(
        sizes: &[[u32; 2]],
        options: OrderOptions,
        dtype: DataType,
        limits: PictureLimits,
        tries: u32,
    ) -> SlotPacking {
        let program = SampleProgram::compile(&Recipe::full().with_dtype(dtype)).unwrap();
        let plan = EpochPlan::new(sizes.len() as u64, options).unwrap();
        let sizes = SampleSizes::seal(sizes).unwrap();
        SlotPacking::new(&program, plan, tries, limits, Some(sizes)).unwrap()
    }

    fn options(batch: u32, seed: u64, tail: EpochTail) -> OrderOptions {
        OrderOptions {
            batch,
            seed,
            tail,
            ..OrderOptions::default()
        }
    }

    proptest! {
        #[test]
        fn rows_of_any_batch_are_apart_and_within_the_bound(
            sizes in prop::collection::vec((0u32..40, 0u32..40), 1..60),
            batch in 1u32..20, seed: u64, epoch: u64, tries in 0u32..9,
            (rank, world) in (1u32..4).prop_flat_map(|world| (0..world, Just(world))),
            tail in prop_oneof![Just(EpochTail::Short), Just(EpochTail::Pad)],
            dtype in prop::sample::select(&DataType::ALL[..]),
        ) {
            let sizes: Vec<[u32; 2]> = sizes.into_iter().map(|(h, w)| [h, w]).collect();
            let options = OrderOptions { rank, world, ..options(batch, seed, tail) };
            let plan = EpochPlan::new(sizes.len() as u64, options.clone()).unwrap();
            let tries = tries.min(plan.substitutes());
            let p = with_tries(&sizes, options, dtype, PictureLimits::default(), tries);
            let most = p.slot_bytes() as usize;
            let mut packed = PackedBatch::default();
            for b in 0..p.plan.batches() {
                let at = p.plan.mark(epoch, b);
                let rows = p.plan.rows_at(at);
                let mut end = batch as usize * RowDescriptor::BYTES;
                for attempt in 0..=tries {
                    // Whatever stands in each row fits the room that is kept.
                    let stand: Vec<RowPlan> =
                        (0..rows).map(|row| p.plan.attempt_at(at, row, attempt)).collect();
                    let described = p.descriptors(&mut packed, at, &stand).unwrap();
                    for (row, d) in (0..rows).zip(described) {
                        let place = p.place(&mut packed, at, row);
                        prop_assert_eq!(d.offset, place.start as u64);
                        prop_assert!(d.bytes <= place.len() as u64);
                        prop_assert!(tries > 0 || d.bytes == place.len() as u64);
                        let pixels = u64::from(d.height) * u64::from(d.width);
                        prop_assert_eq!(d.bytes, pixels * 3 * dtype.size() as u64);
                    }
                }
                for row in 0..rows {
                    let place = p.place(&mut PackedBatch::default(), at, row);
                    prop_assert!(place.start >= end && place.end <= most);
                    prop_assert!(place.is_empty() || place.start.is_multiple_of(ROW_ALIGNMENT));
                    end = place.end;
                }
                prop_assert_eq!(p.batch_bytes(&mut packed, at, rows), end.max(table_bytes(batch)));
            }
        }
    }

    proptest! {
        /// Also of images without a size, over a limit and too long.
        #[test]
        fn patches_of_any_batch_follow_each_other_within_the_bound(
            sizes in prop::collection::vec((0u32..60, 0u32..60), 1..60),
            long in prop::collection::vec(any::<u8>(), 0..4),
            batch in 1u32..20, seed: u64, epoch: u64,
            (rank, world) in (1u32..4).prop_flat_map(|world| (0..world, Just(world))),
            tail in prop_oneof![Just(EpochTail::Short), Just(EpochTail::Pad)],
            dtype in prop::sample::select(&DataType::ALL[..]),
            style in 0..5,
        ) {
            let mut sizes: Vec<[u32; 2]> = sizes.into_iter().map(|(h, w)| [h, w]).collect();
            for at in long {
                let at = usize::from(at) % sizes.len();
                sizes[at] = [1, 2900 + at as u32];
            }
            let op: Op = match style {
                0 => Patches::siglip2(5, 40).into(),
                1 => Patches::pix2struct(5, 40).into(),
                2 => Tiles::internvl(9, 6).into(),
                3 => Tiles::llava_next(7).into(),
                _ => Patches::qwen(5).between(300, 1500).into(),
            };
            let is_padded = style < 2;
            // bf16 and bytes hold the places of so few patches.
            let recipe = Recipe::new("patches").then(op).with_dtype(dtype);
            let program = SampleProgram::compile(&recipe).unwrap();
            let options = OrderOptions { rank, world, ..options(batch, seed, tail) };
            let plan = EpochPlan::new(sizes.len() as u64, options).unwrap();
            let limits = PictureLimits { max_pixels: 2950, ..PictureLimits::default() };
            let p = SlotPacking::new(
                &program, plan, 0, limits, Some(SampleSizes::seal(&sizes).unwrap()),
            ).unwrap();
            let most = p.slot_bytes() as usize;
            let mut packed = PackedBatch::default();
            for b in 0..p.plan.batches() {
                let at = p.plan.mark(epoch, b);
                let rows: Vec<RowPlan> =
                    (0..p.plan.rows_at(at)).map(|row| p.plan.row_at(at, row)).collect();
                let patches = p.patches(&mut packed, at, &rows).unwrap();
                let mut end = 0;
                for (number, row) in (0..).zip(&rows) {
                    let place = p.place(&mut PackedBatch::default(), at, number);
                    prop_assert_eq!(patches.place(number as usize), place.clone());
                    prop_assert_eq!(place.start, end);
                    end = place.end;
                    let [height, width] = sizes[row.id as usize];
                    let is_known = height > 0 && width > 0 && height * width <= 2950;
                    let fits = style < 4 || height.max(width) <= 200 * height.min(width);
                    let has_grid = row.status != RowStatus::Padding && is_known && fits;
                    let grid = patches.grids().nth(number as usize).unwrap();
                    prop_assert_eq!(grid.is_some(), has_grid);
                    let image = patches.image_sizes().nth(number as usize).unwrap();
                    prop_assert_eq!(image, has_grid.then_some((height, width)));
                    let in_row = (place.end - place.start) / dtype.size();
                    let patch = patches.rule().patch_values();
                    prop_assert_eq!(in_row, patches.patches_in(number as usize) * patch);
                    let count = patches.counts().nth(number as usize).unwrap();
                    prop_assert!(is_padded || in_row == count as usize * patch);
                }
                prop_assert_eq!(patches.bytes(), end);
                prop_assert!(end <= most);
                prop_assert_eq!(p.batch_bytes(&mut packed, at, rows.len() as u32), end);
            }
        }
    }

    /// The batch of the largest pictures, in whatever order, ends less than an
    /// alignment below the bound.
    #[test]
    fn the_bound_is_tight() {
        let sizes = [[9, 7], [1, 1], [100, 50], [30, 31], [0, 0], [64, 64]];
        for (batch, largest) in [(1, 1), (2, 2), (3, 3), (6, 5), (9, 5)] {
            let p = packing(
                &sizes,
                options(batch, 0, EpochTail::Short),
                DataType::U8,
                PictureLimits::default(),
            );
            let mut bytes: Vec<usize> = sizes.iter().map(|[h, w]| (3 * h * w) as usize).collect();
            bytes.sort_unstable_by(|a, b| b.cmp(a));
            let want = bytes[..largest]
                .iter()
                .map(|b| b.next_multiple_of(64))
                .sum::<usize>()
                + table_bytes(batch);
            assert_eq!(p.slot_bytes(), want as u64, "batch of {batch}");
        }
        let ids: Vec<u64> = packing(
            &sizes,
            options(2, 0, EpochTail::Short),
            DataType::U8,
            PictureLimits::default(),
        )
        .largest(2)
        .into_iter()
        .map(|(_, id)| id)
        .collect();
        assert_eq!(ids, [2, 5]);
    }

    #[test]
    fn the_bound_without_a_few_giants() {
        let mut sizes = vec![[8, 8]; 20];
        let of = |sizes: &[[u32; 2]], batch, tries| {
            let options = options(batch, 0, EpochTail::Short);
            let p = with_tries(
                sizes,
                options,
                DataType::U8,
                PictureLimits::default(),
                tries,
            );
            (p.slot_bytes(), p.slot_bytes_without(3))
        };
        let equal = |rows: u32| u64::from(rows) * 192 + table_bytes(rows) as u64;
        for (batch, tries) in [(1, 0), (2, 0), (10, 0), (10, 8), (20, 3)] {
            assert_eq!(of(&sizes, batch, tries), (equal(batch), Some(equal(batch))));
        }
        sizes[4] = [800, 800];
        sizes[7] = [700, 800];
        sizes[9] = [700, 700];
        for (batch, tries) in [(1, 0), (2, 0), (10, 0), (10, 8), (20, 3)] {
            let (with, without) = of(&sizes, batch, tries);
            assert!(with > 800 * 800 * 3);
            assert_eq!(without, Some(equal(batch)));
        }
        assert_eq!(of(&sizes[..3], 2, 0).1, None);
    }

    #[test]
    fn what_is_over_a_limit_takes_no_bytes_and_fails_with_the_numbers() {
        let limits = PictureLimits {
            max_pixels: 5000,
            max_scratch: 12_000,
        };
        let sizes = [[100, 51], [65, 62], [60, 60], [0, 0]];
        let p = packing(
            &sizes,
            options(4, 0, EpochTail::Short),
            DataType::F32,
            limits,
        );
        assert_eq!(
            p.slot_bytes(),
            128 + (60 * 60 * 12_u64).next_multiple_of(64)
        );
        for (id, size, kind, text) in [
            (0, (100, 51), FaultKind::TooLarge, "max_pixels = 5000"),
            (1, (65, 62), FaultKind::TooLarge, "max_scratch = 11.7 KiB"),
            (
                2,
                (60, 61),
                FaultKind::Changed,
                "now 61 x 60, and was 60 x 60",
            ),
            (3, (2, 2), FaultKind::Changed, "could not be read"),
            (3, (100, 51), FaultKind::TooLarge, "max_pixels = 5000"),
        ] {
            let fault = p.check_size(id, size).unwrap_err();
            assert_eq!(fault.kind, kind);
            assert!(fault.reason.contains(text), "{}", fault.reason);
        }
        assert!(p.check_size(2, (60, 60)).is_ok());
    }

    #[test]
    fn rows_of_a_batch_lie_by_its_size_and_the_largest_batch_fits() {
        let program = SampleProgram::compile(&Recipe::eval224().with_dtype(DataType::F16)).unwrap();
        let scales = MultiScale::new([(224, 224), (160, 192), (512, 96), (1024, 1024)]);
        let options = OrderOptions {
            multi_scale: Some(scales),
            ..options(8, 3, EpochTail::Pad)
        };
        let plan = EpochPlan::new(100, options).unwrap();
        let p =
            SlotPacking::new(&program, plan.clone(), 0, PictureLimits::default(), None).unwrap();
        // One row of 1024 x 1024 is more than 8 of 224 x 224.
        assert_eq!(p.slot_bytes(), 1024 * 1024 * 6);
        let mut packed = PackedBatch::default();
        for epoch in 0..2 {
            for batch in 0..plan.batches() {
                let at = plan.mark(epoch, batch);
                let (height, width) = plan.size_at(at).unwrap();
                let bytes = (height * width) as usize * 6;
                let rows = plan.rows_at(at);
                for row in 0..rows {
                    let start = row as usize * bytes;
                    let place = p.place(&mut packed, at, row);
                    assert_eq!(place, start..start + bytes);
                }
                let all = p.batch_bytes(&mut packed, at, rows);
                assert_eq!(all, rows as usize * bytes);
                assert!(all as u64 <= p.slot_bytes());
            }
        }
        let full = SampleProgram::compile(&Recipe::full()).unwrap();
        let sizes = SampleSizes::seal(&[[1, 1]; 100]).unwrap();
        assert!(SlotPacking::new(&full, plan, 0, PictureLimits::default(), Some(sizes)).is_err());
    }

    #[test]
    fn sizes_of_another_data_set_are_refused() {
        let full = SampleProgram::compile(&Recipe::full()).unwrap();
        let fixed = SampleProgram::compile(&Recipe::eval224()).unwrap();
        let plan = || EpochPlan::new(2, OrderOptions::default()).unwrap();
        let sizes = |n: usize| Some(SampleSizes::seal(&vec![[1, 1]; n]).unwrap());
        let limits = PictureLimits::default();
        assert!(SlotPacking::new(&full, plan(), 0, limits, sizes(3)).is_err());
        assert!(SlotPacking::new(&full, plan(), 0, limits, None).is_err());
        assert!(SlotPacking::new(&fixed, plan(), 0, limits, sizes(2)).is_err());
        let equal = SlotPacking::new(&fixed, plan(), 1, limits, None).unwrap();
        let row = 3 * 224 * 224 * 4;
        assert_eq!(equal.slot_bytes(), 64 * row);
        let mut packed = PackedBatch::default();
        let row = row as usize;
        assert_eq!(
            equal.place(&mut packed, EpochMark::new(0, 0), 2),
            2 * row..3 * row
        );
        assert!(
            equal
                .descriptors(&mut packed, EpochMark::new(0, 0), &[])
                .is_none()
        );
        assert!(equal.check_size(0, (1, 1)).is_ok());
    }
}
