//! The options that every run over the images of a scene has.
//!
//! In the consumer. Never in here: what is done with them; options of one kind of run.

use std::path::PathBuf;
use std::time::Duration;

use crate::data::scenes::Split;
use crate::device::Device;
use crate::picture::{Background, Limits};
use crate::pool::crew::Crew;

/// Which images, how they are decoded and held, and by whom; where batches are made.
#[derive(Debug)]
pub struct RunOptions {
    pub(in crate::loader) split: Split,
    pub(in crate::loader) downscale: u32,
    pub(in crate::loader) masks: bool,
    /// None = those that the scene's file names; true = also those that are found by name.
    pub(in crate::loader) depths: Option<bool>,
    pub(in crate::loader) alpha: bool,
    pub(in crate::loader) background: Background,
    pub(in crate::loader) seed: u64,
    pub(in crate::loader) first_step: u64,
    pub(in crate::loader) crew: Crew,
    /// Slots of the ring, or batches on the device.
    pub(in crate::loader) depth: Option<u32>,
    pub(in crate::loader) memory_limit: Option<u64>,
    pub(in crate::loader) store_folder: Option<PathBuf>,
    pub(in crate::loader) shares: bool,
    pub(in crate::loader) limits: Limits,
    pub(in crate::loader) device: Device,
    pub(in crate::loader) gpu_memory_limit: Option<u64>,
}

impl RunOptions {
    /// Most time that a step may take, when nobody says another.
    pub(in crate::loader) const DEFAULT_ROW_LIMIT: Duration = Duration::from_secs(600);
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
