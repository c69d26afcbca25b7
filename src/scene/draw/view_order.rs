//! The image of each step of a run of views.
//!
//! Pure: a function of seed, rank and step.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::order::{KeyedPermutation, Rank};

/// The images of a split, epoch after epoch without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ViewOrder {
    images: u64,
    seed: u64,
    shuffles: bool,
    rank: Rank,
}

impl ViewOrder {
    /// Each epoch has a new order of all images, or always the scene's order. Position p of an
    /// epoch belongs to rank `p % world`.
    ///
    /// # Errors
    /// A rank that does not exist, or that has no image.
    pub(crate) fn new(images: u64, seed: u64, shuffles: bool, rank: Rank) -> Result<Self> {
        if rank.rank >= rank.world {
            return Err(Error::option(
                "rank",
                format!(
                    "`rank` {} of {} does not exist: ranks count from 0",
                    rank.rank, rank.world
                ),
            ));
        }
        if images < u64::from(rank.world) {
            return Err(Error::option(
                "rank",
                format!(
                    "{images} images are too few for {} ranks: each needs at least one",
                    rank.world
                ),
            ));
        }
        Ok(Self {
            images,
            seed,
            shuffles,
            rank,
        })
    }

    /// Steps of an epoch of this rank.
    pub(crate) fn len(&self) -> u64 {
        let (rank, world) = (u64::from(self.rank.rank), u64::from(self.rank.world));
        self.images.saturating_sub(rank).div_ceil(world)
    }

    /// Whether this rank returns every image in some epoch.
    pub(crate) fn shows_all(&self) -> bool {
        self.shuffles || self.rank.world == 1
    }

    /// The image of a step, by its number in the split.
    pub(crate) fn image(&self, step: u64) -> u64 {
        let (epoch, turn) = (step / self.len(), step % self.len());
        let position = turn * u64::from(self.rank.world) + u64::from(self.rank.rank);
        match self.shuffles {
            true => KeyedPermutation::new(self.images, self.seed, epoch).at(position),
            false => position,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(images: u64, shuffles: bool, rank: u32, world: u32) -> ViewOrder {
        ViewOrder::new(images, 5, shuffles, Rank::new(rank, world)).unwrap()
    }

    #[test]
    fn the_ranks_of_an_epoch_show_each_image_once() {
        for world in [1, 2, 3, 7, 10] {
            for epoch in 0..3 {
                let mut shown = vec![0; 10];
                for rank in 0..world {
                    let order = order(10, true, rank, world);
                    let steps = epoch * order.len()..(epoch + 1) * order.len();
                    for step in steps {
                        shown[order.image(step) as usize] += 1;
                    }
                }
                assert_eq!(shown, [1; 10], "{world} ranks, epoch {epoch}");
            }
        }
    }

    #[test]
    fn each_epoch_has_another_order_or_always_the_scenes() {
        let of = |order: ViewOrder, epoch: u64| -> Vec<u64> {
            (0..50).map(|at| order.image(epoch * 50 + at)).collect()
        };
        let shuffled = order(50, true, 0, 1);
        assert_ne!(of(shuffled, 0), of(shuffled, 1));
        let straight: Vec<u64> = (0..50).collect();
        assert_ne!(of(shuffled, 0), straight);
        assert_eq!(of(order(50, false, 0, 1), 7), straight);
        let second = order(5, false, 1, 2);
        assert_eq!([0, 1, 2, 3].map(|step| second.image(step)), [1, 3, 1, 3]);
    }

    #[test]
    fn ranks_without_an_image_are_refused() {
        let refused = |rank, world| {
            let e = ViewOrder::new(3, 0, true, Rank::new(rank, world));
            e.unwrap_err().to_string()
        };
        assert!(refused(2, 2).contains("`rank` 2 of 2"));
        assert!(refused(0, 4).contains("3 images are too few for 4 ranks"));
    }
}
