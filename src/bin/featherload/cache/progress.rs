//! The progress of a build, on stderr: a bar on a terminal, otherwise a line at intervals. For
//! programs, one JSON object a line.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use featherload::cache::{BuildPhase, BuildProgress};
use indicatif::ProgressBar;
use serde_json::json;

use crate::output::{self, grouped, time};

/// Time between two lines, without a bar.
const PAUSE: Duration = Duration::from_secs(30);

/// Least time between two JSON objects of a phase.
const OBJECTS: Duration = Duration::from_millis(200);

/// The form of the progress messages.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Prints the progress of a build.
pub struct ProgressPrinter {
    bar: ProgressBar,
    pace: Option<Pace>,
    form: ProgressForm,
    /// When the last JSON object was printed.
    object: Option<Instant>,
}

/// The rate of a phase.
#[derive(Clone, Copy)]
struct Pace {
    phase: BuildPhase,
    /// When the phase began, and how much earlier calls had done by then.
    since: Instant,
    from: u64,
    /// When the next line is due.
    next: Instant,
}

impl ProgressPrinter {
    /// `shown` selects a bar, if stderr is a terminal.
    pub fn new(shown: bool, form: ProgressForm) -> Self {
        Self {
            bar: output::progress(0, output::WITH_MESSAGE, shown && form == ProgressForm::Text),
            pace: None,
            form,
            object: None,
        }
    }

    pub fn update(&mut self, progress: &BuildProgress<'_>) {
        let now = Instant::now();
        let begins = self.pace.is_none_or(|p| p.phase != progress.phase);
        let pace = Pace::at(self.pace, progress.phase, progress.done, now);
        if self.form == ProgressForm::Json {
            self.pace = Some(pace);
            self.print_json(progress, begins, now);
            return;
        }
        if begins {
            self.bar.set_length(progress.samples);
        }
        self.bar.set_position(progress.done);
        let written = match progress.phase {
            BuildPhase::Writing => Some(progress.bytes),
            _ => None,
        };
        let words = pace.words(progress.done, progress.samples, written, now);
        let words = format!("{}{words}", part(progress));
        let (pace, is_due) = pace.is_due(now);
        self.pace = Some(pace);
        if is_due && self.bar.is_hidden() {
            output::print_to_stderr(&words);
        }
        self.bar.set_message(words);
    }

    /// Prints an object at the start and end of a phase, and at intervals between.
    fn print_json(&mut self, progress: &BuildProgress<'_>, begins: bool, now: Instant) {
        let is_due = self.object.is_none_or(|last| now - last >= OBJECTS);
        if !is_due && !begins && progress.done < progress.samples {
            return;
        }
        self.object = Some(now);
        let object = json!({ "progress": {
            "phase": match progress.phase {
                BuildPhase::Checking => "checking",
                BuildPhase::Fetching => "fetching",
                BuildPhase::ReadingHeaders => "reading headers",
                BuildPhase::ReadingColumns => "reading columns",
                BuildPhase::Sending => "sending",
                _ => "writing",
            },
            "done": progress.done,
            "samples": progress.samples,
            "bytes": progress.bytes,
            "needed_bytes": progress.needed_bytes,
            "shards": progress.shards,
            "shards_up": progress.shards_up,
            "share": progress.share,
        }});
        output::print_json_to_stderr(&object);
    }

    /// Prints other lines without disturbing the bar.
    pub fn print_between(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Pace {
    fn at(before: Option<Self>, phase: BuildPhase, done: u64, now: Instant) -> Self {
        match before {
            Some(pace) if pace.phase == phase => pace,
            before => Self {
                phase,
                since: now,
                from: done,
                next: before.map_or(now + PAUSE, |pace| pace.next),
            },
        }
    }

    /// Whether a line is due.
    fn is_due(self, now: Instant) -> (Self, bool) {
        if now < self.next {
            return (self, false);
        }
        let later = Self {
            next: now + PAUSE,
            ..self
        };
        (later, true)
    }

    /// Progress, rate, size of the written data, and time left. The rate does not count the work of
    /// earlier calls.
    fn words(&self, done: u64, samples: u64, written: Option<u64>, now: Instant) -> String {
        let mut words = format!(
            "{}{} of {} samples",
            what(self.phase),
            grouped(done),
            grouped(samples)
        );
        let rate = done.saturating_sub(self.from) as f64 / (now - self.since).as_secs_f64();
        let has_rate = rate.is_finite() && rate > 0.0;
        if has_rate {
            words += &format!(", {}/s", grouped(rate.round() as u64));
        }
        if let Some(bytes) = written {
            words += &format!(", {}", output::size(bytes));
        }
        // The number of existing samples is not known in advance.
        if has_rate && self.phase != BuildPhase::Checking {
            let left = (samples - done.min(samples)) as f64 / rate;
            words += &format!(", {} left", time(left));
        }
        words
    }
}

/// Text for the number of the part. Empty if the cache is not made in parts.
pub fn part(progress: &BuildProgress<'_>) -> String {
    progress.share.map_or_else(String::new, |(number, of)| {
        format!("part {} of {of}: ", number + 1)
    })
}

fn what(phase: BuildPhase) -> &'static str {
    match phase {
        BuildPhase::Checking => "checking existing shards: ",
        BuildPhase::Fetching => "fetching the source: ",
        BuildPhase::ReadingHeaders => "reading headers: ",
        BuildPhase::ReadingColumns => "reading columns: ",
        BuildPhase::Sending => "waiting for the store: ",
        _ => "",
    }
}

/// Lists the fields that a cache does not keep. None if there are none.
pub fn fields(fields: &BTreeMap<String, u64>) -> Option<String> {
    let field_text = |(name, samples): (&String, &u64)| match samples {
        1 => format!("{name} in 1 sample"),
        n => format!("{name} in {} samples", grouped(*n)),
    };
    let field_text: Vec<_> = fields.iter().map(field_text).collect();
    (!field_text.is_empty()).then(|| field_text.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_each_half_a_minute_and_says_how_long_it_takes() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let gib = 3 << 30;
        let pace = Pace::at(None, BuildPhase::Writing, 60_000, begin);
        let (pace, is_due) = pace.is_due(at(29));
        assert!(!is_due);
        let (pace, is_due) = pace.is_due(at(30));
        assert!(is_due);
        let line = pace.words(123_000, 1_281_167, Some(gib), at(30));
        assert_eq!(
            line,
            "123,000 of 1,281,167 samples, 2,100/s, 3,072 MiB, 10 min left"
        );
        assert!(!pace.is_due(at(59)).1);
        let (pace, is_due) = pace.is_due(at(60));
        assert!(is_due);
        let line = pace.words(1_281_000, 1_281_167, Some(16 * gib), at(60));
        assert!(line.ends_with("/s, 48.0 GiB, 1 s left"), "{line}");
        // The bar is printed before it.
        assert!(line.len() + 11 <= 80, "{line}");

        // Another phase has its own rate, but shares the timer for lines.
        let pace = Pace::at(Some(pace), BuildPhase::ReadingHeaders, 0, at(70));
        assert!(!pace.is_due(at(89)).1);
        let (pace, is_due) = pace.is_due(at(90));
        assert!(is_due);
        let expected = "reading headers: 10 of 100 samples, 1/s, 3 min left";
        assert_eq!(pace.words(10, 100, None, at(90)), expected);
        let pace = Pace::at(Some(pace), BuildPhase::Checking, 0, at(100));
        assert!(pace.is_due(at(200)).1);
        let line = pace.words(0, 100, None, at(200));
        assert_eq!(line, "checking existing shards: 0 of 100 samples");
        let line = pace.words(1000, 2000, None, at(200));
        assert!(line.ends_with("1,000 of 2,000 samples, 10/s"), "{line}");
    }

    #[test]
    fn fields_are_named_with_their_numbers() {
        assert_eq!(fields(&BTreeMap::new()), None);
        let two = BTreeMap::from([("txt".to_owned(), 1_234_567), ("seg.png".to_owned(), 1)]);
        let field_text = fields(&two).unwrap();
        assert_eq!(field_text, "seg.png in 1 sample, txt in 1,234,567 samples");
    }
}
