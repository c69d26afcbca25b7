//! Measures the device stage alone: filled slots are copied to the device repeatedly.

use featherload::index::ScanReport;
use featherload::{DeviceReplay, Result};
use serde::Serialize;

use super::args::BenchArgs;
use crate::outcome::CommandOutcome;
use crate::setup::RunSetup;
use crate::{index, interrupt, output};

/// Field names are part of the `--json` format.
#[derive(Serialize)]
struct ReplayReport {
    images_per_s: f64,
    /// Bytes read from slots, copied or in place, in GB/s over the whole time.
    slot_gb_per_s: f64,
    copy_ms: f64,
    kernel_ms: f64,
    /// Entries that the scan left out. None for a saved index or a cache.
    scan: Option<ScanReport>,
    #[serde(flatten)]
    replay: DeviceReplay,
}

pub fn run(args: &BenchArgs, setup: &RunSetup<'_>, rounds: u32) -> Result<CommandOutcome> {
    let workers = args.run.one_count()?;
    let mut loader = args.run.builder(setup, workers)?.build()?;
    interrupt::end_the_run()?;
    index::print_skipped(loader.scan_report());
    // The first copies are slower: memory is mapped and clocks rise.
    loader.replay(rounds.div_ceil(10))?;
    let replay = loader.replay(rounds)?;
    let batches = replay.batches.max(1) as f64;
    let report = ReplayReport {
        images_per_s: replay.rows as f64 / replay.seconds,
        slot_gb_per_s: replay.bytes_per_s() * 1e-9,
        copy_ms: 1e3 * replay.device.copy_s / batches,
        kernel_ms: 1e3 * replay.device.kernel_s / batches,
        scan: loader.scan_report().cloned(),
        replay,
    };
    output::report(&report, args.json, print)?;
    Ok(CommandOutcome::of_run())
}

fn print(r: &ReplayReport) -> Result<()> {
    let mib = |bytes: u64| output::mib(bytes) / r.replay.batches.max(1) as f64;
    output::line(&format!(
        "{:>10.1} GB/s of slots: a batch in {:.2} ms, {:.1} MiB of it copied and {:.1} MiB read in place; {} slots of {:.1} MiB, {} batches",
        r.slot_gb_per_s,
        1e3 * r.replay.seconds / r.replay.batches.max(1) as f64,
        mib(r.replay.device.copied_bytes),
        mib(r.replay.device.in_place_bytes),
        r.replay.slots,
        output::mib(r.replay.slot_bytes),
        r.replay.batches
    ))?;
    output::line(&format!(
        "{:>10.2} ms a batch to copy, {:.2} ms for the kernel; {:.0} images/s",
        r.copy_ms, r.kernel_ms, r.images_per_s
    ))
}
