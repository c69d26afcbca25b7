//! Descriptions of jobs: what the consumer sends and the coordinator builds from.
//!
//! Plain data, used in every process; compiled without the decoders too.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use crate::index::Index;
use crate::packing::Sizes;
use crate::packing::encoding::{CacheResize, Encoding};
use crate::packing::rooms::Rooms;
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

/// One row = one sample's payload in a cache.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct EncodeSpec {
    pub(crate) encode: Encoding,
    pub(crate) resize: Option<CacheResize>,
    /// The seed of the order; none = the index's.
    pub(crate) shuffle: Option<u64>,
    pub(crate) limits: Limits,
}

/// What the coordinator needs to build a job, beside its descriptors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum JobSpec {
    Images(Box<ImageSpec>),
    Encode(EncodeSpec),
}

impl JobSpec {
    /// Samples that are tried in the place of one that gives no pixels: 0 under
    /// stop and skip, and in a cache, where nothing stands in for anything.
    pub(crate) fn tries(&self) -> u32 {
        match self {
            Self::Images(spec) => spec.tries,
            Self::Encode(_) => 0,
        }
    }
}

/// A job description with the shared memory that it reads.
#[derive(Debug)]
pub(crate) enum JobInput<'a> {
    /// The sizes are there when rows have sizes of their own, the table when the
    /// sampler needs one.
    Images(
        Box<ImageSpec>,
        &'a Index,
        Option<&'a Sizes>,
        Option<&'a SamplerTable>,
    ),
    Encode(EncodeSpec, &'a Index, &'a Sizes, &'a Rooms),
}

impl JobInput<'_> {
    pub(crate) fn spec(&self) -> JobSpec {
        match self {
            Self::Images(spec, ..) => JobSpec::Images(spec.clone()),
            Self::Encode(spec, ..) => JobSpec::Encode(*spec),
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
            Self::Encode(_, index, sizes, rooms) => {
                vec![index.as_fd(), sizes.as_fd(), rooms.as_fd()]
            }
        }
    }
}
