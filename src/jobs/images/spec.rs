//! What a worker needs to fill rows of images.
//!
//! Plain data, used in every process. Also compiled without the decoders.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::data::objects::ObjectTable;
use crate::data::sample_sizes::SampleSizes;
use crate::device::jpeg_part::PartLimits;
use crate::error::Result;
use crate::jobs::handed_items::HandedShape;
use crate::jobs::object_rule::ObjectRule;
use crate::jobs::picture_window::{PictureWindow, WindowShape};
use crate::jobs::raster_rule::NamedRaster;
use crate::order::{EpochMark, OrderOptions, Sampler, SamplerTable};
use crate::picture::PictureLimits;
use crate::pool::job::JobRequest;
use crate::pool::ring::ticket::BatchKey;
use crate::recipe::{RowExtent, SampleProgram};

/// Name of the job.
pub(crate) const NAME: &str = "images";

/// The key of a batch of images is its position.
impl From<EpochMark> for BatchKey {
    fn from(at: EpochMark) -> Self {
        Self([at.epoch, at.samples])
    }
}

impl From<BatchKey> for EpochMark {
    fn from(BatchKey([epoch, samples]): BatchKey) -> Self {
        Self { epoch, samples }
    }
}

/// One row = one sample.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ImageSpec {
    pub(crate) program: SampleProgram,
    /// The options of the order. Index and sampler table come separately.
    pub(crate) plan: OrderOptions,
    pub(crate) limits: PictureLimits,
    /// Substitutes of a row's sample.
    pub(crate) tries: u32,
    /// Limits of JPEGs that a device decodes. None: workers decode all.
    pub(crate) jpegs: Option<PartLimits>,
    /// The memory in which the consumer hands over bytes of samples. None: the index says where they
    /// are.
    pub(crate) handed: Option<HandedShape>,
    /// The memory that keeps the pictures of joined samples. None: nothing keeps them.
    pub(crate) window: Option<WindowShape>,
    /// The rasters of images, masks among them. The index of each comes separately.
    pub(crate) rasters: Vec<NamedRaster>,
    /// The objects of images, whose table comes separately. None: images have no objects.
    pub(crate) objects: Option<ObjectRule>,
    /// Whether shards may be deleted during the run. Then no shard is kept open.
    pub(crate) evicts_shards: bool,
}

/// The shared memory of a job.
#[derive(Debug, Clone)]
pub(crate) struct ImageJobData<'a> {
    pub(crate) index: &'a Index,
    /// The files of each raster: one for each sample.
    pub(crate) rasters: Vec<&'a Index>,
    /// If images have objects.
    pub(crate) objects: Option<&'a ObjectTable>,
    /// If rows or batches follow from them: [`needs_sizes`].
    pub(crate) sizes: Option<&'a SampleSizes>,
    /// If the sampler needs one.
    pub(crate) table: Option<&'a SamplerTable>,
    /// If the consumer hands over the bytes of samples.
    pub(crate) handed: Option<BorrowedFd<'a>>,
    /// If pictures of joined samples are kept.
    pub(crate) window: Option<&'a PictureWindow>,
}

/// Whether workers need the sizes of all images: for the sizes of rows, or because the batch of an
/// image follows from its size.
pub(crate) fn needs_sizes(program: &SampleProgram, sampler: &Sampler) -> bool {
    if !program.has_pixels {
        return false;
    }
    match program.extent {
        RowExtent::Own | RowExtent::Patches(_) => true,
        RowExtent::Fixed { .. } => {
            matches!(sampler, Sampler::Buckets(_)) && program.sets_size_by_cover()
        }
    }
}

impl ImageSpec {
    /// Orders the job.
    pub(crate) fn order<'a>(&self, data: &ImageJobData<'a>) -> Result<JobRequest<'a>> {
        let rasters = data.rasters.iter().copied().flat_map(Index::descriptors);
        let objects = data.objects.map(|objects| objects.as_fd());
        let sizes = data.sizes.map(|sizes| sizes.as_fd());
        let table = data.table.map(|table| table.as_fd());
        let descriptors = (data.index.descriptors().chain(rasters))
            .chain(objects)
            .chain(sizes)
            .chain(table)
            .chain(data.handed)
            .chain(data.window.map(|window| window.as_fd()));
        let order = JobRequest::new(NAME, self, self.tries, descriptors.collect())?;
        let order = order.reading(data.index);
        let rasters = data.rasters.iter().copied();
        Ok(rasters.fold(order, |order, files| order.reading(files)))
    }
}
