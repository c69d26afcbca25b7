//! What a run of `bench` measures on its device.

use featherload::device::{DeviceMemory, DeviceTimes, JpegTimes};
use featherload::{Epoch, Result};
use serde::Serialize;

use crate::output;
use crate::output::fields::field;

/// The device's memory, read after each batch.
#[derive(Default)]
pub struct DeviceWatch {
    /// Least and most memory used since the first batch.
    used_range: Option<(u64, u64)>,
}

/// Field names are part of the `--json` format.
#[derive(Serialize)]
pub struct DeviceUse {
    #[serde(flatten)]
    memory: DeviceMemory,
    /// Most memory used since the context was made, read at the start and after each batch.
    peak_bytes: u64,
    /// Least and most memory used since the first batch. They are equal if memory is flat.
    steady_min_bytes: u64,
    steady_max_bytes: u64,
}

impl DeviceWatch {
    /// Reads the memory, if there is a device.
    pub fn read(&mut self, epoch: &Epoch<'_>) -> Result<()> {
        if let Some(memory) = epoch.device_memory()? {
            let now = memory.used_bytes;
            let (least, most) = self.used_range.unwrap_or((now, now));
            self.used_range = Some((least.min(now), most.max(now)));
        }
        Ok(())
    }

    pub fn finish(self, memory: DeviceMemory) -> DeviceUse {
        let now = memory.used_bytes;
        let (least, most) = self.used_range.unwrap_or((now, now));
        DeviceUse {
            peak_bytes: memory.at_start_bytes.max(most),
            steady_min_bytes: least,
            steady_max_bytes: most,
            memory,
        }
    }
}

impl DeviceUse {
    pub fn peak_mib(&self) -> f64 {
        output::mib(self.peak_bytes)
    }

    pub fn print(&self) -> Result<()> {
        let m = &self.memory;
        let steady = if self.steady_min_bytes == self.steady_max_bytes {
            "the same after every batch".to_owned()
        } else {
            format!(
                "{:.1} to {:.1} after batches",
                output::mib(self.steady_min_bytes),
                output::mib(self.steady_max_bytes)
            )
        };
        let text = format!(
            "{:.1} MiB at most since the context was created: {:.1} planned, {:.1} at the start, \
             {steady}; {:.1} were in use before",
            self.peak_mib(),
            output::mib(m.planned_bytes),
            output::mib(m.at_start_bytes),
            output::mib(m.at_context_bytes),
        );
        field("GPU memory", &text)?;
        let pinned = output::mib(m.pinned_bytes);
        field(
            "upload",
            &format!("{}; {pinned:.1} MiB of the host are pinned", m.upload),
        )
    }
}

/// Time shares of the consumer and of the device, in percent of `seconds`.
pub fn print_times(times: &DeviceTimes, wait_s: f64, consumer_s: f64, seconds: f64) -> Result<()> {
    let share = |s: f64| 100.0 * s / seconds.max(1e-9);
    let batches = times.batches.max(1) as f64;
    let text = format!(
        "{:.2} ms a batch to copy, {:.2} for the kernel: {:.1}% and {:.1}% of the time; the \
         consumer waited {:.1}% for workers and kept {:.1}% for its own work",
        1e3 * times.copy_s / batches,
        1e3 * times.kernel_s / batches,
        share(times.copy_s),
        share(times.kernel_s),
        share(wait_s),
        share(consumer_s)
    );
    field("GPU time", &text)
}

/// Prints how many of `samples` the GPU decoded.
pub fn print_jpegs(times: &JpegTimes, samples: u64, seconds: f64) -> Result<()> {
    let share = |part: f64, of: f64| 100.0 * (part / of.max(1e-9)).min(1.0);
    let again = match times.decoded_again {
        0 => String::new(),
        n => format!(
            "; it flagged {}, which the CPU decoded again",
            output::grouped(n)
        ),
    };
    let text = format!(
        "{} of {} samples ({:.0}%), busy {:.0}% of the time{again}",
        output::grouped(times.pictures),
        output::grouped(samples),
        share(times.pictures as f64, samples as f64),
        share(times.busy_s, seconds)
    );
    field("decoded on GPU", &text)
}
