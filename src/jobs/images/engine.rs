//! What makes the batches of a loader: whoever fills rows, and a device if there is one.
//!
//! In the consumer.

use std::time::Duration;

use crate::device::{DeviceMemory, DeviceTimes};
use crate::error::{Error, Result};
use crate::jobs::images::batch::Batch;
use crate::jobs::images::device_pool::DevicePool;
use crate::jobs::images::replay::Replay;
use crate::jobs::images::run::Run;
use crate::pool::engine::Engine;
use crate::pool::report::PoolReport;

#[derive(Debug)]
pub(crate) enum ImageEngine {
    Host(Engine),
    Device(Box<DevicePool>),
}

impl ImageEngine {
    /// The batch at which the run stands; none when it is not there within `limit`.
    pub(crate) fn next_within(&mut self, run: &mut Run, limit: Duration) -> Result<Option<Batch>> {
        match self {
            Self::Host(engine) => {
                let filled = engine.next_within(&|n| run.coming(n), limit)?;
                filled.map(|filled| run.finished(filled)).transpose()
            }
            Self::Device(device) => device.next_within(run, limit),
        }
    }

    /// Batches that a caller may hold and the next one still comes; none where they lie in
    /// memory of their own.
    pub(crate) fn depth(&self) -> Option<u32> {
        match self {
            Self::Host(Engine::Workers(pool)) => Some(pool.depth()),
            Self::Host(Engine::InProcess(_)) => None,
            Self::Device(device) => Some(device.on.outputs()),
        }
    }

    /// Batches that may be under way at a time, the one that is asked for among them.
    pub(crate) fn under_way(&self) -> usize {
        match self {
            Self::Host(engine) => engine.depth().unwrap_or(1) as usize,
            Self::Device(device) => (device.on.outputs() + device.pool.depth()) as usize,
        }
    }

    /// Nothing that is under way will be asked for.
    pub(crate) fn cancel(&mut self) {
        match self {
            Self::Host(engine) => engine.cancel(),
            Self::Device(device) => device.cancel(),
        }
    }

    pub(crate) fn report(&self) -> Result<PoolReport> {
        match self {
            Self::Host(engine) => engine.report(),
            Self::Device(device) => {
                let mut report = device.pool.report()?;
                device.on.add_again_to(&mut report);
                Ok(report)
            }
        }
    }

    /// Where the device's time went; none without a device.
    pub(crate) fn device_times(&self) -> Option<DeviceTimes> {
        match self {
            Self::Host(_) => None,
            Self::Device(device) => Some(device.on.times()),
        }
    }

    pub(crate) fn device_memory(&self) -> Result<Option<DeviceMemory>> {
        match self {
            Self::Host(_) => Ok(None),
            Self::Device(device) => device.on.memory().map(Some),
        }
    }

    pub(crate) fn replay(&mut self, run: &mut Run, rounds: u32) -> Result<Replay> {
        match self {
            Self::Device(device) => device.replay(run, rounds),
            Self::Host(_) => Err(Error::config(
                "a replay needs a device: choose one with `device`",
            )),
        }
    }
}
