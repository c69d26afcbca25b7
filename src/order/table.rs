//! The data that a sampler needs, in memory shared by all processes.
//!
//! The consumer makes it from labels, weights or sizes. Coordinator and workers map it read-only.
//! It is sealed, so it still matches its hash. Never in here: which sample comes when.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use twox_hash::XxHash3_128;

use super::given_orders::GivenOrders;
use super::sampler::{Sampler, TableForm};
use crate::error::{Error, Result};
use crate::sys::sealed_bytes::SealedBytes;

/// The table of a sampler that needs one.
#[derive(Debug)]
pub(crate) enum SamplerTable {
    Groups(GroupTable),
    Sums(SumTable),
    Orders(GivenOrders),
}

/// Samples in consecutive groups: 4 bytes per sample and 4 per group. Groups with their own weights
/// or two numbers take 8 bytes each in addition.
///
/// ```text
/// number of groups | end of each group | samples of group 0 | of group 1 | ... | of each group
///               u32               u32s                   u32s                   pairs of u32
/// ```
///
/// The pairs are running weights, low half first, or the numbers of buckets.
#[derive(Debug)]
pub(crate) struct GroupTable {
    sealed: SealedBytes,
    groups: usize,
    pairs: GroupPairs,
}

/// What the pairs of numbers at the end of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupPairs {
    None,
    Weights,
    /// Of a bucket: height and width of its rows, or its rows and the most patches of one.
    Numbers,
}

/// Running sums over all samples in order: 8 bytes per sample.
#[derive(Debug)]
pub(crate) struct SumTable {
    sealed: SealedBytes,
}

impl SamplerTable {
    /// Seals samples in groups; `ends` are the end positions of groups in `members`.
    pub(super) fn groups(ends: &[u32], members: &[u32]) -> Result<Self> {
        let count = [ends.len() as u32];
        let parts = [&count[..], ends, members].map(bytemuck::cast_slice);
        let sealed = SealedBytes::new("featherload-order", &parts)?;
        GroupTable::open(sealed, members.len() as u64).map(Self::Groups)
    }

    /// The same, with a weight per group, as running sums.
    pub(super) fn weighted_groups(ends: &[u32], members: &[u32], sums: &[u64]) -> Result<Self> {
        let sums: Vec<[u32; 2]> = (sums.iter())
            .map(|sum| [*sum as u32, (sum >> 32) as u32])
            .collect();
        let sealed = Self::with_pairs(ends, members, &sums)?;
        GroupTable::open(sealed, members.len() as u64).map(Self::Groups)
    }

    /// The same, with a height and a width per group.
    pub(super) fn sized_groups(
        ends: &[u32],
        members: &[u32],
        sizes: &[(u32, u32)],
    ) -> Result<Self> {
        let sizes: Vec<[u32; 2]> = sizes.iter().map(|size| [size.0, size.1]).collect();
        Self::paired_groups(ends, members, &sizes)
    }

    /// The same, with two numbers per group that are not 0.
    pub(super) fn paired_groups(ends: &[u32], members: &[u32], pairs: &[[u32; 2]]) -> Result<Self> {
        let sealed = Self::with_pairs(ends, members, pairs)?;
        GroupTable::open_paired(sealed, members.len() as u64).map(Self::Groups)
    }

    fn with_pairs(ends: &[u32], members: &[u32], pairs: &[[u32; 2]]) -> Result<SealedBytes> {
        let count = [ends.len() as u32];
        let pairs = pairs.as_flattened();
        let parts = [&count[..], ends, members, pairs].map(bytemuck::cast_slice);
        SealedBytes::new("featherload-order", &parts)
    }

    /// Seals the running sums of all samples.
    pub(super) fn sums(sums: &[f64]) -> Result<Self> {
        let sealed = SealedBytes::new("featherload-order", &[bytemuck::cast_slice(sums)])?;
        SumTable::open(sealed, sums.len() as u64).map(Self::Sums)
    }

    /// Room for the orders of two epochs of `rows` samples each.
    pub(crate) fn orders(rows: u64) -> Result<Self> {
        GivenOrders::new(rows).map(Self::Orders)
    }

    /// Maps a table from another process; it must be one for `sampler` over `samples` samples.
    pub(crate) fn from_fd(fd: OwnedFd, sampler: &Sampler, samples: u64) -> Result<Self> {
        if let Sampler::Given { num_samples } = *sampler {
            return GivenOrders::from_fd(fd, num_samples).map(Self::Orders);
        }
        let sealed = SealedBytes::from_fd(fd)?;
        match sampler.table_form() {
            Some(TableForm::Groups) => GroupTable::open(sealed, samples).map(Self::Groups),
            Some(TableForm::Buckets) => GroupTable::open_paired(sealed, samples).map(Self::Groups),
            Some(TableForm::Sums) => SumTable::open(sealed, samples).map(Self::Sums),
            _ => Err(Error::protocol(format!(
                "the sampler {sampler} has no table, and one was received"
            ))),
        }
    }

    /// Fingerprint of the content, as hexadecimal digits. None for orders that change.
    pub(crate) fn hash(&self) -> Option<String> {
        let sealed = self.sealed()?;
        Some(format!("{:032x}", XxHash3_128::oneshot(sealed.bytes())))
    }

    /// Size of the table in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Orders(orders) => orders.bytes(),
            _ => self
                .sealed()
                .map_or(0, |sealed| sealed.bytes().len() as u64),
        }
    }

    /// The orders, if the caller gives them.
    pub(crate) fn given_orders(&self) -> Option<&GivenOrders> {
        match self {
            Self::Orders(orders) => Some(orders),
            _ => None,
        }
    }

    fn sealed(&self) -> Option<&SealedBytes> {
        match self {
            Self::Groups(t) => Some(&t.sealed),
            Self::Sums(t) => Some(&t.sealed),
            Self::Orders(_) => None,
        }
    }
}

impl AsFd for SamplerTable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Groups(t) => t.sealed.as_fd(),
            Self::Sums(t) => t.sealed.as_fd(),
            Self::Orders(orders) => orders.as_fd(),
        }
    }
}

/// A mapping begins on a page, so only its length can be wrong, and that was checked when it was
/// opened.
fn numbers<T: bytemuck::AnyBitPattern>(sealed: &SealedBytes) -> &[T] {
    bytemuck::try_cast_slice(sealed.bytes()).unwrap_or_default()
}

impl GroupTable {
    /// Groups with or without weights.
    fn open(sealed: SealedBytes, samples: u64) -> Result<Self> {
        let table = Self::parse(sealed, samples, GroupPairs::Weights)?;
        // Weights are positive, so their sums increase from 0.
        let rises = |g: u64| table.weight_before(g) < table.weight_before(g + 1);
        if table.is_weighted() && !(0..table.len()).all(rises) {
            return Err(Error::protocol(
                "the received weights of groups do not increase",
            ));
        }
        Ok(table)
    }

    /// Groups with two numbers each, which are not 0.
    fn open_paired(sealed: SealedBytes, samples: u64) -> Result<Self> {
        let table = Self::parse(sealed, samples, GroupPairs::Numbers)?;
        let has_pair = |group| table.pair_of(group).is_some_and(|pair| !pair.contains(&0));
        match (0..table.len()).all(has_pair) {
            true => Ok(table),
            false => Err(Error::protocol("a received bucket has no size")),
        }
    }

    /// `pairs`: what the numbers after the samples are, if there are any.
    fn parse(sealed: SealedBytes, samples: u64, pairs: GroupPairs) -> Result<Self> {
        let wrong = || {
            Error::protocol(format!(
                "the received table of {} bytes does not group {samples} samples",
                sealed.bytes().len()
            ))
        };
        let all = numbers::<u32>(&sealed);
        let (&groups, rest) = all.split_first().ok_or_else(wrong)?;
        let groups = groups as usize;
        let ends = rest.get(..groups).ok_or_else(wrong)?;
        let behind = (rest.len() - groups) as u64;
        let has_pairs = samples.checked_add(2 * groups as u64) == Some(behind);
        let whole = ends.last().is_some_and(|&end| u64::from(end) == samples)
            && (behind == samples || has_pairs);
        // No group is empty, so the ends increase.
        if !whole || ends[0] == 0 || ends.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(wrong());
        }
        Ok(Self {
            sealed,
            groups,
            pairs: match has_pairs {
                true => pairs,
                false => GroupPairs::None,
            },
        })
    }

    /// Number of groups.
    pub(super) fn len(&self) -> u64 {
        self.groups as u64
    }

    /// Number of samples.
    pub(super) fn samples(&self) -> u64 {
        self.members().len() as u64
    }

    fn ends(&self) -> &[u32] {
        let all = numbers::<u32>(&self.sealed);
        all.get(1..=self.groups).unwrap_or_default()
    }

    fn members(&self) -> &[u32] {
        let all = numbers::<u32>(&self.sealed);
        let end = match self.pairs {
            GroupPairs::None => all.len(),
            GroupPairs::Weights | GroupPairs::Numbers => all.len().saturating_sub(2 * self.groups),
        };
        all.get(1 + self.groups..end).unwrap_or_default()
    }

    /// The two numbers of a group.
    fn pair(&self, group: usize) -> Option<[u32; 2]> {
        let all = numbers::<u32>(&self.sealed);
        let pairs = all.get(all.len().saturating_sub(2 * self.groups)..)?;
        pairs.as_chunks::<2>().0.get(group).copied()
    }

    /// The two numbers of a group. None if groups have none.
    pub(super) fn pair_of(&self, group: u64) -> Option<[u32; 2]> {
        match self.pairs {
            GroupPairs::Numbers => self.pair(usize::try_from(group).ok()?),
            GroupPairs::None | GroupPairs::Weights => None,
        }
    }

    /// Sum of weights of all groups before this one.
    fn weight_before(&self, group: u64) -> u64 {
        let Some(group) = usize::try_from(group).ok().and_then(|g| g.checked_sub(1)) else {
            return 0;
        };
        match self.pair(group) {
            Some([low, high]) => u64::from(high) << 32 | u64::from(low),
            None => 0,
        }
    }

    /// Whether weights differ from group sizes.
    pub(super) fn is_weighted(&self) -> bool {
        self.pairs == GroupPairs::Weights
    }

    /// Sum of all weights; without weights, the number of samples.
    pub(super) fn weight(&self) -> u64 {
        match self.is_weighted() {
            true => self.weight_before(self.len()),
            false => self.samples(),
        }
    }

    /// The group at an offset below the sum of weights, with the offset of its start and its
    /// weight.
    pub(super) fn at_weight(&self, place: u64) -> (u64, u64, u64) {
        if !self.is_weighted() {
            let group = self.group_at(place);
            let (start, length) = self.span(group);
            return (group, start, length);
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.weight_before(middle + 1) <= place {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let start = self.weight_before(low);
        (
            low,
            start,
            self.weight_before(low + 1).saturating_sub(start),
        )
    }

    /// The group that contains an offset into all groups.
    pub(super) fn group_at(&self, place: u64) -> u64 {
        self.ends().partition_point(|&end| u64::from(end) <= place) as u64
    }

    /// First offset of a group, and its number of samples.
    pub(super) fn span(&self, group: u64) -> (u64, u64) {
        let ends = self.ends();
        let end = |group: Option<u64>| {
            let end = group.and_then(|g| ends.get(usize::try_from(g).ok()?));
            end.copied().map_or(0, u64::from)
        };
        let start = end(group.checked_sub(1));
        (start, end(Some(group)).saturating_sub(start))
    }

    /// The sample at an offset.
    pub(super) fn member(&self, place: u64) -> u64 {
        let at = usize::try_from(place).ok();
        let id = at.and_then(|at| self.members().get(at));
        // Not a sample: its path is empty, so the row fails.
        id.copied().map_or(u64::MAX, u64::from)
    }
}

impl SumTable {
    fn open(sealed: SealedBytes, samples: u64) -> Result<Self> {
        let bytes = sealed.bytes().len() as u64;
        let table = Self { sealed };
        let sums = table.sums();
        if Some(bytes) != samples.checked_mul(8) || !sums.last().is_some_and(|s| *s > 0.0) {
            return Err(Error::protocol(format!(
                "the received sums have {bytes} bytes, {samples} samples need 8 each"
            )));
        }
        Ok(table)
    }

    pub(super) fn sums(&self) -> &[f64] {
        numbers(&self.sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{IdentityProb, SampleWeights};

    const GROUPED: Sampler = Sampler::Identity {
        per_id: 2,
        prob: IdentityProb::SampleAvg,
    };
    const SUMMED: Sampler = Sampler::Weighted {
        weights: SampleWeights::Given,
        num_samples: None,
    };

    fn sent(table: &SamplerTable) -> OwnedFd {
        table.as_fd().try_clone_to_owned().unwrap()
    }

    #[test]
    fn another_process_sees_the_same_table() {
        let table = SamplerTable::groups(&[2, 3, 5], &[4, 0, 2, 1, 3]).unwrap();
        let other = SamplerTable::from_fd(sent(&table), &GROUPED, 5).unwrap();
        assert_eq!(other.hash(), table.hash());
        let SamplerTable::Groups(other) = other else {
            panic!("no groups");
        };
        assert_eq!((other.len(), other.samples()), (3, 5));
        let spans: Vec<_> = (0..4).map(|g| other.span(g)).collect();
        assert_eq!(spans, [(0, 2), (2, 1), (3, 2), (5, 0)]);
        assert_eq!(other.span(u64::MAX).1, 0);
        let groups: Vec<_> = (0..6).map(|p| other.group_at(p)).collect();
        assert_eq!(groups, [0, 0, 1, 2, 2, 3]);
        let members: Vec<_> = (0..6).map(|p| other.member(p)).collect();
        assert_eq!(members, [4, 0, 2, 1, 3, u64::MAX]);

        let weighted =
            SamplerTable::weighted_groups(&[2, 3, 5], &[4, 0, 2, 1, 3], &[7, 8, 1 << 40]).unwrap();
        assert_ne!(weighted.hash(), table.hash());
        let SamplerTable::Groups(other) =
            SamplerTable::from_fd(sent(&weighted), &GROUPED, 5).unwrap()
        else {
            panic!("no groups");
        };
        assert_eq!(
            (other.len(), other.samples(), other.weight()),
            (3, 5, 1 << 40)
        );
        let at: Vec<_> = [0, 6, 7, 8, 1 << 39].map(|p| other.at_weight(p)).into();
        let last = (2, 8, (1 << 40) - 8);
        assert_eq!(at, [(0, 0, 7), (0, 0, 7), (1, 7, 1), last, last]);
        let members: Vec<_> = (0..6).map(|p| other.member(p)).collect();
        assert_eq!(members, [4, 0, 2, 1, 3, u64::MAX]);

        let sums = SamplerTable::sums(&[0.0, 1.5, 1.5, 4.0]).unwrap();
        assert_ne!(sums.hash(), table.hash());
        let SamplerTable::Sums(other) = SamplerTable::from_fd(sent(&sums), &SUMMED, 4).unwrap()
        else {
            panic!("no sums");
        };
        assert_eq!(other.sums(), [0.0, 1.5, 1.5, 4.0]);
    }

    #[test]
    fn what_is_no_table_of_these_samples_is_refused() {
        let table = SamplerTable::groups(&[1, 2, 3], &[1, 0, 2]).unwrap();
        let sums = SamplerTable::sums(&[1.0, 2.0]).unwrap();
        for samples in [0, 2, 4, u64::MAX] {
            assert!(SamplerTable::from_fd(sent(&table), &GROUPED, samples).is_err());
        }
        for samples in [0, 1, 3, u64::MAX] {
            assert!(SamplerTable::from_fd(sent(&sums), &SUMMED, samples).is_err());
        }
        assert!(SamplerTable::from_fd(sent(&table), &SUMMED, 3).is_err());
        assert!(SamplerTable::from_fd(sent(&sums), &GROUPED, 2).is_err());
        assert!(SamplerTable::from_fd(sent(&sums), &Sampler::Shuffle, 2).is_err());
        for ends in [&[3, 2, 3][..], &[0, 3], &[2, 2, 3], &[2], &[4], &[]] {
            assert!(SamplerTable::groups(ends, &[1, 0, 2]).is_err(), "{ends:?}");
        }
        for sums in [&[0, 2, 3][..], &[1, 1, 2], &[2, 1, 3], &[1, 2]] {
            assert!(SamplerTable::weighted_groups(&[1, 2, 3], &[1, 0, 2], sums).is_err());
        }
        assert!(SamplerTable::sums(&[]).is_err());
        assert!(SamplerTable::sums(&[0.0]).is_err());
    }
}
