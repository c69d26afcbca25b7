//! What an order needs to know of the data, in shared memory: once for all
//! processes.
//!
//! Made in the consumer from labels, weights or sizes; mapped read-only by
//! coordinator and workers. Sealed, so it is what it was when its hash was taken.
//! Never in here: which sample comes when.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use twox_hash::XxHash3_128;

use super::sampler::{Sampler, TableForm};
use crate::error::{Error, Result};
use crate::sys::sealed::SealedBytes;

/// The table of a sampler that needs one.
#[derive(Debug)]
pub(crate) enum SamplerTable {
    Groups(GroupTable),
    Sums(SumTable),
}

/// Samples in groups, one group behind the other: 4 bytes a sample and 4 a group.
///
/// ```text
/// number of groups | end of each group | samples of group 0 | of group 1 | ...
///               u32               u32s                   u32s
/// ```
#[derive(Debug)]
pub(crate) struct GroupTable {
    sealed: SealedBytes,
    groups: usize,
}

/// Running sums over all samples in order: 8 bytes a sample.
#[derive(Debug)]
pub(crate) struct SumTable {
    sealed: SealedBytes,
}

impl SamplerTable {
    /// Seals samples in groups: `ends` are the places in `members` behind each.
    pub(super) fn groups(ends: &[u32], members: &[u32]) -> Result<Self> {
        let count = [ends.len() as u32];
        let parts = [&count[..], ends, members].map(bytemuck::cast_slice);
        let sealed = SealedBytes::new("featherload-order", &parts)?;
        GroupTable::open(sealed, members.len() as u64).map(Self::Groups)
    }

    /// Seals the running sums of all samples.
    pub(super) fn sums(sums: &[f64]) -> Result<Self> {
        let sealed = SealedBytes::new("featherload-order", &[bytemuck::cast_slice(sums)])?;
        SumTable::open(sealed, sums.len() as u64).map(Self::Sums)
    }

    /// The table of `sampler` over `samples` samples, out of another process.
    pub(crate) fn from_fd(fd: OwnedFd, sampler: &Sampler, samples: u64) -> Result<Self> {
        let sealed = SealedBytes::from_fd(fd)?;
        match sampler.table_form() {
            Some(TableForm::Groups) => GroupTable::open(sealed, samples).map(Self::Groups),
            Some(TableForm::Sums) => SumTable::open(sealed, samples).map(Self::Sums),
            None => Err(Error::protocol(format!(
                "the sampler {sampler} has no table, and one was received"
            ))),
        }
    }

    /// The same shared memory, held once more.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let fd = self
            .as_fd()
            .try_clone_to_owned()
            .map_err(|e| Error::io("duplicate the descriptor of the sampler's table", e))?;
        let sealed = SealedBytes::from_fd(fd)?;
        Ok(match self {
            Self::Groups(t) => Self::Groups(GroupTable {
                sealed,
                groups: t.groups,
            }),
            Self::Sums(_) => Self::Sums(SumTable { sealed }),
        })
    }

    /// Fingerprint of the content, as hexadecimal digits.
    pub(crate) fn hash(&self) -> String {
        format!("{:032x}", XxHash3_128::oneshot(self.sealed().bytes()))
    }

    /// Bytes of the table.
    pub(crate) fn bytes(&self) -> u64 {
        self.sealed().bytes().len() as u64
    }

    fn sealed(&self) -> &SealedBytes {
        match self {
            Self::Groups(t) => &t.sealed,
            Self::Sums(t) => &t.sealed,
        }
    }
}

impl AsFd for SamplerTable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sealed().as_fd()
    }
}

/// A map begins on a page, so only its length can be wrong, and that was looked
/// at when it was opened.
fn numbers<T: bytemuck::AnyBitPattern>(sealed: &SealedBytes) -> &[T] {
    bytemuck::try_cast_slice(sealed.bytes()).unwrap_or_default()
}

impl GroupTable {
    fn open(sealed: SealedBytes, samples: u64) -> Result<Self> {
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
        let whole = ends.last().is_some_and(|&end| u64::from(end) == samples)
            && (rest.len() - groups) as u64 == samples;
        // No group is empty, so the ends rise.
        if !whole || ends[0] == 0 || ends.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(wrong());
        }
        Ok(Self { sealed, groups })
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
        all.get(1 + self.groups..).unwrap_or_default()
    }

    /// The group that the place is in, of all groups one behind the other.
    pub(super) fn group_at(&self, place: u64) -> u64 {
        self.ends().partition_point(|&end| u64::from(end) <= place) as u64
    }

    /// First place of a group, and its number of samples.
    pub(super) fn span(&self, group: u64) -> (u64, u64) {
        let ends = self.ends();
        let end = |group: Option<u64>| {
            let end = group.and_then(|g| ends.get(usize::try_from(g).ok()?));
            end.copied().map_or(0, u64::from)
        };
        let start = end(group.checked_sub(1));
        (start, end(Some(group)).saturating_sub(start))
    }

    /// The sample at a place.
    pub(super) fn member(&self, place: u64) -> u64 {
        let at = usize::try_from(place).ok();
        let id = at.and_then(|at| self.members().get(at));
        // No sample: its path is empty, which is a failed row.
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
    use crate::plan::{IdentityProb, Weights};

    const GROUPED: Sampler = Sampler::Identity {
        per_id: 2,
        prob: IdentityProb::SampleAvg,
    };
    const SUMMED: Sampler = Sampler::Weighted {
        weights: Weights::Given,
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
        assert_eq!(other.try_clone().unwrap().hash(), table.hash());
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
        assert!(SamplerTable::sums(&[]).is_err());
        assert!(SamplerTable::sums(&[0.0]).is_err());
    }
}
