//! Queue of the images that are not ready, in the order of the steps that use them.
//!
//! Pure.

use std::collections::VecDeque;

use crate::scene::draw::ViewOrder;

/// Queue of the images that are not ready.
#[derive(Debug)]
pub(crate) struct ImageQueue {
    order: ViewOrder,
    /// For each image, whether it is not ready.
    missing: Vec<bool>,
    upcoming: VecDeque<u32>,
}

/// Number of epochs to look ahead. With several ranks, an epoch does not use every image on this
/// rank.
const EPOCHS: u64 = 4;

impl ImageQueue {
    /// Starts at `step`.
    pub(crate) fn new(order: ViewOrder, images: usize, step: u64) -> Self {
        let mut this = Self {
            order,
            missing: vec![true; images],
            upcoming: VecDeque::new(),
        };
        this.go_to(step);
        this
    }

    /// All images that any step uses, in the order of first use.
    pub(crate) fn images_in_order(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.upcoming.iter().copied().collect();
        if !self.order.shows_all() {
            return all;
        }
        let mut seen = vec![false; self.missing.len()];
        for image in &all {
            seen[*image as usize] = true;
        }
        let rest = seen.iter().enumerate().filter(|(_, seen)| !**seen);
        all.extend(rest.map(|(image, _)| image as u32));
        all
    }

    /// Restarts at another step.
    pub(crate) fn go_to(&mut self, step: u64) {
        let mut wanted = self.missing.clone();
        let mut left = wanted.iter().filter(|wanted| **wanted).count();
        self.upcoming.clear();
        let steps = step..step.saturating_add(EPOCHS.saturating_mul(self.order.len()));
        for step in steps {
            if left == 0 {
                break;
            }
            let image = self.order.image(step);
            let Some(wanted @ true) = wanted.get_mut(image as usize) else {
                continue;
            };
            *wanted = false;
            left -= 1;
            self.upcoming.push_back(image as u32);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.upcoming.is_empty()
    }

    /// Whether the image of `step` is not ready. If so, it becomes the first of the queue.
    pub(crate) fn needs_image(&mut self, step: u64) -> bool {
        let image = self.order.image(step);
        let lacks = self
            .missing
            .get(image as usize)
            .copied()
            .unwrap_or_default();
        if lacks && self.nth(0) != Some(image as u32) {
            // After the epochs that were looked ahead, whose images are all ready.
            self.go_to(step);
        }
        lacks
    }

    /// The n-th image of the queue.
    pub(crate) fn nth(&self, n: usize) -> Option<u32> {
        self.upcoming.get(n).copied()
    }

    /// Records that an image is ready: the first of the queue.
    pub(crate) fn mark_present(&mut self, image: usize) {
        self.upcoming.pop_front();
        if let Some(missing) = self.missing.get_mut(image) {
            *missing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Rank;

    fn queue(shuffles: bool, rank: u32, world: u32, step: u64) -> ImageQueue {
        let order = ViewOrder::new(20, 3, shuffles, Rank::new(rank, world)).unwrap();
        ImageQueue::new(order, 20, step)
    }

    /// Lets everything come as its step does, and says in which order.
    fn all(mut queue: ImageQueue, from: u64, steps: u64) -> Vec<u32> {
        let mut came = Vec::new();
        for step in from..from + steps {
            while queue.needs_image(step) {
                let image = queue.nth(0).unwrap();
                assert_eq!(
                    u64::from(image),
                    queue.order.image(step),
                    "it is needed now"
                );
                queue.mark_present(image as usize);
                came.push(image);
            }
        }
        came
    }

    #[test]
    fn every_image_comes_once_and_when_its_step_does() {
        for (shuffles, world, step) in [(true, 1, 0), (false, 1, 7), (true, 3, 5), (true, 7, 900)] {
            let mut came = all(queue(shuffles, world - 1, world, step), step, 600);
            came.sort_unstable();
            assert_eq!(
                came,
                (0..20).collect::<Vec<_>>(),
                "{shuffles} {world} {step}"
            );
        }
    }

    #[test]
    fn what_a_rank_never_shows_never_comes() {
        let queue = queue(false, 1, 4, 0);
        assert_eq!(queue.images_in_order(), [1, 5, 9, 13, 17]);
        assert_eq!(all(queue, 0, 100), [1, 5, 9, 13, 17]);
    }

    #[test]
    fn all_that_is_shown_some_day_is_known_at_once() {
        let mut images = queue(true, 2, 10, 0).images_in_order();
        assert!(images.len() == 20);
        images.sort_unstable();
        images.dedup();
        assert_eq!(images.len(), 20);
    }

    #[test]
    fn another_step_begins_with_its_own_image() {
        let mut queue = queue(true, 0, 1, 0);
        let first = queue.nth(0).unwrap();
        queue.mark_present(first as usize);
        queue.go_to(11);
        assert!(queue.needs_image(11) && queue.nth(0) == Some(queue.order.image(11) as u32));
        assert!((0..20).all(|n| queue.nth(n) != Some(first)));
        assert_eq!(queue.nth(19), None);
    }
}
