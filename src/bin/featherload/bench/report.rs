//! What a run of `bench` found, and how it is printed.

use featherload::index::ScanReport;
use featherload::measure::TreeUsage;
use featherload::{LoaderReport, NumericProfile, Result};
use serde::Serialize;

use super::device::{DeviceUse, print_times};
use crate::output;

/// Everything that `bench` reports; the names are the contract of `--json`.
#[derive(Serialize)]
pub struct BenchReport {
    pub images_per_s: f64,
    /// From the start of the process to the first batch in hand.
    pub first_batch_ms: f64,
    /// From the start of the process to workers that run.
    pub startup_ms: f64,
    pub cpu_s_per_1k_images: f64,
    pub pss_total_mib: f64,
    pub gpu_mib: f64,
    /// Of the device's memory; times are in `loader.device`.
    pub device: Option<DeviceUse>,
    /// Rows that hold samples, repeated ones included.
    pub samples: u64,
    /// Rows whose own sample gave no pixels.
    pub failed: u64,
    /// Of these, masked.
    pub skipped: u64,
    /// Of these, filled by another sample.
    pub substituted: u64,
    /// Rows that fill a rank up, those included whose sample gave no pixels.
    pub repeated: u64,
    pub batches: u64,
    pub worker_deaths: u64,
    pub failures: Vec<Failure>,
    /// What reading the names left out; none for a saved index and a cache.
    pub scan: Option<ScanReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digests: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub profile: NumericProfile,
    pub bound_by: &'static str,
    pub seconds: f64,
    pub workers: usize,
    /// The ring's size, all of it allocated; what is mapped of it is
    /// `memory.pss_ring_bytes`.
    pub ring_mib: f64,
    pub loader: LoaderReport,
    pub memory: TreeUsage,
}

/// One sample that gave no pixels.
#[derive(Serialize)]
pub struct Failure {
    pub id: u64,
    pub path: String,
    pub kind: &'static str,
    pub reason: String,
    /// The sample whose pixels stand in its row; none = the row is masked.
    pub substitute: Option<u64>,
}

impl BenchReport {
    pub fn print(&self) -> Result<()> {
        let t = &self.loader.times;
        let busy = t.busy_s().max(1e-9);
        let share = |s: f64| 100.0 * s / busy;
        output::line(&format!(
            "{:>10.0} images/s   {} samples in {} batches, {:.2} s, {} workers",
            self.images_per_s, self.samples, self.batches, self.seconds, self.workers
        ))?;
        output::line(&format!(
            "{:>10.1} ms to the first batch ({:.1} ms to running workers)",
            self.first_batch_ms, self.startup_ms
        ))?;
        output::line(&format!(
            "{:>10.2} s of CPU for 1,000 images: open {:.0}%, decode {:.0}%, resample {:.0}%, emit {:.0}%; bound by {}",
            self.cpu_s_per_1k_images,
            share(t.open_s),
            share(t.decode_s),
            share(t.resample_s),
            share(t.emit_s),
            self.bound_by
        ))?;
        if self.loader.mix_s > 0.0 {
            output::line(&format!(
                "{:>10.2} ms a batch to mix rows and labels",
                self.loader.mix_s * 1e3 / self.batches.max(1) as f64
            ))?;
        }
        let ring = match self.workers {
            0 => String::new(),
            _ => format!(
                ", {:.1} MiB of it mapped of the ring; the ring has {:.1} MiB, all of it allocated",
                output::mib(self.memory.memory.pss_ring_bytes),
                self.ring_mib
            ),
        };
        output::line(&format!(
            "{:>10.1} MiB PSS of all processes{ring}",
            self.pss_total_mib
        ))?;
        output::line(&format!(
            "{:>10.1} MiB of that page cache of input files that the processes map",
            output::mib(self.memory.memory.pss_input_bytes)
        ))?;
        if let Some(device) = &self.device {
            device.print()?;
        }
        if let Some(times) = &self.loader.device {
            let (wait, consumer) = (self.loader.consumer_wait_s, self.loader.consumer_s);
            print_times(times, wait, consumer, self.seconds)?;
        }
        if self.loader.resized_by_workers > 0 {
            output::line(&format!(
                "{:>10} of {} rows had no room for their crop and were resized by workers",
                self.loader.resized_by_workers, t.rows
            ))?;
        }
        if self.workers > 0 {
            let kept = self.loader.sandboxed.text();
            output::line(&format!("sandbox    {kept}"))?;
        }
        output::line(&format!("profile    {}", self.profile))?;
        if self.worker_deaths > 0 {
            output::line(&format!(
                "{:>10} workers died and were replaced",
                self.worker_deaths
            ))?;
        }
        for event in &self.loader.events {
            output::line(&format!("event      {event}"))?;
        }
        output::dropped_lines(self.loader.stderr_lost)?;
        if self.failed > 0 {
            output::line(&format!(
                "{:>10} samples failed, {} skipped, {} substituted",
                self.failed, self.skipped, self.substituted
            ))?;
        }
        for f in &self.failures {
            let instead = match f.substitute {
                Some(id) => format!("; sample {id} in its place"),
                None => String::new(),
            };
            output::line(&format!(
                "failed     {} (sample {}): {}: {}{instead}",
                f.path, f.id, f.kind, f.reason
            ))?;
        }
        for (i, digest) in self.digests.iter().flatten().enumerate() {
            output::line(&format!("digest     {digest} of the {}. epoch", i + 1))?;
        }
        if let Some(digest) = &self.digest {
            output::line(&format!("digest     {digest}"))?;
        }
        Ok(())
    }
}

/// A device that has work for this share of the time leaves no room for more.
const DEVICE_BUSY: f64 = 0.8;

/// What keeps a run of so many seconds from being faster.
pub fn bound_by(r: &LoaderReport, workers: usize, seconds: f64) -> &'static str {
    let t = &r.times;
    let all = t.busy_s() + t.idle_s;
    if r.device.is_some_and(|d| d.busy_s() > DEVICE_BUSY * seconds) {
        "the device"
    } else if workers > 0 && t.idle_s > 0.3 * all && r.consumer_wait_s > 0.5 * seconds {
        // Both wait: batches come in order, and slots are full of finished rows.
        "rows that wait for slower ones (raise depth)"
    } else if workers > 0 && t.idle_s > 0.3 * all {
        "the consumer"
    } else if t.open_s > 0.5 * t.busy_s() {
        "storage"
    } else {
        "decode"
    }
}
