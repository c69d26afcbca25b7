//! The shards that a worker has open: the last few, each opened once.
//!
//! Runs in workers, and in the consumer with zero workers. A mapped shard takes
//! addresses, and of the machine's memory what its page tables take (1/512 of
//! what was read of it); its pages are page cache, which belongs to nobody. So
//! few stay open, and the sampler that goes by shards needs no more.

use std::ops::Range;

use memmap2::{Advice, Mmap};

use crate::error::SampleFault;
use crate::plan::Sampler;

/// Shards that stay open: one that is read, the next, and two for windows that
/// reach over them.
const OPEN: usize = 4;

/// The last shards, the one that was used last at the end.
#[derive(Debug)]
pub(super) struct Shards<T> {
    open: Vec<(u64, T)>,
    pattern: Pattern,
}

impl<T> Shards<T> {
    pub(super) fn new(pattern: Pattern) -> Self {
        Self {
            open: Vec::with_capacity(OPEN),
            pattern,
        }
    }

    pub(super) fn pattern(&self) -> Pattern {
        self.pattern
    }

    /// Shard `number`, opened by `open` unless it is. Who fails to open is asked
    /// again the next time.
    pub(super) fn get(
        &mut self,
        number: u64,
        open: impl FnOnce() -> Result<T, SampleFault>,
    ) -> Result<&T, SampleFault> {
        match self.open.iter().rposition(|(known, _)| *known == number) {
            Some(at) => self.open[at..].rotate_left(1),
            None => {
                let opened = open()?;
                if self.open.len() == OPEN {
                    self.open.remove(0);
                }
                self.open.push((number, opened));
            }
        }
        // One was pushed, or found.
        let last = self.open.len() - 1;
        Ok(&self.open[last].1)
    }
}

/// In which order the parts of a shard are asked for, which is what storage is
/// told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// From its beginning to its end, or within a window that moves so.
    InOrder,
    /// Here and there.
    Shuffled,
}

impl Pattern {
    pub(crate) fn of(sampler: &Sampler) -> Self {
        match sampler {
            Sampler::Sequential | Sampler::ShardShuffle { .. } => Self::InOrder,
            _ => Self::Shuffled,
        }
    }

    /// Says it of a map that was just made. Advice that is not taken changes
    /// nothing but speed on a cold cache.
    pub(super) fn advise(self, map: &Mmap) {
        let _ = match self {
            // Twice the read-ahead.
            Self::InOrder => map.advise(Advice::Sequential),
            // None: it would be of other samples.
            Self::Shuffled => map.advise(Advice::Random),
        };
    }

    /// Without read-ahead all pages of a sample are asked for at once.
    pub(super) fn will_need(self, map: &Mmap, range: &Range<u64>) {
        if self == Self::Shuffled {
            let len = (range.end - range.start) as usize;
            let _ = map.advise_range(Advice::WillNeed, range.start as usize, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FaultKind;

    #[test]
    fn the_last_shards_stay_open_and_no_more() {
        let mut shards = Shards::new(Pattern::InOrder);
        let mut opened = Vec::new();
        let mut get = |number: u64| {
            let mut fresh = false;
            let value = shards.get(number, || {
                fresh = true;
                Ok(number * 10)
            });
            assert_eq!(*value.unwrap(), number * 10);
            opened.push(fresh);
        };
        for number in [1, 2, 3, 4, 1, 5, 2, 1, 4, 3] {
            get(number);
        }
        // 5 took the place of 2, which was used longest ago; 2 that of 3; 3 that of 5.
        let fresh = [
            true, true, true, true, false, true, true, false, false, true,
        ];
        assert_eq!(opened, fresh);
    }

    #[test]
    fn who_cannot_be_opened_is_tried_again() {
        let mut shards = Shards::<u8>::new(Pattern::Shuffled);
        let fault = || Err(SampleFault::new(FaultKind::Unreadable, "gone"));
        assert!(shards.get(3, fault).is_err());
        assert_eq!(*shards.get(3, || Ok(7)).unwrap(), 7);
        assert_eq!(*shards.get(3, fault).unwrap(), 7);
    }
}
