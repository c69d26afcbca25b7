//! When images arrived: the rate of a run and of its parts.
//!
//! Plain data of bounded size, for a run of any length.

use std::time::Instant;

use serde::Serialize;

use crate::run_length::is_measured;

/// Marks that are kept. At twice this number, every second mark is dropped.
const MARKS: usize = 128;

/// Most parts of a one-epoch run whose rates are compared, and the least batches of a part. With
/// fewer batches, single batches would dominate the rate.
const PARTS: usize = 5;
const PART_BATCHES: u64 = 8;

/// The progress of a run at one instant.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mark {
    /// Seconds since the first batch.
    seconds: f64,
    batches: u64,
    /// Images with pixels.
    images: u64,
}

/// Arrivals of batches.
pub struct RunPace {
    /// When the first batch arrived. Seconds count from then.
    first: Option<Instant>,
    last: Mark,
    /// Number of batches between two marks.
    every: u64,
    marks: Vec<Mark>,
    epoch: Option<(u64, Mark)>,
    epochs: Option<RateSpread>,
}

/// Rates of the parts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RateSpread {
    /// `epoch` or `part`: parts of equal numbers of batches.
    pub by: &'static str,
    pub count: u64,
    pub min_images_per_s: f64,
    pub max_images_per_s: f64,
}

impl Default for RunPace {
    fn default() -> Self {
        Self {
            first: None,
            last: Mark {
                seconds: 0.0,
                batches: 0,
                images: 0,
            },
            every: 1,
            marks: Vec::new(),
            epoch: None,
            epochs: None,
        }
    }
}

impl RunPace {
    /// Records a batch of `epoch` with this number of images.
    pub fn add(&mut self, epoch: u64, images: u64, at: Instant) {
        let first = *self.first.get_or_insert(at);
        let before = self.last;
        self.last = Mark {
            seconds: (at - first).as_secs_f64(),
            batches: before.batches + 1,
            images: before.images + images,
        };
        match self.epoch {
            Some((known, _)) if known == epoch => {}
            Some((_, began)) => {
                self.end_epoch(began, before);
                self.epoch = Some((epoch, before));
            }
            // The images of the first batch were made before it arrived.
            None => self.epoch = Some((epoch, self.last)),
        }
        if self.last.batches.is_multiple_of(self.every) || self.marks.is_empty() {
            self.marks.push(self.last);
        }
        if self.marks.len() >= 2 * MARKS {
            self.every *= 2;
            let (first, every) = (self.marks[0], self.every);
            self.marks
                .retain(|m| *m == first || m.batches.is_multiple_of(every));
        }
    }

    fn end_epoch(&mut self, began: Mark, ended: Mark) {
        let Some(rate) = rate_of_epoch(began, ended) else {
            return;
        };
        let spread = self.epochs.get_or_insert(RateSpread::new("epoch"));
        spread.add(rate);
    }

    /// When the first batch arrived.
    pub fn first(&self) -> Option<Instant> {
        self.first
    }

    /// Images per second after the first batch, for a run that ended then. None if the run was too
    /// short: up to `ahead` batches may be made before the first arrives.
    pub fn images_per_s(&self, ended: Instant, ahead: u64) -> Option<f64> {
        let first_images = self.marks.first()?.images;
        let seconds = (ended - self.first?).as_secs_f64();
        is_measured(self.last.batches, ahead, seconds)
            .then(|| (self.last.images - first_images) as f64 / seconds)
    }

    /// Rates of epochs, or of parts if there are fewer than two epochs. None if the run is too
    /// short for parts.
    pub fn spread(&self) -> Option<RateSpread> {
        let mut epochs = self.epochs;
        if let (Some(spread), Some((_, began))) = (&mut epochs, self.epoch)
            && let Some(rate) = rate_of_epoch(began, self.last)
        {
            spread.add(rate);
        }
        epochs
            .filter(|spread| spread.count > 1)
            .or_else(|| self.parts())
    }

    fn parts(&self) -> Option<RateSpread> {
        let first = self.marks.first()?;
        let part = (self.last.batches - first.batches) / PARTS as u64;
        if part < PART_BATCHES.max(self.every) {
            return None;
        }
        let mut spread = RateSpread::new("part");
        let mut began = *first;
        for mark in &self.marks {
            if mark.batches >= began.batches + part
                && let Some(rate) = rate(began, *mark)
            {
                spread.add(rate);
                began = *mark;
            }
        }
        Some(spread)
    }
}

/// Rates of an epoch, if it has enough batches. The batches of a short epoch were all made before
/// the consumer requested them.
fn rate_of_epoch(from: Mark, to: Mark) -> Option<f64> {
    rate(from, to).filter(|_| to.batches - from.batches >= PART_BATCHES)
}

/// Images per second between two marks, if time passed between them.
fn rate(from: Mark, to: Mark) -> Option<f64> {
    let seconds = to.seconds - from.seconds;
    let images = to.images.saturating_sub(from.images);
    (seconds > 0.0 && to.batches > from.batches).then(|| images as f64 / seconds)
}

impl RateSpread {
    fn new(by: &'static str) -> Self {
        Self {
            by,
            count: 0,
            min_images_per_s: f64::INFINITY,
            max_images_per_s: 0.0,
        }
    }

    fn add(&mut self, rate: f64) {
        self.count += 1;
        self.min_images_per_s = self.min_images_per_s.min(rate);
        self.max_images_per_s = self.max_images_per_s.max(rate);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Batches of 10 images, each at this delay (ms) after the batch before.
    fn run(epochs: &[(u64, u64, u64)]) -> (RunPace, Instant) {
        let mut at = Instant::now() + Duration::from_secs(1);
        let mut pace = RunPace::default();
        for &(epoch, batches, ms) in epochs {
            for _ in 0..batches {
                pace.add(epoch, 10, at);
                at += Duration::from_millis(ms);
            }
        }
        let first = pace.first().unwrap();
        let ended = first + Duration::from_secs_f64(pace.last.seconds);
        (pace, ended)
    }

    #[test]
    fn a_rate_counts_from_the_first_batch() {
        let (pace, ended) = run(&[(0, 11, 100)]);
        assert!((pace.images_per_s(ended, 3).unwrap() - 100.0).abs() < 1e-6);
    }

    #[test]
    fn a_run_that_is_too_short_has_no_rate() {
        for (batches, ms, ahead, is_measured) in [
            (1, 1000, 1, false),
            // All of them may have been made before the first arrived.
            (3, 1000, 3, false),
            (4, 1000, 3, true),
            // 30 ms.
            (31, 1, 3, false),
            (52, 1, 3, true),
            (2, 1000, 0, true),
        ] {
            let (pace, ended) = run(&[(0, batches, ms)]);
            let rate = pace.images_per_s(ended, ahead);
            assert_eq!(rate.is_some(), is_measured, "{batches} {ms} {ahead}");
        }
        assert_eq!(RunPace::default().images_per_s(Instant::now(), 3), None);
    }

    #[test]
    fn epochs_have_rates_of_their_own() {
        let (pace, ..) = run(&[(0, 11, 100), (1, 10, 50), (2, 10, 200)]);
        let spread = pace.spread().unwrap();
        assert_eq!((spread.by, spread.count), ("epoch", 3));
        // The step between two epochs belongs to the later one.
        assert!((spread.min_images_per_s - 100.0 / 1.85).abs() < 1e-6);
        assert!((spread.max_images_per_s - 100.0 / 0.55).abs() < 1e-6);
        // Batches made ahead do not show the rate of the run.
        assert_eq!(run(&[(0, 3, 100), (1, 3, 1), (2, 3, 100)]).0.spread(), None);
    }

    #[test]
    fn one_epoch_is_compared_in_parts_when_it_has_enough_batches() {
        assert_eq!(run(&[(0, 40, 10)]).0.spread(), None);
        let (pace, ..) = run(&[(0, 41, 10)]);
        let spread = pace.spread().unwrap();
        assert_eq!((spread.by, spread.count), ("part", 5));
        assert!((spread.min_images_per_s - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn marks_are_bounded_and_keep_the_first() {
        let (pace, ..) = run(&[(0, 100_000, 1)]);
        assert!(pace.marks.len() < 2 * MARKS);
        assert!(pace.marks.len() > MARKS / 2);
        assert_eq!(pace.marks[0].batches, 1);
        assert!(pace.marks.is_sorted_by_key(|m| m.batches));
        assert_eq!(pace.spread().unwrap().by, "part");
    }
}
