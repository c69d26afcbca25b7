//! How a device reads what workers hand over, and the device memory that this needs. Chosen before
//! a process starts.
//!
//! In the consumer. The choice depends only on recipe, options and limit, never on timing or on the
//! device. So a memory plan on a machine without a GPU is the same.

use serde::Serialize;

use crate::device::UploadMode;
use crate::device::stage_shapes::{JpegParts, JpegShape, MOST_ROWS};
use crate::error::{Error, Result, size_rounded_down, size_rounded_up};
use crate::jobs::images::device_batches;
use crate::jobs::images::device_batches::DeviceSpec;
use crate::jobs::images::packing::SlotPacking;
use crate::jobs::raster_section::{ROW_ALIGNMENT, RasterSection};
use crate::memory_plan::run_memory::{DeviceNeeds, RingDepth, advice_text, largest_that_fits};
use crate::order::{EpochPlan, OrderOptions, Sampler};
use crate::picture::PictureLimits;
use crate::recipe::SampleProgram;

/// How a device reads what workers hand over, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UploadChoice {
    pub upload: UploadMode,
    pub why: String,
    /// Most bytes of device memory, if the user set a limit.
    pub limit_bytes: Option<u64>,
}

/// The inputs of the choice.
#[derive(Debug, Clone)]
pub(super) struct UploadPlanner<'a> {
    pub(super) program: &'a SampleProgram,
    pub(super) plan: OrderOptions,
    pub(super) limits: PictureLimits,
    /// The user's choice, if any.
    pub(super) requested: Option<UploadMode>,
    /// Most bytes of device memory, without the context.
    pub(super) limit: Option<u64>,
    /// The parts in which the device decodes JPEGs. None: workers decode all.
    pub(super) jpegs: Option<JpegParts>,
    /// Why workers finish several crops, if they do.
    pub(super) finished_why: Option<String>,
    /// The rasters of the images.
    pub(super) rasters: Vec<RasterSection>,
    /// Most bytes of the instance masks of a batch.
    pub(super) mask_bytes: u64,
    /// See [`SlotPacking::target_bytes`].
    pub(super) target_bytes: (u64, u64),
}

/// A choice, and the memory that it needs.
#[derive(Debug)]
pub(super) struct PlannedUpload {
    pub(super) choice: UploadChoice,
    /// The most slots that fit.
    pub(super) depth: u32,
    pub(super) bytes: DeviceNeeds,
}

/// The upload modes to try, in order. In-place needs the least memory, but keeps the bus busy while
/// the kernel runs. So pixels are copied when the kernel reads them twice, or when a given limit
/// has room for copies.
fn ways(twice: bool, limited: bool) -> &'static [UploadMode] {
    match (twice, limited) {
        (false, false) => &[UploadMode::InPlace],
        (true, false) => &[UploadMode::Copied],
        (_, true) => &[UploadMode::Copied, UploadMode::InPlace],
    }
}

impl UploadPlanner<'_> {
    /// Rejects batches with more rows than one launch can have, and a run that exceeds the limit.
    /// Only checks what is known without data: the size of rows with their own sizes depends on
    /// headers.
    ///
    /// # Errors
    /// As [`UploadPlanner::choose`].
    pub(super) fn check(&self, depth: RingDepth) -> Result<()> {
        let plan = self.check_rows()?;
        let is_sized_by_data = matches!(self.plan.sampler, Sampler::Buckets(_));
        if self.limit.is_none() || self.program.extent.is_of_data() || is_sized_by_data {
            return Ok(());
        }
        let slot_bytes = self.slot_bytes(&plan)?;
        self.choose(slot_bytes, depth).map(drop)
    }

    /// The same run with a JPEG decoder on the device. Its parts are as large as the limit allows:
    /// with the most slots if that fits, otherwise with fewer slots. Without the decoder if nothing
    /// fits and it is not `needed`. `windows`: window pixels that a part should have room for. If
    /// there is less room, workers decode the largest images.
    ///
    /// # Errors
    /// As [`UploadPlanner::choose`], if the decoder is needed.
    pub(super) fn with_jpeg_parts(
        mut self,
        windows: usize,
        depth: RingDepth,
        needed: bool,
    ) -> Result<Self> {
        let plan = self.check_rows()?;
        if matches!(self.plan.sampler, Sampler::Buckets(_)) && self.plan.multi_scale.is_none() {
            // Chosen again when the buckets of the data set are known.
            self.jpegs = JpegShape::all_parts(plan.most_rows() as usize, windows).next();
            return Ok(self);
        }
        let slot_bytes = self.slot_bytes(&plan)?;
        let parts: Vec<_> = JpegShape::all_parts(plan.most_rows() as usize, windows).collect();
        for depth in [RingDepth::Exactly(depth.most_slots()), depth] {
            for &parts in &parts {
                self.jpegs = Some(parts);
                if self.choose(slot_bytes, depth).is_ok() {
                    return Ok(self);
                }
            }
        }
        if needed {
            return self.choose(slot_bytes, depth).map(|_| self);
        }
        self.jpegs = None;
        Ok(self)
    }

    /// The same for the rows of this program, which may have other room for coded crops, and for
    /// parts with room for `windows` pixels. Chooses the parts again.
    ///
    /// # Errors
    /// As [`UploadPlanner::with_jpeg_parts`].
    pub(super) fn with_program<'b>(
        self,
        program: &'b SampleProgram,
        windows: usize,
        depth: RingDepth,
        needed: bool,
    ) -> Result<UploadPlanner<'b>> {
        let is_sized_by_data = matches!(self.plan.sampler, Sampler::Buckets(_));
        let is_changed = is_sized_by_data || *program != *self.program || windows > 0;
        let uploads = UploadPlanner { program, ..self };
        match uploads.jpegs.is_some() && is_changed {
            true => uploads.with_jpeg_parts(windows, depth, needed),
            false => Ok(uploads),
        }
    }

    /// The batches, if one launch can have all their rows.
    ///
    /// # Errors
    /// Too many rows.
    pub(super) fn check_rows(&self) -> Result<EpochPlan> {
        let plan = self.batches(self.plan.batch)?;
        if self.program.crops.is_some() && plan.most_rows() > MOST_ROWS {
            return Err(Error::config(format!(
                "`batch_size` gives {} rows, and a device takes at most {MOST_ROWS}: lower \
                 `batch_size`",
                plan.most_rows()
            )));
        }
        Ok(plan)
    }

    /// Bytes of the device for the fewest slots, if all rows have one size.
    ///
    /// # Errors
    /// Sizes of which no batch can be made.
    pub(super) fn least_bytes(&self, depth: RingDepth) -> Result<u64> {
        let plan = self.batches(self.plan.batch)?;
        let slot_bytes = self.slot_bytes(&plan)?;
        let all = self.ways().0.iter();
        let bytes = all.map(|upload| self.bytes(&plan, *upload, slot_bytes));
        let least = bytes.map(|bytes| bytes.bytes_with(depth.least_slots()));
        Ok(least.min().unwrap_or(0))
    }

    /// Bytes of a slot, if all rows have one size.
    ///
    /// # Errors
    /// Sizes of which no batch can be made.
    pub(super) fn fixed_slot_bytes(&self) -> Result<u64> {
        self.slot_bytes(&self.batches(self.plan.batch)?)
    }

    /// The upload mode, and the most slots that fit with it. Tries each mode with the requested
    /// slots first, then fewer slots. `slot_bytes`: bytes of a ring slot.
    ///
    /// # Errors
    /// Nothing fits the limit. The text names what would.
    pub(super) fn choose(&self, slot_bytes: u64, depth: RingDepth) -> Result<PlannedUpload> {
        let plan = self.batches(self.plan.batch)?;
        let (ways, only) = self.ways();
        let bytes = |upload| self.bytes(&plan, upload, slot_bytes);
        let (most, least) = (depth.most_slots(), depth.least_slots());
        for depth in (least..=most).rev() {
            for &upload in ways {
                let bytes = bytes(upload);
                if self
                    .limit
                    .is_some_and(|limit| bytes.bytes_with(depth) > limit)
                {
                    continue;
                }
                let why = match &only {
                    Some(why) => why.clone(),
                    None => self.why(upload, || {
                        self.bytes(&plan, UploadMode::Copied, slot_bytes)
                            .bytes_with(depth)
                    }),
                };
                return Ok(PlannedUpload {
                    choice: UploadChoice {
                        upload,
                        why,
                        limit_bytes: self.limit,
                    },
                    depth,
                    bytes,
                });
            }
        }
        let smallest = ways.last().copied().unwrap_or_default();
        Err(self.refusal(
            smallest,
            slot_bytes,
            least,
            bytes(smallest).bytes_with(least),
        ))
    }

    /// The modes to try. With a reason if there is only one.
    fn ways(&self) -> (&'static [UploadMode], Option<String>) {
        if self.program.hulls.is_some() {
            let why =
                "the decoded pixels of each image are copied once, and one launch makes all crops";
            return (&[UploadMode::Copied], Some(why.into()));
        }
        let Some(rule) = &self.program.crops else {
            let why = match (&self.finished_why, self.program.is_crop_set()) {
                (Some(why), _) => Some(why.clone()),
                (None, true) => None,
                (None, false) => self.program.with_crops().err(),
            };
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let only = "finished rows are always copied, all rows of a batch at once";
            return (&[UploadMode::Copied], Some(format!("{only}{why}")));
        };
        let one: &'static [UploadMode] = match self.requested {
            None => return (ways(rule.reads_twice(), self.limit.is_some()), None),
            Some(UploadMode::InPlace) => &[UploadMode::InPlace],
            Some(UploadMode::Copied) => &[UploadMode::Copied],
        };
        (one, Some("as requested".into()))
    }

    fn why(&self, upload: UploadMode, copied: impl Fn() -> u64) -> String {
        match (upload, self.limit) {
            (UploadMode::InPlace, None) => {
                "the kernel reads each pixel once over the bus. A gpu_memory_limit with room for \
                 copies would make the kernel faster"
                    .into()
            }
            (UploadMode::Copied, None) => "the kernel reads pixels twice, so they are copied over \
                                       the bus once"
                .into(),
            (UploadMode::InPlace, Some(limit)) => format!(
                "copies would need {} of the device and gpu_memory_limit allows {}",
                size_rounded_up(copied()),
                size_rounded_down(limit)
            ),
            (UploadMode::Copied, Some(_)) => {
                "copies fit gpu_memory_limit and make the kernel faster".into()
            }
        }
    }

    /// Batches of `batch` rows, for any samples.
    fn batches(&self, batch: u32) -> Result<EpochPlan> {
        EpochPlan::new(
            1,
            OrderOptions {
                batch,
                multi_scale: self.plan.multi_scale.clone(),
                ..OrderOptions::default()
            },
        )
    }

    /// Bytes of a slot, if all rows have one size.
    fn slot_bytes(&self, plan: &EpochPlan) -> Result<u64> {
        let packing = SlotPacking::new(self.program, plan.clone(), 0, self.limits, None)?;
        Ok(packing.slot_bytes())
    }

    fn bytes(&self, plan: &EpochPlan, upload: UploadMode, slot_bytes: u64) -> DeviceNeeds {
        let work = |outputs| DeviceSpec {
            program: self.program,
            plan,
            upload,
            outputs,
            jpegs: self.jpegs,
            rasters: &self.rasters,
            mask_bytes: self.mask_bytes,
        };
        let once = work(0).device_bytes(slot_bytes);
        DeviceNeeds {
            fixed: once,
            per_slot: work(1).device_bytes(slot_bytes) - once,
            least_slots: u64::from(device_batches::outputs(0)),
            most_slots: u64::from(device_batches::outputs(u32::MAX)),
            pinned: work(0).pinned_bytes(),
            decodes: self.jpegs.is_some(),
        }
    }

    fn refusal(&self, upload: UploadMode, slot_bytes: u64, depth: u32, bytes: u64) -> Error {
        let limit = self.limit.unwrap_or(u64::MAX);
        // Upper bounds for targets: the rows of a smaller batch may be the largest ones.
        let of_batch = |batch: u32| {
            let plan = self.batches(batch).ok()?;
            let slot_bytes = self.slot_bytes(&plan).ok()?;
            let rows = u64::from(plan.most_rows());
            let of_rows = |bytes: u64| (bytes + ROW_ALIGNMENT as u64).saturating_mul(rows);
            let (all, records) = self.target_bytes;
            let targets = if all > 0 { of_rows(all) } else { 0 };
            let smaller = UploadPlanner {
                mask_bytes: self.mask_bytes.min(of_rows(records)),
                ..self.clone()
            };
            let bytes = smaller.bytes(&plan, upload, slot_bytes.saturating_add(targets));
            Some(bytes.bytes_with(depth))
        };
        let with = |upload, depth| {
            let plan = self.batches(self.plan.batch).ok()?;
            Some(self.bytes(&plan, upload, slot_bytes).bytes_with(depth))
        };
        let fits = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes <= limit);
        let mut smaller = Vec::new();
        if let Some(n) = largest_that_fits(self.plan.batch, |n| fits(of_batch(n))) {
            smaller.push(format!("batch_size {n}"));
        }
        if let Some(n) = largest_that_fits(depth, |n| fits(with(upload, n))) {
            smaller.push(format!("depth {n}"));
        }
        let crops = self.program.crops.is_some();
        if crops && upload == UploadMode::Copied && fits(with(UploadMode::InPlace, depth)) {
            smaller.push(format!("upload {}", UploadMode::InPlace));
        }
        if self.jpegs.is_some() {
            smaller.push("decode_on cpu".into());
        }
        let what = match crops {
            true => format!("crops {upload}"),
            false => "finished rows".into(),
        };
        Error::config(format!(
            "the run needs {} of the device with depth {depth} and {what} (without its context) and \
             gpu_memory_limit allows {}: {}",
            size_rounded_up(bytes),
            size_rounded_down(limit),
            advice_text(&smaller)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::stage_shapes::rows_bytes;
    use crate::recipe::{Recipe, ReorderMode};

    fn program(recipe: Recipe) -> SampleProgram {
        let program = SampleProgram::compile(&recipe).unwrap();
        program.with_crops().unwrap_or(program)
    }

    fn uploads(program: &SampleProgram) -> UploadPlanner<'_> {
        UploadPlanner {
            program,
            plan: OrderOptions::default(),
            limits: PictureLimits::default(),
            requested: None,
            limit: None,
            jpegs: None,
            finished_why: None,
            rasters: Vec::new(),
            mask_bytes: 0,
            target_bytes: (0, 0),
        }
    }

    fn slot_bytes(uploads: &UploadPlanner<'_>) -> u64 {
        let plan = uploads.batches(uploads.plan.batch).unwrap();
        uploads.slot_bytes(&plan).unwrap()
    }

    /// Bytes that `upload` needs with `depth` slots.
    fn taken(uploads: &UploadPlanner<'_>, upload: UploadMode, depth: u32) -> u64 {
        let plan = uploads.batches(uploads.plan.batch).unwrap();
        let bytes = uploads.bytes(&plan, upload, slot_bytes(uploads));
        bytes.bytes_with(depth)
    }

    #[test]
    fn pixels_that_are_read_twice_are_copied_and_a_limit_is_used() {
        assert_eq!(ways(false, false), [UploadMode::InPlace]);
        assert_eq!(ways(true, false), [UploadMode::Copied]);
        for twice in [false, true] {
            assert_eq!(ways(twice, true), [UploadMode::Copied, UploadMode::InPlace]);
        }
    }

    #[test]
    fn to_the_byte_at_every_limit() {
        let program = program(Recipe::train224());
        let mut uploads = uploads(&program);
        let slot = slot_bytes(&uploads);
        let [copied, in_place] = [UploadMode::Copied, UploadMode::InPlace];
        let depth = RingDepth::AtMost(4);
        let free = uploads.choose(slot, depth).unwrap();
        assert_eq!((free.choice.upload, free.depth), (in_place, 4));
        // The requested slots come before the upload mode, and that before fewer slots.
        let mut wanted = Vec::new();
        for depth in [4, 3, 2] {
            for upload in [copied, in_place] {
                wanted.push((taken(&uploads, upload, depth), upload, depth));
            }
        }
        // Two batches are on the device whatever the slots.
        assert_eq!(taken(&uploads, in_place, 1), taken(&uploads, in_place, 2));
        let mut limits: Vec<u64> = wanted.iter().flat_map(|w| [w.0, w.0 - 1]).collect();
        limits.push(wanted[0].0 + 1);
        for limit in limits {
            uploads.limit = Some(limit);
            let fits = wanted.iter().find(|(bytes, ..)| *bytes <= limit);
            match (uploads.choose(slot, depth), fits) {
                (Ok(chosen), Some((bytes, upload, depth))) => {
                    assert_eq!((chosen.choice.upload, chosen.depth), (*upload, *depth));
                    assert_eq!(chosen.bytes.bytes_with(chosen.depth), *bytes);
                    assert_eq!(chosen.choice.limit_bytes, Some(limit));
                    uploads.check(RingDepth::AtMost(4)).unwrap();
                }
                (Err(e), None) => {
                    let message = e.to_string();
                    let least = taken(&uploads, in_place, 1);
                    assert_eq!(limit, least - 1);
                    assert!(
                        message.contains(&format!("needs {} of", size_rounded_up(least))),
                        "{message}"
                    );
                    let same = uploads.check(RingDepth::AtMost(4)).unwrap_err();
                    assert_eq!(same.to_string(), message);
                }
                (chosen, fits) => panic!("{limit}: {chosen:?}, {fits:?}"),
            }
        }
    }

    #[test]
    fn parts_of_jpegs_become_smaller_before_workers_decode() {
        let program = program(Recipe::train224());
        let depth = RingDepth::AtMost(3);
        let of = |limit: Option<u64>, needed: bool| {
            let uploads = UploadPlanner {
                limit,
                ..uploads(&program)
            };
            let uploads = uploads.with_jpeg_parts(0, depth, needed);
            uploads.map(|uploads| uploads.jpegs.map(|parts| parts.pictures))
        };
        assert_eq!(of(None, false).unwrap(), Some(32));
        let bytes = |pictures: Option<usize>, depth| {
            let uploads = UploadPlanner {
                jpegs: pictures.map(|pictures| JpegParts {
                    pictures,
                    window: 0,
                }),
                ..uploads(&program)
            };
            taken(&uploads, UploadMode::InPlace, depth)
        };
        let all = bytes(Some(32), 3);
        assert!(bytes(Some(16), 3) < all && bytes(Some(8), 3) < bytes(Some(16), 3));
        assert_eq!(of(Some(all), false).unwrap(), Some(32));
        assert_eq!(of(Some(all - 1), false).unwrap(), Some(16));
        assert_eq!(of(Some(bytes(Some(8), 3)), true).unwrap(), Some(8));
        // Fewer slots, then workers.
        let least = bytes(Some(8), 2);
        assert_eq!(of(Some(least), true).unwrap(), Some(8));
        assert_eq!(of(Some(least - 1), false).unwrap(), None);
        let refusal = of(Some(least - 1), true).unwrap_err();
        assert!(refusal.to_string().contains("decode_on cpu"), "{refusal}");
    }

    /// Of parts with room for large windows the windows become smaller, before slots do.
    #[test]
    fn windows_of_full_size_take_what_a_limit_leaves() {
        let program = program(Recipe::train224());
        let depth = RingDepth::AtMost(3);
        let of = |limit: Option<u64>| {
            let uploads = UploadPlanner {
                limit,
                ..uploads(&program)
            };
            uploads.with_jpeg_parts(12 << 20, depth, false).unwrap()
        };
        let taken_by = |uploads: &UploadPlanner<'_>| {
            let jpegs = uploads.jpegs;
            (jpegs.unwrap(), taken(uploads, UploadMode::InPlace, 3))
        };
        let parts = |pictures, window| JpegParts { pictures, window };
        let (first, all) = taken_by(&of(None));
        assert_eq!(first, parts(32, 12 << 20));
        let (second, fewer) = taken_by(&of(Some(all - 1)));
        assert_eq!(second, parts(16, 12 << 20));
        assert!(fewer < all);
        let (_, least) = taken_by(&UploadPlanner {
            jpegs: Some(parts(8, 12 << 20)),
            ..uploads(&program)
        });
        let (half, _) = taken_by(&of(Some(least - 1)));
        assert_eq!(half, parts(32, 6 << 20));
    }

    /// The number after a word of an error text.
    fn named(message: &str, word: &str) -> u32 {
        let (_, rest) = message.split_once(": use ").unwrap_or_default();
        let (_, rest) = rest.split_once(word).unwrap_or_else(|| panic!("{message}"));
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        rest[..digits.unwrap_or(rest.len())].parse().unwrap()
    }

    /// What a refusal names fits, and no more does.
    #[test]
    fn a_refusal_says_what_would_fit() {
        let program = program(Recipe::train224());
        let of = |batch: u32, upload: Option<UploadMode>, limit: Option<u64>| UploadPlanner {
            plan: OrderOptions {
                batch,
                ..OrderOptions::default()
            },
            requested: upload,
            limit,
            ..uploads(&program)
        };
        let fits = |batch: u32, upload: UploadMode, depth: u32, limit: u64| {
            of(batch, Some(upload), Some(limit))
                .check(RingDepth::Exactly(depth))
                .is_ok()
        };
        let limit = taken(&of(64, None, None), UploadMode::Copied, 5) - 1;
        let copied = of(64, Some(UploadMode::Copied), Some(limit));
        let message = copied.check(RingDepth::Exactly(5)).unwrap_err();
        assert!(message.is_usage());
        let message = message.to_string();
        let (batch, depth) = (named(&message, "batch_size "), named(&message, "depth "));
        assert!(fits(batch, UploadMode::Copied, 5, limit), "{message}");
        assert!(!fits(batch + 1, UploadMode::Copied, 5, limit), "{message}");
        assert!(fits(64, UploadMode::Copied, depth, limit), "{message}");
        assert!(!fits(64, UploadMode::Copied, depth + 1, limit), "{message}");
        assert!(message.contains("upload in-place"), "{message}");
        assert!(fits(64, UploadMode::InPlace, 5, limit), "{message}");

        let message = of(64, None, Some(1))
            .check(RingDepth::AtMost(3))
            .unwrap_err();
        assert!(
            message.to_string().contains("a recipe with smaller rows"),
            "{message}"
        );
    }

    #[test]
    fn finished_rows_have_one_way() {
        let program = program(Recipe::train224().with_reorder(ReorderMode::Off));
        for mode in [None, Some(UploadMode::InPlace), Some(UploadMode::Copied)] {
            let mut uploads = uploads(&program);
            uploads.requested = mode;
            let slot = slot_bytes(&uploads);
            let chosen = uploads.choose(slot, RingDepth::AtMost(3)).unwrap();
            assert_eq!(chosen.choice.upload, UploadMode::Copied);
            let why = &chosen.choice.why;
            assert!(why.contains("always copied") && why.contains("reorder: off"));
            // Nothing but batches, and what the driver takes: `device::stage_shapes`.
            let three = chosen.bytes.bytes_with(3);
            assert_eq!(three, rows_bytes(3, slot as usize));
            uploads.limit = Some(three - 1);
            let chosen = uploads.choose(slot, RingDepth::AtMost(3)).unwrap();
            assert_eq!(chosen.depth, 2);
            uploads.limit = Some(rows_bytes(2, slot as usize) - 1);
            let message = uploads.choose(slot, RingDepth::AtMost(3)).unwrap_err();
            let message = message.to_string();
            assert!(message.contains("finished rows"), "{message}");
            assert!(message.contains("batch_size 62"), "{message}");
            assert!(!message.contains("in-place"), "{message}");
        }
    }
}
