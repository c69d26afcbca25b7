//! The options that every run over the images of a scene has.
//!
//! In the consumer. Never in here: what is done with them; options of one kind of run.

use std::path::PathBuf;
use std::time::Duration;

use crate::device::Device;
use crate::picture::{Background, Limits};
use crate::pool::crew::Crew;
use crate::scene::data::Split;

/// Which images, how they are decoded and held, and by whom; where batches are made.
#[derive(Debug)]
pub struct RunOptions {
    pub(crate) split: Split,
    pub(crate) downscale: u32,
    pub(crate) masks: bool,
    /// None = those that the scene's file names; true = also those that are found by name.
    pub(crate) depths: Option<bool>,
    pub(crate) alpha: bool,
    pub(crate) background: Background,
    pub(crate) seed: u64,
    pub(crate) first_step: u64,
    pub(crate) crew: Crew,
    /// Slots of the ring, or batches on the device.
    pub(crate) depth: Option<u32>,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) store_folder: Option<PathBuf>,
    pub(crate) shares: bool,
    pub(crate) limits: Limits,
    pub(crate) device: Device,
    pub(crate) gpu_memory_limit: Option<u64>,
}

impl RunOptions {
    /// Most time that a step may take, when nobody says another.
    pub(crate) const DEFAULT_ROW_LIMIT: Duration = Duration::from_secs(600);
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            split: Split::Train,
            downscale: 1,
            masks: true,
            depths: None,
            alpha: false,
            background: Background::default(),
            seed: 0,
            first_step: 0,
            crew: Crew {
                row_limit: Self::DEFAULT_ROW_LIMIT,
                ..Crew::default()
            },
            depth: None,
            memory_limit: None,
            store_folder: None,
            shares: true,
            limits: Limits::default(),
            device: Device::Cpu,
            gpu_memory_limit: None,
        }
    }
}
