//! The shards that a worker has open: the last ones, each opened once. And the shard that it
//! prefers.
//!
//! Runs in workers, and in the consumer with zero workers. A mapped shard takes addresses, and page
//! tables (1/512 of what was read). Its pages are page cache, which counts for no process. So the
//! number of mapped bytes is limited. A sampler that goes through shards in order needs no more.

use std::fs::File;
use std::ops::Range;

use memmap2::{Advice, Mmap};

use crate::data::index::Index;
use crate::error::SampleFault;
use crate::order::Sampler;

/// Most bytes of shards that stay mapped in a worker: 4 MiB of page tables. A larger shard is
/// mapped alone.
pub(crate) const MAPPED_SHARDS: u64 = 2 << 30;

/// Most shards that stay open, with a descriptor or a mapping each.
const OPEN: usize = 64;

/// An open shard.
pub(crate) trait ShardHandle {
    /// Mapped bytes.
    fn mapped(&self) -> u64;
}

/// The shards that were used last, the newest at the end.
#[derive(Debug)]
pub(crate) struct OpenShards<T> {
    open: Vec<(u64, T)>,
}

impl<T: ShardHandle> OpenShards<T> {
    pub(crate) fn new() -> Self {
        Self {
            open: Vec::with_capacity(OPEN),
        }
    }

    /// Shard `number`, opened by `open` if necessary. After a failure, the next call tries again.
    pub(crate) fn get(
        &mut self,
        number: u64,
        open: impl FnOnce() -> Result<T, SampleFault>,
    ) -> Result<&mut T, SampleFault> {
        match self.open.iter().rposition(|(known, _)| *known == number) {
            Some(at) => self.open[at..].rotate_left(1),
            None => {
                let opened = open()?;
                while self.open.len() == OPEN || self.mapped() + opened.mapped() > MAPPED_SHARDS {
                    // A larger shard is mapped alone.
                    if self.open.is_empty() {
                        break;
                    }
                    self.open.remove(0);
                }
                self.open.push((number, opened));
            }
        }
        // It was found or pushed above.
        let last = self.open.len() - 1;
        Ok(&mut self.open[last].1)
    }

    fn mapped(&self) -> u64 {
        self.open.iter().map(|(_, shard)| shard.mapped()).sum()
    }
}

impl ShardHandle for File {
    fn mapped(&self) -> u64 {
        0
    }
}

/// A mapped shard.
#[derive(Debug)]
pub(crate) struct MappedShard {
    map: Mmap,
    pattern: AccessPattern,
    /// Where the kernel was already advised: one bit per [`PIECE`] bytes.
    advised: Vec<u64>,
}

/// Bytes per bit of [`MappedShard::advised`].
const PIECE: usize = 64 << 10;

impl ShardHandle for MappedShard {
    fn mapped(&self) -> u64 {
        self.map.len() as u64
    }
}

impl MappedShard {
    /// Advises the kernel about the order of reads. If it ignores that, only the speed on a cold
    /// cache changes.
    pub(crate) fn new(map: Mmap, pattern: AccessPattern) -> Self {
        let _ = match pattern {
            // Doubles the read-ahead.
            AccessPattern::InOrder => map.advise(Advice::Sequential),
            // No read-ahead: it would read other samples.
            AccessPattern::Shuffled => map.advise(Advice::Random),
        };
        let pieces = match pattern {
            AccessPattern::InOrder => 0,
            AccessPattern::Shuffled => map.len().div_ceil(PIECE),
        };
        Self {
            advised: vec![0; pieces.div_ceil(64)],
            map,
            pattern,
        }
    }

    pub(crate) fn map(&self) -> &Mmap {
        &self.map
    }

    /// Advises the kernel that this range will be read now. Without read-ahead this reads all of it
    /// at once. Only the first time, since the call costs 1 or 2 microseconds even if the bytes are
    /// in memory.
    pub(crate) fn will_need(&mut self, range: &Range<usize>) {
        if self.pattern == AccessPattern::InOrder {
            return;
        }
        let mut is_new = false;
        for piece in range.start / PIECE..range.end.div_ceil(PIECE) {
            let Some(word) = self.advised.get_mut(piece / 64) else {
                return;
            };
            is_new |= *word & (1 << (piece % 64)) == 0;
            *word |= 1 << (piece % 64);
        }
        if is_new {
            let len = range.end - range.start;
            let _ = self.map.advise_range(Advice::WillNeed, range.start, len);
        }
    }
}

/// The order in which the parts of a shard are read, for advice to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessPattern {
    /// From beginning to end, or within a moving window.
    InOrder,
    /// At random.
    Shuffled,
}

impl AccessPattern {
    pub(crate) fn of(sampler: &Sampler) -> Self {
        match sampler {
            Sampler::Sequential | Sampler::ShardShuffle { .. } => Self::InOrder,
            _ => Self::Shuffled,
        }
    }
}

/// The shard of the current sample. A job whose order goes through shards prefers rows from this
/// shard.
#[derive(Debug)]
pub(crate) struct HomeShard {
    /// Whether there are several shards and neighbours in the order are in the same shard.
    prefers_open: bool,
    shard: Option<u64>,
}

impl HomeShard {
    pub(crate) fn new(index: &Index, pattern: AccessPattern) -> Self {
        Self {
            prefers_open: index.shards() > 1 && pattern == AccessPattern::InOrder,
            shard: None,
        }
    }

    pub(crate) fn has_preference(&self) -> bool {
        self.prefers_open
    }

    /// Sets the shard of sample `id`.
    pub(crate) fn set_current(&mut self, index: &Index, id: u64) {
        if self.prefers_open {
            self.shard = index.part(id).map(|part| part.shard);
        }
    }

    /// Whether a row's sample is in the current shard, or there is none yet. False for a row
    /// without a sample.
    pub(crate) fn prefers(&self, index: &Index, sample: impl FnOnce() -> Option<u64>) -> bool {
        let Some(home) = self.shard else {
            return true;
        };
        let part = sample().and_then(|id| index.part(id));
        part.is_some_and(|part| part.shard == home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FaultKind;

    #[test]
    fn a_worker_stays_in_its_shard_where_the_order_goes_through_shards() {
        let dir = tempfile::tempdir().unwrap();
        let parts = vec![(512, 1), (1024, 1)];
        let two = Index::of_parts(
            dir.path(),
            &[("a.tar", parts.clone()), ("b.tar", parts.clone())],
        );
        let mut home = HomeShard::new(&two, AccessPattern::InOrder);
        assert!(home.has_preference());
        let likes = |home: &HomeShard| {
            [Some(0), Some(1), Some(2), Some(9), None].map(|id| home.prefers(&two, || id))
        };
        assert_eq!(likes(&home), [true; 5]);
        home.set_current(&two, 1);
        assert_eq!(likes(&home), [true, true, false, false, false]);
        home.set_current(&two, 2);
        assert_eq!(likes(&home), [false, false, true, false, false]);

        let one = Index::of_parts(dir.path(), &[("a.tar", parts)]);
        for (index, pattern) in [
            (&two, AccessPattern::Shuffled),
            (&one, AccessPattern::InOrder),
        ] {
            let mut home = HomeShard::new(index, pattern);
            home.set_current(index, 0);
            assert!(!home.has_preference() && home.prefers(index, || Some(3)));
        }
    }

    /// A shard with this number of bytes.
    struct Fake(u64);

    impl ShardHandle for Fake {
        fn mapped(&self) -> u64 {
            self.0
        }
    }

    /// The requested shards that had to be opened.
    fn opened(numbers: &[u64], bytes: impl Fn(u64) -> u64) -> Vec<bool> {
        let mut shards = OpenShards::new();
        let mut all = Vec::new();
        for &number in numbers {
            let mut fresh = false;
            let shard = shards.get(number, || {
                fresh = true;
                Ok(Fake(bytes(number)))
            });
            assert_eq!(shard.unwrap().0, bytes(number));
            assert!(shards.open.len() <= OPEN);
            all.push(fresh);
        }
        all
    }

    #[test]
    fn the_last_shards_stay_mapped_and_no_more() {
        // Room for four. 5 takes the place of 2, which was used longest ago; 2 that
        // of 3; 3 that of 5.
        let numbers = [1, 2, 3, 4, 1, 5, 2, 1, 4, 3];
        let (yes, no) = (true, false);
        let fresh = [yes, yes, yes, yes, no, yes, yes, no, no, yes];
        assert_eq!(opened(&numbers, |_| MAPPED_SHARDS / 4), fresh);
        // One is too large by itself.
        let huge = |number| if number == 2 { 3 * MAPPED_SHARDS } else { 1 };
        assert_eq!(
            opened(&[1, 3, 2, 2, 1, 3], huge),
            [yes, yes, yes, no, yes, yes]
        );
    }

    #[test]
    fn not_too_many_are_open() {
        let twice: Vec<u64> = (0..OPEN as u64 + 1).chain([1, 0]).collect();
        let fresh = opened(&twice, |_| 0);
        assert!(fresh[..=OPEN].iter().all(|&f| f));
        assert_eq!(fresh[OPEN + 1..], [false, true]);
    }

    #[test]
    fn who_cannot_be_opened_is_tried_again() {
        let mut shards = OpenShards::<Fake>::new();
        let fault = || Err(SampleFault::new(FaultKind::Unreadable, "gone"));
        assert!(shards.get(3, fault).is_err());
        assert_eq!(shards.get(3, || Ok(Fake(7))).unwrap().0, 7);
        assert_eq!(shards.get(3, fault).unwrap().0, 7);
    }
}
