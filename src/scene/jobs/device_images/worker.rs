//! Decodes an image into the image store, or writes the coded image to the row.
//!
//! Runs in workers, and in the consumer with zero workers.

use std::ops::Range;
use std::os::fd::{OwnedFd, RawFd};

use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::sample_input::InputMode;
use crate::jobs::stages;
use crate::pool::job::{Job, JobKind, JobParts};
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::StageMeter;
use crate::scene::jobs::device_images::spec::{DeviceImagesSpec, NAME, parts, write_head};
use crate::scene::jobs::shared::image_supply::ImageSupply;
use crate::scene::jobs::shared::spec::DESCRIPTORS;
use crate::sys::cpu::CpuLevel;

struct DeviceImagesJob {
    supply: ImageSupply,
    spec: DeviceImagesSpec,
}

pub(crate) const KIND: JobKind = JobKind { name: NAME, build };

fn build(mut parts: JobParts) -> Result<Box<dyn Job>> {
    // An invalid `FEATHERLOAD_CPU` ends the run before any image is decoded.
    CpuLevel::detect()?;
    let spec: DeviceImagesSpec = parts.spec()?;
    let fds = std::mem::take(&mut parts.descriptors);
    let Ok(store) = <[OwnedFd; DESCRIPTORS]>::try_from(fds) else {
        return Err(Error::protocol(
            "the job of device images got other descriptors than those of an image store",
        ));
    };
    Ok(Box::new(DeviceImagesJob {
        supply: ImageSupply::open(&spec.store, InputMode::of(parts.runs_in), store)?,
        spec,
    }))
}

impl Job for DeviceImagesJob {
    fn row_range(&mut self, _ticket: &Ticket, _row: u32) -> Range<usize> {
        0..self.spec.row_bytes() as usize
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        _row: u32,
        _attempt: u32,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let (image, to_store) = DeviceImagesSpec::image(ticket.key);
        let image = u32::try_from(image).map_err(|_| {
            let text = "its ticket names an image that does not exist";
            SampleFault::new(FaultKind::Unknown, text)
        })?;
        let (head, rest) = parts(out).ok_or_else(|| {
            let text = "its row is too short";
            SampleFault::new(FaultKind::Unknown, text)
        })?;
        let jpegs = self.spec.jpegs.filter(|_| !to_store);
        let coded = jpegs.and_then(|jpegs| {
            let limits = &jpegs.limits;
            self.supply.write_coded(image, limits, rest, meter)
        });
        if let Some(bytes) = coded {
            write_head(head, bytes);
            meter.lap(stages::EMIT);
            return Ok(());
        }
        write_head(head, 0);
        let done = self.supply.ensure_image(image, meter);
        meter.lap(stages::DECODE);
        done
    }

    fn memory_limit(&self) -> u64 {
        self.supply.memory_limit()
    }

    fn enter_worker(&mut self, _lane: u32) -> Result<()> {
        self.supply.enter_worker()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.supply.descriptors()
    }

    fn describe(&self, ticket: &Ticket, _row: u32, _attempt: u32) -> String {
        format!(
            "image {} of the scene",
            DeviceImagesSpec::image(ticket.key).0
        )
    }
}
