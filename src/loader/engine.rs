//! What makes the batches of a loader: workers, workers and a device, or this process.
//!
//! In the consumer.

use super::device_pool::DevicePool;
#[cfg(feature = "codecs")]
use super::in_process::InProcess;
use super::pool::Pool;
use super::replay::Replay;
use super::report::LoaderReport;
use super::run::Run;
use crate::batch::Batch;
#[cfg(feature = "codecs")]
use crate::batch::Storage;
use crate::device::DeviceMemory;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) enum Engine {
    Pool(Box<Pool>),
    Device(Box<DevicePool>),
    #[cfg(feature = "codecs")]
    InProcess(Box<InProcess>),
}

impl Engine {
    /// The batch at which the run stands.
    pub(super) fn next(&mut self, run: &mut Run) -> Result<Batch> {
        match self {
            Self::Pool(pool) => {
                let (place, held) = pool.next(&|n| run.coming(n))?;
                run.of_slot(place, held)
            }
            Self::Device(device) => device.next(run),
            #[cfg(feature = "codecs")]
            Self::InProcess(p) => {
                let place = run.place();
                let (buffer, bad) = p.fill(&place);
                run.finished(place, Storage::Own(buffer), bad)
            }
        }
    }

    /// Nothing that is under way will be asked for.
    pub(super) fn cancel(&mut self) {
        match self {
            Self::Pool(pool) => pool.cancel(),
            Self::Device(device) => device.cancel(),
            #[cfg(feature = "codecs")]
            Self::InProcess(_) => {}
        }
    }

    pub(super) fn report(&self) -> Result<LoaderReport> {
        match self {
            Self::Pool(pool) => pool.report(),
            Self::Device(device) => device.report(),
            #[cfg(feature = "codecs")]
            Self::InProcess(p) => Ok(p.report()),
        }
    }

    pub(super) fn device_memory(&self) -> Result<Option<DeviceMemory>> {
        match self {
            Self::Device(device) => device.memory().map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn replay(&mut self, run: &mut Run, rounds: u32) -> Result<Replay> {
        match self {
            Self::Device(device) => device.replay(run, rounds),
            _ => Err(Error::config(
                "a replay puts filled slots on a device again: choose one with device",
            )),
        }
    }
}
