//! How far a build is, on stderr: a bar on a terminal, elsewhere a line now and
//! then; for programs a JSON object a line.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use featherload::cache::{BuildPhase, BuildProgress};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::output;

/// Between two lines where there is no bar.
const PAUSE: Duration = Duration::from_secs(30);

/// Between two JSON objects of a phase.
const OBJECTS: Duration = Duration::from_millis(200);

/// Who reads what is told.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A person.
    Text,
    /// A program.
    Json,
}

/// What was told of a build.
pub struct Told {
    bar: ProgressBar,
    pace: Option<Pace>,
    form: Form,
    /// When the last JSON object was told.
    object: Option<Instant>,
}

/// How fast a phase is.
#[derive(Clone, Copy)]
struct Pace {
    phase: BuildPhase,
    /// When it began, and what was done then: by earlier calls.
    since: Instant,
    from: u64,
    /// When the next line is due.
    next: Instant,
}

impl Told {
    /// With `shown` a bar, where there is a terminal.
    pub fn new(shown: bool, form: Form) -> Self {
        Self {
            bar: output::progress(0, shown && form == Form::Text),
            pace: None,
            form,
            object: None,
        }
    }

    pub fn tell(&mut self, progress: &BuildProgress<'_>) {
        let now = Instant::now();
        let begins = self.pace.is_none_or(|p| p.phase != progress.phase);
        let pace = Pace::at(self.pace, progress.phase, progress.done, now);
        if self.form == Form::Json {
            self.pace = Some(pace);
            self.tell_program(progress, begins, now);
            return;
        }
        if begins {
            self.begin(progress);
        }
        self.bar.set_position(progress.done);
        if progress.phase == BuildPhase::Writing {
            self.bar.set_message(format!(
                ", {:.1} MiB in {} shards",
                output::mib(progress.bytes),
                progress.shards
            ));
        }
        let (pace, line) = pace.line(progress.done, progress.samples, now);
        self.pace = Some(pace);
        if let Some(line) = line.filter(|_| self.bar.is_hidden()) {
            output::complain(&line);
        }
    }

    /// An object at a phase's begin, at its end, and now and then between.
    fn tell_program(&mut self, progress: &BuildProgress<'_>, begins: bool, now: Instant) {
        let due = self.object.is_none_or(|last| now - last >= OBJECTS);
        if !due && !begins && progress.done < progress.samples {
            return;
        }
        self.object = Some(now);
        let object = json!({ "progress": {
            "phase": match progress.phase {
                BuildPhase::Checking => "checking",
                BuildPhase::ReadingHeaders => "reading headers",
                _ => "writing",
            },
            "done": progress.done,
            "samples": progress.samples,
            "bytes": progress.bytes,
            "needed_bytes": progress.needed_bytes,
            "shards": progress.shards,
        }});
        output::complain(&object.to_string());
    }

    /// A bar of another phase.
    fn begin(&self, progress: &BuildProgress<'_>) {
        let what = what(progress.phase);
        let rest = match progress.phase {
            BuildPhase::Checking => "{pos} of {len} samples",
            _ => "{pos}/{len} samples, {per_sec}, {eta} left{msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(&format!("{what}{{bar:30}} {rest}")) {
            self.bar.set_style(style);
        }
        self.bar.set_length(progress.samples);
        // Those of earlier calls are no part of the rate.
        self.bar.set_position(progress.done);
        self.bar.reset_eta();
    }

    /// Prints other lines, which no bar stands in.
    pub fn beside(&self, print: impl FnOnce()) {
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

    /// A line, when one is due.
    fn line(self, done: u64, samples: u64, now: Instant) -> (Self, Option<String>) {
        if now < self.next {
            return (self, None);
        }
        let later = Self {
            next: now + PAUSE,
            ..self
        };
        (later, Some(self.words(done, samples, now)))
    }

    fn words(&self, done: u64, samples: u64, now: Instant) -> String {
        let mut words = format!(
            "{}{} of {} samples",
            what(self.phase),
            thousands(done),
            thousands(samples)
        );
        let rate = done.saturating_sub(self.from) as f64 / (now - self.since).as_secs_f64();
        if rate.is_finite() && rate > 0.0 {
            words += &format!(", {} a second", thousands(rate.round() as u64));
            // How many of the samples are there is not known before.
            if self.phase != BuildPhase::Checking {
                words += &format!(
                    ", {} left",
                    time((samples - done.min(samples)) as f64 / rate)
                );
            }
        }
        words
    }
}

fn what(phase: BuildPhase) -> &'static str {
    match phase {
        BuildPhase::Checking => "checking what is there: ",
        BuildPhase::ReadingHeaders => "reading headers: ",
        _ => "",
    }
}

/// A time in words, to the unit that matters.
fn time(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match (seconds / 3600, seconds.div_ceil(60)) {
        (_, ..=1) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {} min", minutes - 60 * hours),
    }
}

/// A number with a comma behind each thousand.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Fields that a cache does not have, in words; none where there are none.
pub fn fields(fields: &BTreeMap<String, u64>) -> Option<String> {
    let said = |(name, samples): (&String, &u64)| match samples {
        1 => format!("{name} in 1 sample"),
        n => format!("{name} in {} samples", thousands(*n)),
    };
    let said: Vec<_> = fields.iter().map(said).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_each_half_a_minute_and_says_how_long_it_takes() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let pace = Pace::at(None, BuildPhase::Writing, 60_000, begin);
        let (pace, early) = pace.line(100_000, 1_281_167, at(29));
        assert_eq!(early, None);
        let (pace, line) = pace.line(123_000, 1_281_167, at(30));
        assert_eq!(
            line.unwrap(),
            "123,000 of 1,281,167 samples, 2,100 a second, 10 min left"
        );
        assert_eq!(pace.line(130_000, 1_281_167, at(59)).1, None);
        let (pace, line) = pace.line(1_281_000, 1_281_167, at(60));
        assert!(line.unwrap().ends_with("a second, 1 s left"));

        // Another phase has a pace of its own, and the same clock for lines.
        let pace = Pace::at(Some(pace), BuildPhase::ReadingHeaders, 0, at(70));
        assert_eq!(pace.line(10, 100, at(89)).1, None);
        let line = pace.line(10, 100, at(90)).1;
        let due = "reading headers: 10 of 100 samples, 1 a second, 3 min left";
        assert_eq!(line.unwrap(), due);
        let pace = Pace::at(Some(pace), BuildPhase::Checking, 0, at(100));
        let line = pace.line(0, 100, at(200)).1.unwrap();
        assert_eq!(line, "checking what is there: 0 of 100 samples");
        let line = pace.line(1000, 2000, at(200)).1.unwrap();
        assert!(
            line.ends_with("1,000 of 2,000 samples, 10 a second"),
            "{line}"
        );
    }

    #[test]
    fn times_are_in_the_unit_that_matters() {
        for (seconds, words) in [
            (0.2, "1 s"),
            (59.5, "60 s"),
            (61.0, "2 min"),
            (3599.0, "60 min"),
            (3601.0, "1 h 1 min"),
            (7200.0, "2 h 0 min"),
        ] {
            assert_eq!(time(seconds), words);
        }
    }

    #[test]
    fn fields_are_named_with_their_numbers() {
        assert_eq!(fields(&BTreeMap::new()), None);
        let two = BTreeMap::from([("txt".to_owned(), 1_234_567), ("seg.png".to_owned(), 1)]);
        let said = fields(&two).unwrap();
        assert_eq!(said, "seg.png in 1 sample, txt in 1,234,567 samples");
    }
}
