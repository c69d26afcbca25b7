//! The memory plan of a loader: what it would do and use, computed without starting it.
//!
//! In the consumer.

use std::sync::Arc;

use serde::Serialize;

use crate::data::annotations::AnnotationReport;
use crate::data::index::{Index, ScanReport};
use crate::data::objects::ObjectTable;
use crate::data::survey;
use crate::device::DecodeOn;
use crate::error::{Error, Result, SampleFault};
use crate::jobs::images::device_batches;
use crate::jobs::images::object_section::ObjectSection;
use crate::jobs::object_mover::{ObjectMover, SampleBoxes};
use crate::jobs::object_rule::ObjectRule;
use crate::loader::builder::LoaderBuilder;
use crate::loader::coded_room::coded_room;
use crate::loader::image_loader::Loader;
use crate::loader::jpeg_decoding;
use crate::loader::jpeg_decoding::DecodeChoice;
use crate::loader::prepared_run::{HostLimit, MemoryDecision, PreparedRun, RunRequest};
use crate::loader::upload::UploadChoice;
use crate::memory_plan::{DrawnSteps, LargestSample, MemoryLimit, RecipeOutline, RunMemory};
use crate::order::{EpochMark, EpochPlan, Position};
use crate::picture::PictureLimits;
use crate::pool::worker_options::check_worker_count;
use crate::recipe::{BoxSource, DrawnPicture, NumericProfile, SampleProgram};

/// What a run does to a sample, and the memory that it uses.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MemoryPlan {
    pub outline: RecipeOutline,
    pub memory: RunMemory,
    /// The lowest limit. A run above it gets fewer slots, or is rejected.
    pub limit: Option<MemoryLimit>,
    /// The limit that reduced the number of slots, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowered: Option<String>,
    /// How the device reads what workers hand over. None without a device.
    pub upload: Option<UploadChoice>,
    /// The sample that needs the most memory.
    pub largest: Option<LargestSample>,
    pub samples: u64,
    /// Files that the scan left out. None for a saved index, a cache or an index in memory.
    pub scan: Option<ScanReport>,
    pub batches: u64,
    /// What the files of annotations have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<AnnotationReport>,
    /// Bytes of the table of objects, which all processes share.
    #[serde(skip_serializing_if = "is_zero")]
    pub object_bytes: u64,
    pub profile: NumericProfile,
    /// Which decoder decodes JPEGs.
    pub jpegs: DecodeChoice,
    /// The random values of the requested rows, in the order of the epoch.
    pub drawn: Vec<DrawnRow>,
    /// False in a run [without images](LoaderBuilder::without_images): the steps of the outline do not
    /// run.
    pub reads_images: bool,
}

/// The random values of one row.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DrawnRow {
    /// Number of the row in the first epoch, on this rank. For [`Loader::drawn`], in its batch.
    pub row: u64,
    pub id: u64,
    pub path: std::path::PathBuf,
    /// The label, if an operation draws it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<i64>,
    #[serde(flatten)]
    pub steps: Option<DrawnSteps>,
    /// Why nothing was drawn: the header cannot be read, or the image is too small for a crop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<SampleFault>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl LoaderBuilder {
    /// The plan of what [`LoaderBuilder::build`] would start. Reads the header of every sample, and
    /// starts no process. `rows`: number of rows whose random values are included.
    ///
    /// # Errors
    /// All errors of `build`. A run that does not fit the memory limit, the cgroup's limit, or the
    /// available memory.
    pub fn memory_plan(self, rows: u64) -> Result<MemoryPlan> {
        match self.memory_plan_with_refusal(rows)? {
            (_, Some(refusal)) => Err(refusal),
            (forecast, None) => Ok(forecast),
        }
    }

    /// Like [`LoaderBuilder::memory_plan`], but also returns the plan of a run that does not fit a
    /// limit: the smallest plan that was tried, with the error.
    ///
    /// # Errors
    /// All other errors of [`LoaderBuilder::memory_plan`].
    pub fn memory_plan_with_refusal(mut self, rows: u64) -> Result<(MemoryPlan, Option<Error>)> {
        self = self.with_rules()?;
        let columns = self.run_columns()?;
        let program = self.program()?;
        let workers = self.worker_options.count()?;
        device_batches::check_workers(self.device, workers)?;
        let uploads = self.uploads(&program)?;
        let requested = self.depth;
        if let Some(uploads) = &uploads {
            uploads.check_rows()?;
        }
        let request = RunRequest {
            helper: self.worker_options.helper.as_deref(),
            program: &program,
            plan: &self.plan,
            sample_weights: self.sample_weights.as_deref(),
            limits: self.limits,
            feed: self.feed.as_ref(),
            on_error: self.on_error,
            masks: self.masks.as_ref(),
            rasters: &self.rasters,
            objects: self.objects.as_ref(),
            columns: &columns,
            plans_memory: true,
            coded_room: coded_room(uploads.as_ref(), requested, self.memory_limit),
        };
        let wish = self.decode_wish();
        let prepared = PreparedRun::new(self.source, &request)?;
        let program = &prepared.program;
        let needed = self.decode_on == DecodeOn::Gpu;
        let uploads = prepared.uploads(uploads, requested, needed)?;
        let decodes = uploads
            .as_ref()
            .is_some_and(|uploads| uploads.jpegs.is_some());
        let jpegs = jpeg_decoding::decode_choice(wish, program, prepared.has_jpegs, decodes);
        let limit = MemoryLimit::lowest_of(self.memory_limit);
        let host = match (limit, self.memory_limit) {
            (None, _) => HostLimit::None,
            (Some(limit), Some(_)) => HostLimit::LowersDepth(limit),
            // `build` does not change the depth either.
            (Some(limit), None) => HostLimit::Refuses(limit),
        };
        let MemoryDecision {
            memory,
            upload,
            lowered,
            refusal,
            finished,
            ..
        } = prepared.plan_memory(&request, workers, host, requested, uploads.as_ref())?;
        let program = finished.as_ref().map_or(program, |(program, _)| program);
        let index = &prepared.index;
        let largest = prepared.scratch.as_ref().and_then(|w| w.sample(index));
        // Without a readable header the outline uses this size.
        let picture = largest
            .as_ref()
            .map_or((1080, 1920), |l| (l.height, l.width));
        let drawn = draw(&prepared, program, &self.limits, rows);
        let forecast = MemoryPlan {
            outline: RecipeOutline::of(&self.recipe, picture)?,
            memory,
            limit,
            lowered,
            upload,
            largest,
            samples: prepared.index.len(),
            scan: prepared.scan,
            batches: prepared.plan.batches(),
            object_bytes: (prepared.objects.as_ref()).map_or(0, |of| of.table.bytes()),
            annotations: prepared.objects.and_then(|of| of.report),
            profile: NumericProfile::of(program),
            jpegs,
            drawn,
            reads_images: program.has_pixels,
        };
        Ok((forecast, refusal))
    }

    /// The memory of the run for each of these numbers of workers. Reads headers once. Only
    /// [`LoaderBuilder::memory_limit`] reduces the number of slots, and no run is rejected for its
    /// size.
    ///
    /// # Errors
    /// All other errors of `build`.
    pub fn memory_with_workers(mut self, numbers: &[usize]) -> Result<Vec<RunMemory>> {
        self = self.with_rules()?;
        let columns = self.run_columns()?;
        let program = self.program()?;
        let uploads = self.uploads(&program)?;
        let requested = self.depth;
        if let Some(uploads) = &uploads {
            uploads.check_rows()?;
        }
        let request = RunRequest {
            helper: self.worker_options.helper.as_deref(),
            program: &program,
            plan: &self.plan,
            sample_weights: self.sample_weights.as_deref(),
            limits: self.limits,
            feed: self.feed.as_ref(),
            on_error: self.on_error,
            masks: self.masks.as_ref(),
            rasters: &self.rasters,
            objects: self.objects.as_ref(),
            columns: &columns,
            plans_memory: true,
            coded_room: coded_room(uploads.as_ref(), requested, self.memory_limit),
        };
        let prepared = PreparedRun::new(self.source, &request)?;
        let needed = self.decode_on == DecodeOn::Gpu;
        let uploads = prepared.uploads(uploads, requested, needed)?;
        let limit = self
            .memory_limit
            .and_then(|requested| MemoryLimit::lowest_of(Some(requested)));
        let of = |workers: &usize| {
            let workers = check_worker_count(*workers)?;
            device_batches::check_workers(self.device, workers)?;
            let host = limit.map_or(HostLimit::None, HostLimit::LowersDepth);
            let settled =
                prepared.plan_memory(&request, workers, host, requested, uploads.as_ref())?;
            Ok(settled.memory)
        };
        numbers.iter().map(of).collect()
    }
}

impl Loader {
    /// The random values for the rows of a batch: the steps of each sample with their numbers.
    /// Padding is left out. Reads headers and starts nothing. The position does not change.
    pub fn drawn(&self, at: Position) -> Vec<DrawnRow> {
        let run = &self.run;
        let limits = PictureLimits {
            max_pixels: run.state.max_pixels,
            max_scratch: run.state.max_scratch,
        };
        let drawing = RowDrawing {
            plan: &run.plan,
            index: &run.index,
            program: &run.program,
            mover: object_mover(run.packing.objects().map(ObjectSection::table_and_rule)),
            limits: &limits,
        };
        let at = run.plan.mark(at.epoch, at.batch);
        let rows = 0..run.plan.filled_rows_at(at);
        rows.map(|row| drawing.row(at, row, u64::from(row)))
            .collect()
    }
}

/// The random values for the first `rows` rows of the first epoch.
fn draw(
    prepared: &PreparedRun,
    program: &SampleProgram,
    limits: &PictureLimits,
    rows: u64,
) -> Vec<DrawnRow> {
    let drawing = RowDrawing {
        plan: &prepared.plan,
        index: &prepared.index,
        program,
        mover: object_mover(
            (prepared.objects.as_ref()).map(|objects| (&objects.table, &objects.rule)),
        ),
        limits,
    };
    let plan = drawing.plan;
    let all = (0..plan.batches()).flat_map(|batch| {
        let at = plan.mark(0, batch);
        (0..plan.filled_rows_at(at)).map(move |row| (at, row))
    });
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let drawn = all.take(rows).enumerate();
    drawn
        .map(|(number, (at, row))| drawing.row(at, row, number as u64))
        .collect()
}

/// The inputs of a draw.
struct RowDrawing<'a> {
    plan: &'a EpochPlan,
    index: &'a Index,
    program: &'a SampleProgram,
    /// None: the samples have no objects.
    mover: Option<ObjectMover>,
    limits: &'a PictureLimits,
}

/// What moves these objects. Their rule was checked when they were opened.
fn object_mover(objects: Option<(&Arc<ObjectTable>, &ObjectRule)>) -> Option<ObjectMover> {
    let (table, rule) = objects?;
    ObjectMover::new(table.clone(), rule).ok()
}

impl RowDrawing<'_> {
    /// The random values for a row of a batch, reported as row `number`.
    fn row(&self, at: EpochMark, row: u32, number: u64) -> DrawnRow {
        let planned = self.plan.row_at(at, row);
        let random = self.plan.random(at.epoch, planned.position);
        let orientation = self.program.orientation;
        let part = self.index.pixel_box(planned.id);
        let boxes = self.mover.as_ref().map(|mover| SampleBoxes {
            mover,
            id: planned.id,
            part,
        });
        let whole = survey::whole_header_of(self.index, planned.id, self.limits, orientation);
        let steps = whole.and_then(|whole| {
            let (width, height) = whole.upright_size();
            let (across, down) = whole.with_box(part)?.upright_size();
            let picture = DrawnPicture {
                size: (down, across),
                whole: (height, width),
                row: planned.size,
                boxes: boxes.as_ref().map(|boxes| boxes as &dyn BoxSource),
            };
            let partner = |draw| self.plan.partner_at(at.epoch, planned.position, draw).id;
            DrawnSteps::of(self.program, (&picture, &partner), &random)
        });
        let (steps, fault) = match steps {
            Ok(steps) => (Some(steps), None),
            Err(fault) => (None, Some(fault)),
        };
        DrawnRow {
            row: number,
            id: planned.id,
            path: self.index.path(planned.id),
            label: self.program.draw_label(&random),
            steps,
            fault,
        }
    }
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::loader::Source;
    use crate::recipe::Recipe;

    #[test]
    fn unpacked_columns_are_planned_and_limited() {
        let dir = tempfile::tempdir().unwrap();
        let builder = |seed: &str, columns: &[&str]| {
            let path = dir.path().join(format!("{seed}.arrow"));
            let from = format!("{}/fuzz/seeds/arrow/{seed}", env!("CARGO_MANIFEST_DIR"));
            // Without the byte that the fuzzer reads.
            let bytes = std::fs::read(from).unwrap().split_off(1);
            std::fs::write(&path, bytes).unwrap();
            Loader::builder(Source::detect(&path).unwrap())
                .recipe(Recipe::eval224())
                .batch_size(2)
                .num_workers(0)
                .columns(columns.iter().copied())
        };
        let total = |seed: &str, columns: &[&str]| {
            let plan = builder(seed, columns).memory_plan(0).unwrap();
            plan.memory.total_bytes
        };
        // Values that lie in the file take no memory.
        assert_eq!(total("file", &[]), total("file", &["note", "words"]));
        let (none, both) = (total("lz4", &[]), total("lz4", &["note", "words"]));
        let decoder = 3 * (64 << 10);
        assert!(both > none + decoder, "{none} {both}");
        // A limit with room for the rest alone.
        let limited = |columns: &[&str], limit: u64| -> Option<Error> {
            let builder = builder("lz4", columns).memory_limit(limit).depth(1);
            builder.memory_plan_with_refusal(0).unwrap().1
        };
        let least = |columns: &[&str]| {
            let plan = builder("lz4", columns).depth(1).memory_plan(0);
            plan.unwrap().memory.total_bytes
        };
        assert!(limited(&[], least(&[])).is_none());
        let refusal = limited(&["note", "words"], least(&[])).unwrap().to_string();
        assert!(refusal.contains("memory_limit allows"), "{refusal}");
        assert!(limited(&["note", "words"], least(&["note", "words"])).is_none());
        // A plan needs the columns, as the run does.
        let e = builder("lz4", &["absent"]).memory_plan(0).unwrap_err();
        assert!(e.to_string().contains("has no column 'absent'"), "{e}");
    }
}
