//! Descriptions of jobs: what the consumer sends and the coordinator builds from.
//!
//! Plain data, used in every process; compiled without the decoders too.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use crate::index::Index;
use crate::packing::Sizes;
use crate::picture::Limits;
use crate::plan::{PlanOptions, SamplerTable};
use crate::recipe::SampleProgram;

/// One row = one sample.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ImageSpec {
    pub(crate) program: SampleProgram,
    /// The rest of the plan is the index's and the sampler's table.
    pub(crate) plan: PlanOptions,
    pub(crate) limits: Limits,
    /// Samples that may stand in for the one of a row.
    pub(crate) tries: u32,
}

/// What the coordinator needs to build a job, beside its descriptors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum JobSpec {
    Images(ImageSpec),
}

impl JobSpec {
    /// Samples that are tried in the place of one that gives no pixels: 0 under
    /// stop and skip.
    pub(crate) fn tries(&self) -> u32 {
        match self {
            Self::Images(spec) => spec.tries,
        }
    }
}

/// A job description with the shared memory that it reads.
#[derive(Debug)]
pub(crate) enum JobInput<'a> {
    /// The sizes are there when rows have sizes of their own, the table when the
    /// sampler needs one.
    Images(
        ImageSpec,
        &'a Index,
        Option<&'a Sizes>,
        Option<&'a SamplerTable>,
    ),
}

impl JobInput<'_> {
    pub(crate) fn spec(&self) -> JobSpec {
        match self {
            Self::Images(spec, ..) => JobSpec::Images(spec.clone()),
        }
    }

    /// Descriptors to send along, in the order that `JobSpec::build` expects.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Images(_, index, sizes, table) => {
                let sizes = sizes.iter().map(|sizes| sizes.as_fd());
                let table = table.iter().map(|table| table.as_fd());
                let index = std::iter::once(index.as_fd());
                index.chain(sizes).chain(table).collect()
            }
        }
    }
}
