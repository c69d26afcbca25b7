//! What a loader would do and take, without starting it.
//!
//! In the consumer.

use serde::Serialize;

use super::builder::{LoaderBuilder, default_workers};
use super::prepared::{Prepared, Wanted};
use crate::error::{Error, Result};
use crate::forecast::{DrawnSteps, LargestSample, MemoryForecast, MemoryLimit, Outline};
use crate::plan::{PositionRandom, RowStatus};
use crate::recipe::{NumericProfile, SampleProgram};

/// What a run will do to a sample, and the memory that it will take.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Forecast {
    pub outline: Outline,
    pub memory: MemoryForecast,
    /// The lowest limit that there is; the run is refused, or given fewer slots,
    /// when it does not keep to it.
    pub limit: Option<MemoryLimit>,
    /// The sample that takes the most.
    pub largest: Option<LargestSample>,
    pub samples: u64,
    pub batches: u64,
    pub profile: NumericProfile,
    /// The rows that were asked for, by their position in the epoch.
    pub drawn: Vec<DrawnRow>,
}

/// What is drawn for one row.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DrawnRow {
    pub epoch: u64,
    /// Place on this rank.
    pub row: u64,
    pub id: u64,
    pub path: std::path::PathBuf,
    #[serde(flatten)]
    pub steps: DrawnSteps,
}

impl LoaderBuilder {
    /// What [`LoaderBuilder::build`] would start. Reads the header of every sample,
    /// and starts nothing. With `rows`, what is drawn for the first that many rows.
    ///
    /// # Errors
    /// What `build` would refuse, a memory limit included that nothing fits.
    pub fn forecast(self, rows: u64) -> Result<Forecast> {
        let program = SampleProgram::compile(&self.recipe)?;
        let workers = self.workers.unwrap_or_else(default_workers);
        let workers = u32::try_from(workers)
            .map_err(|_| Error::config(format!("{workers} workers are too many")))?;
        let prepared = Prepared::new(
            self.source,
            &Wanted {
                program: &program,
                plan: &self.plan,
                sample_weights: self.sample_weights.as_deref(),
                limits: self.limits,
                on_error: self.on_error,
                forecasts: true,
            },
        )?;
        let ingredients = prepared.ingredients(workers);
        let limit = MemoryLimit::lowest(self.memory_limit);
        let memory = match limit {
            Some(limit) => ingredients.within(limit, self.depth)?,
            None => ingredients.with_depth(self.depth.most())?,
        };
        let index = &prepared.index;
        let largest = prepared.worst.as_ref().and_then(|w| w.sample(index));
        // Without a readable header something has to be said still.
        let picture = largest
            .as_ref()
            .map_or((1080, 1920), |l| (l.height, l.width));
        let epoch = self.start.0;
        let per_batch = u64::from(self.plan.batch);
        let mut drawn = Vec::new();
        for row in 0..rows.min(prepared.plan.batches() * per_batch) {
            let planned = prepared
                .plan
                .row(epoch, row / per_batch, (row % per_batch) as u32);
            if planned.status == RowStatus::Padding {
                break;
            }
            let random = PositionRandom::new(self.plan.seed, epoch, planned.position);
            let size = upright(index, planned.id, &self.limits)?;
            let steps = DrawnSteps::of(&program, size, planned.size, &random).map_err(|fault| {
                Error::Sample {
                    id: planned.id,
                    path: index.path(planned.id),
                    fault,
                }
            })?;
            drawn.push(DrawnRow {
                epoch,
                row,
                id: planned.id,
                path: index.path(planned.id),
                steps,
            });
        }
        Ok(Forecast {
            outline: Outline::of(&self.recipe, picture)?,
            memory,
            limit,
            largest,
            samples: prepared.index.len(),
            batches: prepared.plan.batches(),
            profile: NumericProfile::of(&program),
            drawn,
        })
    }
}

/// The upright height and width of a sample, from its header.
fn upright(
    index: &crate::index::Index,
    id: u64,
    limits: &crate::picture::Limits,
) -> Result<(u32, u32)> {
    let header = crate::survey::header_of(index, id, limits).map_err(|fault| Error::Sample {
        id,
        path: index.path(id),
        fault,
    })?;
    let (width, height) = header.upright();
    Ok((height, width))
}
