//! Options that all kinds of runs over a scene have.
//!
//! Runs in the consumer. Not here: what the options do; options of one kind.

use std::path::PathBuf;
use std::time::Duration;

use crate::device::Device;
use crate::picture::{BackgroundColor, PictureLimits};
use crate::pool::worker_options::WorkerOptions;
use crate::scene::data::SceneSplit;

/// Options about images, decoding, memory, processes and the device.
#[derive(Debug)]
pub struct RunOptions {
    pub(crate) split: SceneSplit,
    pub(crate) downscale: u32,
    pub(crate) masks: bool,
    /// `None`: depths that the scene's file names. `Some(true)`: also depths found by name.
    /// `Some(false)`: no depths.
    pub(crate) depths: Option<bool>,
    pub(crate) alpha: bool,
    pub(crate) background: BackgroundColor,
    pub(crate) seed: u64,
    pub(crate) first_step: u64,
    pub(crate) worker_options: WorkerOptions,
    /// Slots of the ring, or batches on the device.
    pub(crate) depth: Option<u32>,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) store_folder: Option<PathBuf>,
    pub(crate) shares: bool,
    pub(crate) limits: PictureLimits,
    pub(crate) device: Device,
    pub(crate) gpu_memory_limit: Option<u64>,
}

impl RunOptions {
    /// Default time limit of a step.
    pub(crate) const DEFAULT_ROW_LIMIT: Duration = Duration::from_secs(600);
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            split: SceneSplit::Train,
            downscale: 1,
            masks: true,
            depths: None,
            alpha: false,
            background: BackgroundColor::default(),
            seed: 0,
            first_step: 0,
            worker_options: WorkerOptions {
                row_limit: Self::DEFAULT_ROW_LIMIT,
                ..WorkerOptions::default()
            },
            depth: None,
            memory_limit: None,
            store_folder: None,
            shares: true,
            limits: PictureLimits::default(),
            device: Device::Cpu,
            gpu_memory_limit: None,
        }
    }
}
