//! The printed report: at most eight lines, or everything under `-v`.

use std::path::Path;

use featherload::error::size;
use featherload::fetch::FetchReport;
use featherload::{DecodeOn, Result};

use super::device::{print_jpegs, print_times};
use super::failures::{FailedSample, grouped as by_kind};
use super::report::BenchReport;
use crate::output::fields::{TextTone, below, field, field_in_tone};
use crate::output::{self, grouped};

impl BenchReport {
    /// `file` lists all failures.
    pub fn print(&self, verbose: bool, file: Option<&Path>) -> Result<()> {
        self.subject.print(&workers(self.workers))?;
        output::line("")?;
        self.print_short(file)?;
        if verbose {
            output::line("")?;
            self.print_rest()?;
        }
        Ok(())
    }

    fn print_short(&self, file: Option<&Path>) -> Result<()> {
        if self.interrupted {
            let of = match self.batches_planned {
                n if n > self.batches => format!(" of {}", grouped(n)),
                _ => String::new(),
            };
            let ran = format!(
                "after {}{of} batches: the figures cover these",
                grouped(self.batches)
            );
            field_in_tone(TextTone::Warning, "interrupted", &ran)?;
        }
        match (self.images_per_s, &self.too_short) {
            (None, Some(too_short)) => field("images/s", too_short)?,
            (images_per_s, _) => {
                let rate = rate(images_per_s.unwrap_or_default());
                field(&format!("{rate} images/s"), &self.speed())?;
            }
        }
        field(
            &format!("{:.0} MiB memory", self.memory_mib),
            &self.memory(),
        )?;
        if let Some(jpegs) = self.loader.device.map(|d| d.jpegs)
            && jpegs.pictures > 0
        {
            print_jpegs(&jpegs, self.samples, self.seconds)?;
        }
        if let Some(jpegs) = &self.jpegs
            && jpegs.on == DecodeOn::Cpu
        {
            field("JPEGs", &format!("decoded on the CPU: {}", jpegs.why))?;
        }
        if let Some(fetch) = &self.loader.fetch {
            field("fetched", &fetched(fetch))?;
        }
        // In a short run these are the parts at its start.
        if self.images_per_s.is_some() {
            field("limited by", &self.limited_by.text)?;
            field("CPU", &self.limited_by.processors)?;
        }
        if let Some(ms) = self.columns_ms {
            let share = ms * 1e-3 * self.batches as f64 / self.seconds.max(1e-9);
            let cost = format!(
                "{ms:.1} ms per batch in this process, {:.0}% of the run",
                share * 100.0
            );
            field("columns", &cost)?;
            if let Some(faster) = &self.columns_faster {
                field("faster columns", faster)?;
            }
        }
        if let Some(faster) = &self.limited_by.faster {
            field("faster", faster)?;
        }
        self.print_failures(file)?;
        let ordered = self.loader.ordered_deaths;
        if ordered > 0 {
            let killed = format!("{} killed by --kill-workers-every", grouped(ordered));
            field("workers", &killed)?;
        }
        if let died @ 1.. = self.worker_deaths.saturating_sub(ordered) {
            let died = format!("{} died and were replaced (-v shows why)", grouped(died));
            field_in_tone(TextTone::Warning, "workers", &died)?;
        }
        if let Some(digest) = &self.digest {
            field("digest", digest)?;
        }
        Ok(())
    }

    /// `960-1,010 by epoch; 48 batches in 3.1 s, first after 85 ms`.
    fn speed(&self) -> String {
        let spread = self.spread.map_or(String::new(), |s| {
            format!(
                "{}-{} by {}; ",
                rate(s.min_images_per_s),
                rate(s.max_images_per_s),
                s.by
            )
        });
        let batches = match self.batches {
            1 => "1 batch".to_owned(),
            n => format!("{} batches", grouped(n)),
        };
        format!(
            "{spread}{batches} in {}, first after {}",
            output::seconds(self.seconds),
            output::seconds(self.first_batch_ms * 1e-3)
        )
    }

    /// `55 shared batch buffer + 14 processes`.
    fn memory(&self) -> String {
        let host = match self.workers {
            0 => "one process".to_owned(),
            _ => format!(
                "{:.0} shared batch buffer + {:.0} processes",
                self.ring_mib, self.processes_mib
            ),
        };
        match &self.device {
            Some(device) => format!("{host}; {:.0} on the GPU", device.peak_mib()),
            None => host,
        }
    }

    fn print_failures(&self, file: Option<&Path>) -> Result<()> {
        if self.failed == 0 {
            return field("failures", "none");
        }
        let what = match (self.skipped, self.substituted) {
            (_, 0) => "rows masked".to_owned(),
            (0, _) => "rows filled by other samples".to_owned(),
            (skipped, filled) => {
                format!(
                    "{} rows masked, {} filled by others",
                    grouped(skipped),
                    grouped(filled)
                )
            }
        };
        let (failed, of) = (grouped(self.failed), grouped(self.samples));
        let counts = match self.failed_samples {
            samples if samples == self.failed => format!("{failed} of {of} samples; {what}"),
            samples => format!(
                "{failed} of {of} rows, of {} samples; {what}",
                grouped(samples)
            ),
        };
        field_in_tone(TextTone::Warning, "failures", &counts)?;
        let mut named = 0;
        for group in by_kind(&self.failures, &self.failure_kinds) {
            below(0, &format!("{} {}", grouped(group.count), group.kind))?;
            for failure in &group.examples {
                named += 1;
                let below_root = failure.path.strip_prefix(&self.subject.source);
                let path = below_root.map_or(&*failure.path, |path| path.trim_start_matches('/'));
                below(2, &format!("{path}: {}", failure.reason))?;
            }
        }
        let more = self.failed - named;
        match (more, file) {
            (0, _) => {}
            (_, Some(file)) if self.unwritten.is_none() => {
                below(
                    0,
                    &format!("and {} more in {}", grouped(more), file.display()),
                )?;
            }
            _ => {
                let all = "--failures FILE lists all";
                below(0, &format!("and {} more: {all}", grouped(more)))?;
            }
        }
        below(0, "`index` reads headers only, and may find fewer")
    }

    fn print_rest(&self) -> Result<()> {
        let l = &self.loader;
        field(
            "start",
            &format!(
                "{} to running workers",
                output::seconds(self.startup_ms * 1e-3)
            ),
        )?;
        field(
            "CPU time",
            &format!("{:.2} s for 1,000 images", self.cpu_s_per_1k_images),
        )?;
        field("worker time", &self.worker_time())?;
        if l.mix_s > 0.0 {
            let ms = l.mix_s * 1e3 / self.batches.max(1) as f64;
            field(
                "mixing",
                &format!("{ms:.2} ms a batch, for rows and labels"),
            )?;
        }
        field("PSS", &self.pss())?;
        field(
            "page cache",
            &format!(
                "{:.1} MiB of input files that the processes map; this PSS contains it",
                output::mib(self.memory.memory.pss_input_bytes)
            ),
        )?;
        if let Some(device) = &self.device {
            device.print()?;
        }
        if let Some(times) = &l.device {
            print_times(times, l.consumer_wait_s, l.consumer_s, self.seconds)?;
        }
        if l.resized_by_workers > 0 {
            let rows = format!(
                "{} of {} rows had no room for their crop: workers resized them",
                grouped(l.resized_by_workers),
                grouped(l.times.rows)
            );
            field("crops", &rows)?;
        }
        if l.truncated_rows > 0 {
            let rows = format!(
                "{} of {} rows come from files that end too early: the rest is grey or black",
                grouped(l.truncated_rows),
                grouped(l.times.rows)
            );
            field("truncated", &rows)?;
        }
        if self.workers > 0 {
            field("sandbox", l.sandboxed.text())?;
        }
        field("profile", &self.profile.to_string())?;
        for event in &l.events {
            field("event", event)?;
        }
        if l.stderr_lost > 0 {
            let lost = format!(
                "{} lines of coordinator and workers: stderr was not read",
                grouped(l.stderr_lost)
            );
            field("dropped", &lost)?;
        }
        for failure in &self.failures {
            field("failed", &failure.text())?;
        }
        match self.failed - self.failures.len() as u64 {
            0 => {}
            more => field("failed", &format!("{} more", grouped(more)))?,
        }
        for (i, digest) in self.digests.iter().flatten().enumerate() {
            field(&format!("digest {}", i + 1), digest)?;
        }
        Ok(())
    }

    fn worker_time(&self) -> String {
        let s = &self.limited_by.shares;
        let stages: Vec<String> = s
            .stages
            .iter()
            .map(|(name, share)| format!("{name} {share:.0}%"))
            .collect();
        let waits = match (s.queued, s.blocked) {
            (Some(queued), Some(blocked)) => {
                format!("; of it {queued:.0}% without a core, {blocked:.0}% waiting for data")
            }
            _ => String::new(),
        };
        format!(
            "{}{waits}; idle {:.0}% of all time",
            stages.join(", "),
            s.idle
        )
    }

    fn pss(&self) -> String {
        let ring = match self.workers {
            0 => String::new(),
            _ => format!(
                "; of the batch buffer's {:.1} MiB they map {:.1}",
                self.ring_mib,
                output::mib(self.memory.memory.pss_ring_bytes)
            ),
        };
        format!("{:.1} MiB of all processes{ring}", self.pss_total_mib)
    }
}

impl FailedSample {
    fn text(&self) -> String {
        let instead = match self.substitute {
            Some(id) => format!("; sample {id} in its place"),
            None => String::new(),
        };
        format!(
            "{} (sample {}): {}{instead}",
            self.path, self.id, self.reason
        )
    }
}

/// `2 workers`.
pub fn workers(count: usize) -> String {
    match count {
        0 => "no workers".to_owned(),
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    }
}

/// A rate in whole images per second, or with one decimal if it is low.
pub fn rate(images_per_s: f64) -> String {
    match images_per_s {
        slow if slow < 10.0 => format!("{slow:.1}"),
        fast => grouped(fast.round() as u64),
    }
}

/// `1.2 GiB in 120 shards, 40 removed again; 1.3 s waited for them`.
fn fetched(fetch: &FetchReport) -> String {
    let count = |n: u64, what: &str| match n {
        0 => String::new(),
        n => format!(", {} {what}", grouped(n)),
    };
    let removed = count(fetch.removed, "removed again");
    let retries = count(fetch.retries, "requests repeated");
    let deaths = count(fetch.deaths, "fetchers died");
    let shards = match fetch.shards {
        1 => "1 shard".to_owned(),
        n => format!("{} shards", grouped(n)),
    };
    format!(
        "{} in {shards}{removed}{retries}{deaths}; {} waited for them",
        size(fetch.bytes),
        output::seconds(fetch.wait_s)
    )
}
