//! Large images first, in size classes.
//!
//! Classes are quantiles of the area, not powers of two. So `classes` determines how random an
//! epoch is: a class is an n-th of all samples, whatever their sizes. Powers of two would put
//! nearly all samples of a usual data set into two classes, and a few giants into their own. Images
//! of equal area are never split, so a data set of one size is one class, which is a plain shuffle.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::error::Result;
use crate::order::key::{DrawKind, OrderKey};
use crate::order::table::SamplerTable;

/// Groups are the size classes, the largest images first.
#[derive(Debug, Clone)]
pub(crate) struct LargestFirst {
    pub(super) table: Arc<SamplerTable>,
}

impl LargestFirst {
    pub(super) fn id_at(&self, key: OrderKey, position: u64) -> u64 {
        let SamplerTable::Groups(table) = &*self.table else {
            return u64::MAX;
        };
        let class = table.group_at(position);
        let (start, length) = table.span(class);
        let within = key.permutation(length.max(1), DrawKind::Class, class);
        table.member(start + within.at(position.saturating_sub(start)))
    }
}

/// The table for the areas of all samples, in at most `classes` classes. An image without a
/// readable header has area 0 and comes last.
///
/// # Errors
/// No memory.
pub(crate) fn size_table(areas: &[u64], classes: u32) -> Result<SamplerTable> {
    let mut members: Vec<u32> = (0..areas.len() as u32).collect();
    let area = |id: u32| areas[id as usize];
    members.sort_unstable_by_key(|&id| (Reverse(area(id)), id));
    let samples = members.len() as u64;
    let classes = u64::from(classes).clamp(1, samples.max(1));
    let mut ends: Vec<u32> = Vec::new();
    for class in 1..=classes {
        let border = (u128::from(samples) * u128::from(class) / u128::from(classes)) as usize;
        // After the last image of that area.
        let last = area(members[border - 1]);
        let end = members.partition_point(|&id| area(id) >= last) as u32;
        if ends.last() != Some(&end) {
            ends.push(end);
        }
    }
    SamplerTable::groups(&ends, &members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn classes_come_from_the_largest_to_the_smallest(
            areas in prop::collection::vec(prop_oneof![0u64..5, 0u64..1 << 40], 1..400),
            classes in 1u32..40, seed: u64, epoch: u64,
        ) {
            let table = size_table(&areas, classes).unwrap();
            let SamplerTable::Groups(groups) = &table else { panic!("no groups") };
            let count = groups.len();
            prop_assert!(count <= u64::from(classes));
            let spans: Vec<_> = (0..count).map(|class| groups.span(class)).collect();
            let order = LargestFirst { table: Arc::new(table) };
            let key = OrderKey { seed, epoch };
            let ids: Vec<u64> = (0..areas.len() as u64).map(|p| order.id_at(key, p)).collect();
            let mut sorted = ids.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..areas.len() as u64).collect::<Vec<_>>());
            let mut above = u64::MAX;
            for (start, length) in spans {
                let class = &ids[start as usize..(start + length) as usize];
                let area = || class.iter().map(|&id| areas[id as usize]);
                prop_assert!(area().max().unwrap() < above, "equal areas are not divided");
                above = area().min().unwrap();
                // A class exceeds its share only for images of equal size.
                let share = (areas.len() as u64).div_ceil(u64::from(classes));
                let alike = area().filter(|&a| a == above).count() as u64;
                prop_assert!(length <= share + alike);
            }
        }
    }

    #[test]
    fn within_a_class_epochs_differ_and_one_size_is_one_class() {
        let order = |areas: &[u64], epoch| {
            let order = LargestFirst {
                table: Arc::new(size_table(areas, 4).unwrap()),
            };
            let key = OrderKey { seed: 1, epoch };
            (0..400).map(|p| order.id_at(key, p)).collect::<Vec<_>>()
        };
        let rising: Vec<u64> = (0..400).collect();
        assert_ne!(order(&rising, 0), order(&rising, 1));
        assert!(order(&rising, 0)[..100].iter().all(|id| *id >= 300));
        let flat = order(&[7; 400], 0);
        assert!(flat[..100].iter().any(|id| *id < 100));
        assert!(flat[..100].iter().any(|id| *id >= 300));
    }
}
