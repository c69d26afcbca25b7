//! Stands in for `cuda/` in a build without the feature `cuda`: no device can be
//! opened, so nothing else of it can ever be called.

use std::sync::Arc;
use std::time::Duration;

use crate::device::choice::Upload;
use crate::device::coded_rows::{CodedBatch, Made};
use crate::device::figures::{DeviceTimes, JpegTimes};
use crate::device::found::DeviceReport;
use crate::device::jpeg_part::PartLimits;
use crate::device::launch::{KernelEmission, KernelRow};
use crate::device::ray_launch::{KernelRays, RayScene};
use crate::device::scene_launch::PixelPlace;
use crate::device::shape::{CropShape, JpegShape, RowPlaces};
use crate::device::view_launch::ViewParts;
use crate::error::{Error, Result};
use crate::picture::jpeg::gpu_rows::CodedPicture;
use crate::pool::ring::Ring;
use crate::pool::ring::slots::HeldSlot;
use crate::sys::shared::SharedMemory;

const MISSING: &str = "this build of featherload has no CUDA stage: build it with the feature `cuda`, which is one of the default ones and needs no CUDA to build";

pub type RawStream = usize;

pub(super) fn probe() -> DeviceReport {
    DeviceReport {
        missing: Some(MISSING.into()),
        ..DeviceReport::default()
    }
}

#[derive(Debug)]
pub(crate) enum Context {}

impl Context {
    pub(crate) fn open(_ordinal: u32) -> Result<Arc<Self>> {
        Err(Error::Device {
            what: MISSING.into(),
        })
    }

    pub(crate) fn free_bytes_at_start(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn used_bytes_at_start(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn free_bytes(&self) -> Result<u64> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum CropStage {}

impl CropStage {
    pub(crate) fn new(context: &Arc<Context>, _: Arc<Ring>, _: CropShape) -> Result<Self> {
        match **context {}
    }

    pub(crate) fn submit(
        &mut self,
        _: impl Into<Arc<HeldSlot>>,
        _: &[KernelRow],
        _: RowPlaces,
        _: &KernelEmission,
        _: Upload,
    ) -> Result<DeviceRows> {
        match *self {}
    }

    pub(crate) fn reserve(&self, _: usize, _: &KernelEmission) -> Result<Target> {
        match *self {}
    }

    pub(crate) fn begin(
        &mut self,
        _: impl Into<Arc<HeldSlot>>,
        _: &[KernelRow],
        _: RowPlaces,
        _: &KernelEmission,
        _: Upload,
        _: Target,
    ) -> Result<()> {
        match *self {}
    }

    pub(crate) fn finish(&mut self) -> Result<DeviceRows> {
        match *self {}
    }
}

/// As in `cuda/crop_stage.rs`: none is ever made.
pub(crate) type Target = Arc<Context>;

#[derive(Debug)]
pub(crate) enum JpegThread {}

impl JpegThread {
    pub(crate) fn start(_ordinal: u32, _: Duration) -> Result<Self> {
        Err(Error::Device {
            what: MISSING.into(),
        })
    }

    pub(crate) fn context(&mut self) -> Result<Arc<Context>> {
        match *self {}
    }

    pub(crate) fn times(&self) -> JpegTimes {
        match *self {}
    }

    pub(crate) fn opened(&mut self, _: JpegShape) -> Result<()> {
        match *self {}
    }

    pub(crate) fn open(
        &mut self,
        _: Arc<dyn CodedBatch>,
        _: Target,
        _: (RowPlaces, KernelEmission, usize),
    ) -> Result<()> {
        match *self {}
    }

    pub(crate) fn fail(&mut self, _: Error) -> Error {
        match *self {}
    }

    pub(crate) fn forget(&mut self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn next_done(&mut self, _: Duration) -> Result<Option<Made>> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum RowsStage {}

impl RowsStage {
    pub(crate) fn new(context: &Arc<Context>, _: Arc<Ring>, _: usize, _: usize) -> Result<Self> {
        match **context {}
    }

    pub(crate) fn submit_rows(
        &mut self,
        _: impl Into<Arc<HeldSlot>>,
        _: usize,
    ) -> Result<DeviceRows> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum SceneStage {}

impl SceneStage {
    pub(crate) fn put_pixels(
        &mut self,
        _: u64,
        _: usize,
        _: impl FnMut(usize, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        match *self {}
    }

    pub(crate) fn takes_coded(&self) -> bool {
        match *self {}
    }

    pub(crate) fn add_coded(
        &mut self,
        _: &CodedPicture,
        _: impl FnOnce(&mut [u8]) -> bool,
        _: u64,
    ) -> Result<bool> {
        match *self {}
    }

    pub(crate) fn submit_coded(&mut self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn decoded(&mut self) -> Result<Option<Vec<u32>>> {
        match *self {}
    }

    pub(crate) fn forget_coded(&mut self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn end_decoding(&mut self) {
        match *self {}
    }

    pub(crate) fn has_room(&self) -> bool {
        match *self {}
    }

    pub(crate) fn outputs(&self) -> usize {
        match *self {}
    }

    pub(crate) fn pinned_bytes(&self) -> usize {
        match *self {}
    }
}

/// As in `cuda/scene_stage.rs`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) outputs: usize,
    pub(crate) output_bytes: usize,
    pub(crate) pixel_bytes: u64,
    pub(crate) jpegs: Option<PartLimits>,
}

#[derive(Debug)]
pub(crate) enum RayStage {}

impl RayStage {
    pub(crate) fn new(
        context: &Arc<Context>,
        _: RayScene<'_>,
        _: Option<SharedMemory>,
        _: Room,
    ) -> Result<Self> {
        match **context {}
    }

    pub(crate) fn submit(&mut self, _: &KernelRays, _: usize) -> Result<DeviceRows> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum ViewStage {}

impl ViewStage {
    pub(crate) fn new(
        context: &Arc<Context>,
        _: &[PixelPlace],
        _: &[u8],
        _: Option<SharedMemory>,
        _: Room,
    ) -> Result<Self> {
        match **context {}
    }

    pub(crate) fn submit(&mut self, _: &ViewParts) -> Result<DeviceRows> {
        match *self {}
    }
}

macro_rules! with_a_scene {
    ($($stage:ident),*) => {$(
        impl $stage {
            pub(crate) fn stage(&self) -> &SceneStage {
                match *self {}
            }

            pub(crate) fn stage_mut(&mut self) -> &mut SceneStage {
                match *self {}
            }
        }
    )*};
}

with_a_scene!(RayStage, ViewStage);

macro_rules! of_both_stages {
    ($($stage:ident),*) => {$(
        impl $stage {
            pub(crate) fn reap(&mut self) -> Result<()> {
                match *self {}
            }

            pub(crate) fn wait_one(&mut self) -> Result<bool> {
                match *self {}
            }

            pub(crate) fn under_way(&self) -> usize {
                match *self {}
            }

            pub(crate) fn has_room(&self) -> bool {
                match *self {}
            }

            pub(crate) fn times(&self) -> DeviceTimes {
                match *self {}
            }

            pub(crate) fn pinned_bytes(&self) -> usize {
                match *self {}
            }
        }
    )*};
}

of_both_stages!(CropStage, RowsStage);

#[derive(Debug)]
pub enum DeviceRows {}

impl DeviceRows {
    pub fn address(&self) -> u64 {
        match *self {}
    }

    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match *self {}
    }

    pub fn ordinal(&self) -> u32 {
        match *self {}
    }

    pub fn stream(&self) -> RawStream {
        match *self {}
    }

    pub fn is_ready(&self) -> Result<bool> {
        match *self {}
    }

    pub fn wait(&self) -> Result<()> {
        match *self {}
    }

    /// # Safety
    /// As in `cuda/rows.rs`.
    pub unsafe fn make_wait(&self, _stream: RawStream) -> Result<()> {
        match *self {}
    }

    pub fn to_host(&self) -> Result<Vec<u8>> {
        match *self {}
    }
}
