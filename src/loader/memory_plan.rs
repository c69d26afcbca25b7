//! What a loader would do and take, without starting it.
//!
//! In the consumer.

use serde::Serialize;

use crate::data::index::{Index, ScanReport};
use crate::data::survey;
use crate::device::DecodeOn;
use crate::error::{Error, Result, SampleFault};
use crate::jobs::images::device_batches;
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
use crate::recipe::{NumericProfile, SampleProgram};

/// What a run will do to a sample, and the memory that it will take.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MemoryPlan {
    pub outline: RecipeOutline,
    pub memory: RunMemory,
    /// The lowest limit that there is; the run is refused, or given fewer slots,
    /// when it does not keep to it.
    pub limit: Option<MemoryLimit>,
    /// What made the slots fewer than asked for, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowered: Option<String>,
    /// How the device gets at what workers hand over, where batches end on one.
    pub upload: Option<UploadChoice>,
    /// The sample that takes the most.
    pub largest: Option<LargestSample>,
    pub samples: u64,
    /// What reading the names left out; none for a saved index, a cache and an index.
    pub scan: Option<ScanReport>,
    pub batches: u64,
    pub profile: NumericProfile,
    /// Who decodes JPEGs.
    pub jpegs: DecodeChoice,
    /// The rows that were asked for, by their position in the epoch.
    pub drawn: Vec<DrawnRow>,
}

/// What is drawn for one row.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DrawnRow {
    /// Place in the first epoch, on this rank; of [`Loader::drawn`] in its batch.
    pub row: u64,
    pub id: u64,
    pub path: std::path::PathBuf,
    /// Where an operation draws it: the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<i64>,
    #[serde(flatten)]
    pub steps: Option<DrawnSteps>,
    /// Why nothing is drawn: no header, or a picture too small for a crop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<SampleFault>,
}

impl LoaderBuilder {
    /// What [`LoaderBuilder::build`] would start. Reads the header of every sample,
    /// and starts nothing. With `rows`, what is drawn for the first that many rows.
    ///
    /// # Errors
    /// What `build` would refuse, and a run that does not fit the memory limit, what
    /// the cgroup leaves, or what the machine has available.
    pub fn memory_plan(self, rows: u64) -> Result<MemoryPlan> {
        match self.memory_plan_with_refusal(rows)? {
            (_, Some(refusal)) => Err(refusal),
            (forecast, None) => Ok(forecast),
        }
    }

    /// The same, also of a run that does not fit a limit: with the error that
    /// [`LoaderBuilder::forecast`] gives, and the least that was tried.
    ///
    /// # Errors
    /// The others of [`LoaderBuilder::forecast`].
    pub fn memory_plan_with_refusal(self, rows: u64) -> Result<(MemoryPlan, Option<Error>)> {
        let program = self.program()?;
        let workers = self.crew.count()?;
        device_batches::check_workers(self.device, workers)?;
        let uploads = self.uploads(&program)?;
        let asked = self.depth;
        if let Some(uploads) = &uploads {
            uploads.check_rows()?;
        }
        let wanted = RunRequest {
            helper: self.crew.helper.as_deref(),
            program: &program,
            plan: &self.plan,
            sample_weights: self.sample_weights.as_deref(),
            limits: self.limits,
            on_error: self.on_error,
            plans_memory: true,
            coded_room: coded_room(uploads.as_ref(), asked, self.memory_limit),
        };
        let prepared = PreparedRun::new(self.source, &wanted)?;
        let program = &prepared.program;
        let needed = self.decode_on == DecodeOn::Gpu;
        let uploads = prepared.uploads(uploads, asked, needed)?;
        let decodes = uploads
            .as_ref()
            .is_some_and(|uploads| uploads.jpegs.is_some());
        let jpegs = jpeg_decoding::decode_choice(
            self.decode_on,
            self.device,
            program,
            prepared.has_jpegs,
            decodes,
        );
        let limit = MemoryLimit::lowest_of(self.memory_limit);
        let host = match (limit, self.memory_limit) {
            (None, _) => HostLimit::None,
            (Some(limit), Some(_)) => HostLimit::LowersDepth(limit),
            // `build` then takes the depth as it is.
            (Some(limit), None) => HostLimit::Refuses(limit),
        };
        let MemoryDecision {
            memory,
            upload,
            lowered,
            refusal,
        } = prepared.plan_memory(&wanted, workers, host, asked, uploads.as_ref())?;
        let index = &prepared.index;
        let largest = prepared.scratch.as_ref().and_then(|w| w.sample(index));
        // Without a readable header something has to be said still.
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
            profile: NumericProfile::of(program),
            jpegs,
            drawn,
        };
        Ok((forecast, refusal))
    }

    /// The memory of the run with each of these numbers of workers, as
    /// [`LoaderBuilder::forecast`] has it. Headers are read once for all of them. Only
    /// [`LoaderBuilder::memory_limit`] makes slots fewer, and nothing is refused for its size.
    ///
    /// # Errors
    /// What `build` would refuse otherwise.
    pub fn memory_with_workers(self, numbers: &[usize]) -> Result<Vec<RunMemory>> {
        let program = self.program()?;
        let uploads = self.uploads(&program)?;
        let asked = self.depth;
        if let Some(uploads) = &uploads {
            uploads.check_rows()?;
        }
        let wanted = RunRequest {
            helper: self.crew.helper.as_deref(),
            program: &program,
            plan: &self.plan,
            sample_weights: self.sample_weights.as_deref(),
            limits: self.limits,
            on_error: self.on_error,
            plans_memory: true,
            coded_room: coded_room(uploads.as_ref(), asked, self.memory_limit),
        };
        let prepared = PreparedRun::new(self.source, &wanted)?;
        let needed = self.decode_on == DecodeOn::Gpu;
        let uploads = prepared.uploads(uploads, asked, needed)?;
        let limit = self
            .memory_limit
            .and_then(|asked| MemoryLimit::lowest_of(Some(asked)));
        let of = |workers: &usize| {
            let workers = check_worker_count(*workers)?;
            device_batches::check_workers(self.device, workers)?;
            let host = limit.map_or(HostLimit::None, HostLimit::LowersDepth);
            let settled = prepared.plan_memory(&wanted, workers, host, asked, uploads.as_ref())?;
            Ok(settled.memory)
        };
        numbers.iter().map(of).collect()
    }
}

impl Loader {
    /// What is drawn for the rows of a batch, as [`LoaderBuilder::forecast`] says it of the
    /// first epoch: the steps of each sample with their numbers. Reads headers, and starts
    /// nothing; the run stands where it stood. Padding is left out.
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
            limits: &limits,
        };
        let at = run.plan.mark(at.epoch, at.batch);
        let rows = 0..run.plan.filled_rows_at(at);
        rows.map(|row| drawing.row(at, row, u64::from(row)))
            .collect()
    }
}

/// What is drawn for the first `rows` rows of the first epoch.
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

/// What a draw goes by.
struct RowDrawing<'a> {
    plan: &'a EpochPlan,
    index: &'a Index,
    program: &'a SampleProgram,
    limits: &'a PictureLimits,
}

impl RowDrawing<'_> {
    /// What is drawn for a row of a batch, which is said to be row `number`.
    fn row(&self, at: EpochMark, row: u32, number: u64) -> DrawnRow {
        let planned = self.plan.row_at(at, row);
        let random = self.plan.random(at.epoch, planned.position);
        let orientation = self.program.orientation;
        let header = survey::header_of(self.index, planned.id, self.limits, orientation);
        let steps = header.and_then(|header| {
            let (width, height) = header.upright_size();
            DrawnSteps::of(self.program, (height, width), planned.size, &random)
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
