//! What follows from options and data before a byte of the run is allocated:
//! shared by the start of a run and by its forecast.
//!
//! In the consumer.

use super::builder::OnError;
use super::on_device::{self, DeviceWork};
use super::source::Source;
use super::{mixed, order};
use crate::device::Upload;
use crate::error::{Error, Result};
use crate::forecast::memory::{DeviceBytes, Ingredients, MixingBytes, Worst};
use crate::index::{Index, ScanReport};
use crate::packing::{Packing, Sizes};
use crate::picture::Limits;
use crate::plan::{Plan, PlanOptions, SamplerTable};
use crate::recipe::{RowExtent, SampleProgram};
use crate::survey;

/// Names, order and room of a run.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) index: Index,
    pub(super) scan: Option<ScanReport>,
    pub(super) plan: Plan,
    pub(super) packing: Packing,
    /// Those of the packing, for the job.
    pub(super) sizes: Option<Sizes>,
    /// Samples that are tried in the place of one that gives no pixels.
    pub(super) tries: u32,
    /// What the headers say, where they were asked for memory.
    pub(super) worst: Option<Worst>,
    /// What mixing takes.
    mixing: MixingBytes,
    device: Option<DeviceBytes>,
}

/// What a [`Prepared`] is made from.
pub(super) struct Wanted<'a> {
    pub(super) program: &'a SampleProgram,
    pub(super) plan: &'a PlanOptions,
    pub(super) sample_weights: Option<&'a [f64]>,
    pub(super) limits: Limits,
    pub(super) on_error: OnError,
    /// Whether all headers are read for the memory that they need.
    pub(super) forecasts: bool,
    /// How a device gets at what workers hand over, where there is one.
    pub(super) upload: Option<Upload>,
}

impl Prepared {
    /// Reads names, and headers where something goes by them.
    ///
    /// # Errors
    /// A data set that cannot be read, options that do not fit it.
    pub(super) fn new(source: Source, wanted: &Wanted<'_>) -> Result<Self> {
        let (index, scan) = source.open()?;
        let (program, limits) = (wanted.program, wanted.limits);
        wanted.plan.check(index.len())?;
        match (&program.recipe().mixing, program.labelled_by()) {
            // Labels that an operation draws fit: the recipe was checked.
            (Some(mixing), None) => mixed::check_labels(mixing, &index)?,
            (_, Some(op)) => order::check_labelled_by(op, &wanted.plan.sampler)?,
            (None, None) => {}
        }
        if wanted.plan.multi_scale.is_some() && !program.takes_sizes() {
            return Err(Error::config(
                "multi_scale sets the size of rows, and the last operation of this recipe that \
                 sets a size is no random_resized_crop, no bounded_resized_crop and no resize to \
                 [height, width]: end with one of them, or leave multi_scale out",
            ));
        }
        let (table, mut sizes) = order::prepare(
            &index,
            &wanted.plan.sampler,
            wanted.sample_weights,
            &limits,
            program.orientation,
        )?;
        let plan = Plan::with_table(index.len(), wanted.plan.clone(), table)?;
        let mut worst = None;
        if wanted.forecasts {
            let rows = wanted
                .plan
                .multi_scale
                .as_ref()
                .map_or(Vec::new(), |m| m.sizes.clone());
            let (most, all) = Worst::of(&index, program, &limits, &rows)?;
            worst = Some(most);
            sizes = Some(all);
        }
        match program.extent {
            RowExtent::Fixed { .. } => sizes = None,
            RowExtent::Own if sizes.is_none() => {
                sizes = Some(survey::read_sizes(&index, &limits, program.orientation)?);
            }
            RowExtent::Own => {}
        }
        let for_job = sizes.as_ref().map(Sizes::try_clone).transpose()?;
        let tries = wanted.on_error.tries(&plan);
        let mixing = MixingBytes::of(program, plan.scales().map(|(size, _)| size));
        let packing = Packing::new(program, plan.clone(), tries, limits, sizes)?;
        let device = wanted.upload.map(|upload| {
            let work = |outputs| DeviceWork {
                program,
                plan: &plan,
                upload,
                outputs,
            };
            let slot = packing.slot_bytes();
            let once = work(0).device_bytes(slot);
            DeviceBytes {
                once,
                each: work(1).device_bytes(slot) - once,
                least: u64::from(on_device::outputs(0)),
            }
        });
        Ok(Self {
            index,
            scan,
            plan,
            packing,
            sizes: for_job,
            tries,
            worst,
            mixing,
            device,
        })
    }

    /// What a forecast of its memory is made from; without headers as if no sample
    /// took any.
    pub(super) fn ingredients(&self, workers: u32) -> Ingredients {
        let sizes = self.sizes.as_ref().map_or(0, |s| s.len() * 8);
        let table = self.plan.table().map_or(0, SamplerTable::bytes);
        let worst = self.worst.as_ref();
        Ingredients {
            workers,
            batch: self.plan.most_rows(),
            slot_bytes: self.packing.slot_bytes(),
            row_bytes: self.packing.row_bytes(),
            scratch_bytes: worst.map_or(0, Worst::scratch_bytes),
            input_bytes: worst.map_or(0, |w| w.input_bytes),
            table_bytes: self.index.bytes() + sizes + table,
            mixing: self.mixing,
            device: self.device,
        }
    }
}
