//! The progress bar of a run: epoch, images, rate, memory and time left.

use std::time::{Duration, Instant};

use featherload::measure::TreeSample;
use indicatif::ProgressBar;

use super::text::rate;
use crate::output::{self, grouped};
use crate::pool_processes;

/// Reading the memory figures walks all pages. The next reading waits this many times as long as
/// the last one took.
const LOOKS: u32 = 50;
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct TerminalBar {
    bar: ProgressBar,
    images: u64,
    epochs: u64,
    /// When the first batch arrived, and its images. They do not count: they were made before.
    first: Option<(Instant, u64)>,
    memory: Option<u64>,
    next_read: Instant,
}

impl TerminalBar {
    /// A bar for `images` images. It is visible only on a terminal.
    pub fn new(images: u64, epochs: u64, shown: bool) -> Self {
        Self {
            bar: output::progress(images, output::WITH_MESSAGE, shown),
            images,
            epochs,
            first: None,
            memory: None,
            next_read: Instant::now() + LOOK_EVERY,
        }
    }

    /// Sets the number of images so far, and the current epoch.
    pub fn update(&mut self, epoch: u64, images: u64) {
        if self.bar.is_hidden() {
            return;
        }
        let now = Instant::now();
        let (since, before) = *self.first.get_or_insert((now, images));
        if now >= self.next_read {
            self.read_memory(now);
        }
        let seconds = (now - since).as_secs_f64();
        let words = Words {
            epoch: (epoch + 1, self.epochs),
            images,
            of: self.images,
            rate: (images > before).then(|| (images - before) as f64 / seconds.max(1e-3)),
            memory: self.memory,
        };
        self.bar.set_position(images);
        self.bar.set_message(words.text());
    }

    fn read_memory(&mut self, now: Instant) {
        let members = pool_processes::pool_of(std::process::id() as i32);
        let total = TreeSample::read(&members).total();
        self.memory = Some(total.pss_bytes - total.pss_input_bytes.min(total.pss_bytes));
        let duration = now.elapsed();
        self.next_read = now + (duration * LOOKS).max(LOOK_EVERY);
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The text after the bar.
struct Words {
    epoch: (u64, u64),
    images: u64,
    of: u64,
    rate: Option<f64>,
    memory: Option<u64>,
}

impl Words {
    fn text(&self) -> String {
        let epoch = match self.epoch {
            (_, 1) => String::new(),
            // The run has no end: a user stops it.
            (n, u64::MAX) => format!("epoch {}, ", grouped(n)),
            (n, of) => format!("epoch {}/{}, ", grouped(n), grouped(of)),
        };
        let memory = self
            .memory
            .map_or(String::new(), |bytes| format!(", {}", output::size(bytes)));
        let (speed, left) = match self.rate {
            Some(images_per_s) => {
                let left = self.of.saturating_sub(self.images) as f64 / images_per_s.max(1e-9);
                // No estimate is shown beyond a year.
                let words = (left < 3.2e7).then(|| format!(", {} left", output::time(left)));
                (format!(", {}/s", rate(images_per_s)), words)
            }
            None => (String::new(), None),
        };
        let left = left.unwrap_or_default();
        format!(
            "{epoch}{} images{speed}{memory}{left}",
            grouped(self.images)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_fit_80_columns_with_the_bar() {
        let words = Words {
            epoch: (12, 90),
            images: 15_374_004,
            of: 115_305_030,
            rate: Some(13_400.4),
            memory: Some(1234 << 20),
        };
        let text = words.text();
        assert_eq!(
            text,
            "epoch 12/90, 15,374,004 images, 13,400/s, 1,234 MiB, 2 h 5 min left"
        );
        assert!(text.len() + 11 <= 80, "{}", text.len());
        let endless = Words {
            epoch: (3, u64::MAX),
            of: u64::MAX,
            memory: None,
            ..words
        };
        assert_eq!(endless.text(), "epoch 3, 15,374,004 images, 13,400/s");
        let first = Words {
            rate: None,
            ..endless
        };
        assert_eq!(first.text(), "epoch 3, 15,374,004 images");
    }
}
