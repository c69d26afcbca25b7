//! Draws a run of `bench` as a chart: throughput over time, with stalls and worker deaths, and the
//! time shares of the stages.

use std::time::Instant;

use featherload::measure::statistics::median;
use featherload::{Batch, Epoch, LoaderReport, Result};

use super::report::BenchReport;
use crate::chart::{ChartSheet, MARGIN, TextAnchor, WIDTH, fitted, ticks};

const LEFT: f64 = MARGIN + 64.0;
const RIGHT: f64 = WIDTH - MARGIN;
const PLOT: f64 = 220.0;

/// Most bars: each needs a visible width.
const MOST_BARS: usize = 96;

/// A gap between batches is a stall if it exceeds this time and this multiple of the median.
const STALL_S: f64 = 0.25;
const STALL_MEDIANS: f64 = 3.0;

/// Most arrivals that are kept. At this number, every two are merged.
const MOST_MARKS: usize = 1 << 16;

/// Most worker deaths and coordinator messages that are kept.
const MOST_EVENTS: usize = 1000;

/// Seconds between two reports that are read from the coordinator.
const ASK_S: f64 = 0.05;

/// Events of the run, with times from the start of the process.
pub struct RunTimeline {
    began: Instant,
    /// Arrival time of each batch, and its number of images with pixels.
    batches: Vec<(f64, u64)>,
    /// When dead workers were found, and how many.
    deaths: Vec<(f64, u64)>,
    last_report: f64,
    dead_workers: u64,
    /// Messages of earlier reports, which the last report does not repeat.
    events: Vec<String>,
    /// Number of events that were not kept.
    lost: u64,
}

impl RunTimeline {
    pub fn new(began: Instant) -> Self {
        Self {
            began,
            batches: Vec::new(),
            deaths: Vec::new(),
            last_report: 0.0,
            dead_workers: 0,
            events: Vec::new(),
            lost: 0,
        }
    }

    /// Records the arrival of a batch.
    pub fn add(&mut self, epoch: &Epoch<'_>, batch: &Batch, arrived: Instant) -> Result<()> {
        let at = (arrived - self.began).as_secs_f64();
        self.batches.push((at, batch.good_rows().count() as u64));
        if self.batches.len() >= MOST_MARKS {
            self.batches = halved(&self.batches);
        }
        if at - self.last_report >= ASK_S {
            self.last_report = at;
            let mut report = epoch.report()?;
            self.count(at, report.worker_deaths);
            self.events.append(&mut report.processes.events);
            self.lost += self.events.len().saturating_sub(MOST_EVENTS) as u64;
            self.events.truncate(MOST_EVENTS);
        }
        Ok(())
    }

    /// The chart as SVG. Adds the events of earlier reports to the report.
    pub fn finish(mut self, report: &mut BenchReport) -> String {
        self.end(&mut report.loader);
        self.draw(report)
    }

    fn end(&mut self, report: &mut LoaderReport) {
        let now = self.began.elapsed().as_secs_f64();
        self.count(now, report.worker_deaths);
        self.events.append(&mut report.processes.events);
        report.processes.events = std::mem::take(&mut self.events);
        report.processes.events_lost += self.lost;
    }

    fn count(&mut self, at: f64, dead_workers: u64) {
        if dead_workers > self.dead_workers {
            self.deaths.push((at, dead_workers - self.dead_workers));
            if self.deaths.len() >= MOST_EVENTS {
                self.deaths = halved(&self.deaths);
            }
            self.dead_workers = dead_workers;
        }
    }

    fn draw(&self, report: &BenchReport) -> String {
        let subject = &report.subject;
        let title = format!("Throughput by time: {}, {}", subject.source, subject.recipe);
        let stalls = self.stalls();
        let mut sheet = ChartSheet::new(&title, &[self.caption(report, &stalls)]);
        self.keys(&mut sheet, report, &stalls);
        self.plot(&mut sheet, report, &stalls);
        stages(&mut sheet, report);
        sheet.finish()
    }

    fn caption(&self, report: &BenchReport, stalls: &[(f64, f64)]) -> String {
        let mut words = format!(
            "{} samples in {} batches, {:.2} s, {} workers; the first batch after {:.0} ms.",
            crate::output::grouped(report.samples),
            crate::output::grouped(report.batches),
            report.seconds,
            report.workers,
            report.first_batch_ms
        );
        if let Some((from, to)) = stalls
            .iter()
            .max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
        {
            words.push_str(&format!(
                " The longest stall took {:.2} s and began at {from:.2} s.",
                to - from
            ));
        }
        words
    }

    fn keys(&self, sheet: &mut ChartSheet, report: &BenchReport, stalls: &[(f64, f64)]) {
        let rate = match report.images_per_s {
            Some(rate) => format!("images/s; dashed line: {rate:.0} in the whole run"),
            None => "images/s; the run is too short for its own rate".to_owned(),
        };
        let mut keys = vec![("one", rate)];
        if !stalls.is_empty() {
            let words = format!("stalls, in which no batch arrived: {}", stalls.len());
            keys.push(("stalled", words));
        }
        if let died @ 1.. = report.worker_deaths {
            keys.push((
                "bad",
                format!("workers that died and were replaced: {died}"),
            ));
        }
        sheet.keys(&keys);
    }

    fn plot(&self, sheet: &mut ChartSheet, report: &BenchReport, stalls: &[(f64, f64)]) {
        let end = self.batches.last().map_or(1e-3, |(at, _)| at.max(1e-3));
        let rates = self.rates(end);
        let whole = report.images_per_s;
        let highest = rates
            .iter()
            .copied()
            .fold(whole.unwrap_or_default(), f64::max);
        let most = highest.max(1e-3) * 1.08;
        let (top, bottom) = (sheet.y + 12.0, sheet.y + 12.0 + PLOT);
        let y = sheet.scale((LEFT, RIGHT), (top, bottom), most);
        let x = |at: f64| LEFT + (RIGHT - LEFT) * (at / end).min(1.0);
        let bar = (RIGHT - LEFT) / rates.len() as f64;
        for (i, rate) in rates.iter().enumerate() {
            let at = (LEFT + bar * i as f64 + 0.5, y(*rate));
            sheet.rect("one", at, (bar - 1.0, bottom - y(*rate)));
        }
        for (from, to) in stalls {
            let size = (x(*to) - x(*from), bottom - top);
            sheet.hatched("stalled", (x(*from), top), size);
        }
        if let Some(mean) = whole.map(y) {
            sheet.line("mean", (LEFT, mean), (RIGHT, mean));
        }
        for (at, _) in &self.deaths {
            let at = x(*at);
            sheet.line("mark", (at, top - 6.0), (at, bottom));
            sheet.rect("bad", (at - 3.0, top - 9.0), (6.0, 6.0));
        }
        sheet.line("axis", (LEFT, bottom), (RIGHT, bottom));
        for tick in ticks(end, 8) {
            let words = match end {
                ..1.0 => format!("{tick:.2}"),
                ..10.0 => format!("{tick:.1}"),
                _ => format!("{tick:.0}"),
            };
            sheet.text("soft", TextAnchor::Middle, (x(tick), bottom + 18.0), &words);
        }
        let at = (f64::midpoint(LEFT, RIGHT), bottom + 36.0);
        sheet.text(
            "soft",
            TextAnchor::Middle,
            at,
            "across: seconds from the start of the process; up: images/s",
        );
        sheet.y = bottom + 44.0;
    }

    /// Images per second in equal parts of the time up to `end`. The images of a batch are spread
    /// evenly over the time since the batch before.
    fn rates(&self, end: f64) -> Vec<f64> {
        let bars = (self.batches.len() / 2).clamp(4, MOST_BARS);
        let width = end / bars as f64;
        let mut rates = vec![0.0; bars];
        let mut before = 0.0;
        for (at, samples) in &self.batches {
            let gap = (at - before).max(1e-9);
            let first = (before / width) as usize;
            for (i, rate) in rates.iter_mut().enumerate().skip(first) {
                let (from, to) = (i as f64 * width, (i + 1) as f64 * width);
                if from >= *at {
                    break;
                }
                let within = (to.min(*at) - from.max(before)).max(0.0);
                *rate += *samples as f64 * within / gap / width;
            }
            before = *at;
        }
        rates
    }

    /// Start and end of each gap without a batch, after the first batch.
    fn stalls(&self) -> Vec<(f64, f64)> {
        let gaps = self.batches.windows(2).map(|two| (two[0].0, two[1].0));
        let gaps: Vec<_> = gaps.collect();
        let usual = median(gaps.iter().map(|(from, to)| to - from).collect()).unwrap_or(0.0);
        let least = STALL_S.max(STALL_MEDIANS * usual);
        gaps.into_iter()
            .filter(|(from, to)| to - from > least)
            .collect()
    }
}

/// Merges every two arrivals: the later time, with the images of both.
fn halved(marks: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let pairs = marks.chunks(2).filter_map(|pair| {
        let (at, _) = pair.last()?;
        Some((*at, pair.iter().map(|(_, count)| count).sum()))
    });
    pairs.collect()
}

/// The time shares of all workers.
fn stages(sheet: &mut ChartSheet, report: &BenchReport) {
    let times = &report.loader.times;
    let parts = [
        ("three", "read", times.open_s),
        ("six", "unpack", times.unpack_s),
        ("one", "decode", times.decode_s),
        ("two", "resize", times.resample_s),
        ("five", "augment", times.augment_s),
        ("four", "write", times.emit_s),
        ("rest", "wait for the consumer", times.idle_s),
    ];
    let all = (times.busy_s() + times.idle_s).max(1e-9);
    sheet.heading(
        "Where the time of the workers went",
        &format!(
            "limited by {}",
            fitted(
                report
                    .bound_by
                    .unwrap_or("an unknown cause: the run is too short"),
                60
            )
        ),
    );
    let y = sheet.y + 4.0;
    let width = WIDTH - 2.0 * MARGIN;
    let mut x = MARGIN;
    let mut keys = Vec::new();
    for (class, name, seconds) in parts {
        let share = seconds / all;
        if share < 5e-4 {
            continue;
        }
        sheet.rect(class, (x, y), (width * share, 26.0));
        x += width * share;
        keys.push((class, format!("{name} {:.1}%", 100.0 * share)));
    }
    sheet.rect("edge", (MARGIN, y), (width, 26.0));
    sheet.y = y + 32.0;
    sheet.keys(&keys);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(arrivals: &[f64]) -> RunTimeline {
        let mut timeline = RunTimeline::new(Instant::now());
        timeline.batches = arrivals.iter().map(|at| (*at, 10)).collect();
        timeline
    }

    #[test]
    fn rates_add_up_to_the_samples() {
        let arrivals: Vec<f64> = (1..=50).map(|i| f64::from(i * i) * 1e-3).collect();
        let timeline = timeline(&arrivals);
        let rates = timeline.rates(2.5);
        assert_eq!(rates.len(), 25);
        let samples: f64 = rates.iter().map(|rate| rate * 0.1).sum();
        assert!((samples - 500.0).abs() < 1e-6, "{samples}");
        assert!(rates[0] > rates[24]);
    }

    #[test]
    fn a_stall_is_many_times_longer_than_other_gaps() {
        let mut arrivals: Vec<f64> = (1..=20).map(|i| 0.05 * f64::from(i)).collect();
        assert!(timeline(&arrivals).stalls().is_empty());
        arrivals.extend([1.9, 1.95, 2.0]);
        assert_eq!(timeline(&arrivals).stalls(), [(1.0, 1.9)]);
        // A run that is always slow has no stall.
        assert!(timeline(&[1.0, 2.0, 3.0]).stalls().is_empty());
    }

    #[test]
    fn a_run_of_any_length_keeps_a_bounded_timeline() {
        let marks: Vec<(f64, u64)> = (0..MOST_MARKS as u32 + 1)
            .map(|i| (f64::from(i), 2))
            .collect();
        let fewer = halved(&marks);
        assert_eq!(fewer.len(), MOST_MARKS / 2 + 1);
        assert_eq!(fewer.last(), marks.last());
        let images = |marks: &[(f64, u64)]| marks.iter().map(|(_, n)| n).sum::<u64>();
        assert_eq!(images(&fewer), images(&marks));
        let mut timeline = timeline(&[]);
        for dead_workers in 1..=5000 {
            timeline.count(dead_workers as f64, dead_workers);
        }
        assert!(timeline.deaths.len() < MOST_EVENTS);
        assert_eq!(images(&timeline.deaths), 5000);
    }

    #[test]
    fn events_that_were_told_on_the_way_are_in_the_last_report() {
        let mut timeline = timeline(&[0.1]);
        timeline.events = vec!["first".into()];
        let mut report = LoaderReport::default();
        report.processes.events = vec!["last".into()];
        report.processes.worker_deaths = 2;
        timeline.end(&mut report);
        assert_eq!(report.events, ["first", "last"]);
        assert_eq!(timeline.deaths.len(), 1);
    }
}
