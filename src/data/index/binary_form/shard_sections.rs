//! The sections of the sealed form for samples in shards. An index of files does not have them.
//!
//! Either all samples of an index are in shards, or none is. The samples of a shard are
//! consecutive, in the order of the shard. Otherwise they are scattered, and each has the number of
//! its shard.

use std::ops::Range;

use crate::data::index::binary_form::IndexDamage;
use crate::data::index::binary_form::page_section::{self, PageSection, StoredForm};
use crate::data::index::binary_form::words::{SectionCursor, WordArray};

/// The result of a scan of shards, other than names and labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShardContent {
    offsets: Vec<u64>,
    sizes: Vec<u64>,
    /// The id of the first sample of each shard.
    firsts: Vec<u64>,
    shard_ends: Vec<u64>,
    shard_paths: Vec<u8>,
    /// The form of each shard's samples. `None` if the shard is a file of image files.
    pages: Vec<Option<StoredForm>>,
    /// The shard of each sample. Empty unless samples are scattered.
    numbers: Vec<u32>,
}

/// The sections as bytes.
#[derive(Default)]
pub(crate) struct EncodedShards {
    pub(crate) size_bytes: u8,
    pub(crate) shards: u64,
    pub(crate) shard_path_bytes: u64,
    pub(crate) offsets: Vec<u8>,
    pub(crate) sizes: Vec<u8>,
    pub(crate) firsts: Vec<u8>,
    pub(crate) shard_ends: Vec<u8>,
    pub(crate) shard_paths: Vec<u8>,
    pub(crate) page_bytes: u8,
    pub(crate) pages: Vec<u8>,
    pub(crate) number_bytes: u8,
    pub(crate) numbers: Vec<u8>,
}

impl ShardContent {
    pub(crate) fn begin_shard(&mut self, path: &[u8], first: u64, form: Option<StoredForm>) {
        self.shard_paths.extend_from_slice(path);
        self.shard_ends.push(self.shard_paths.len() as u64);
        self.firsts.push(first);
        self.pages.push(form);
    }

    pub(crate) fn page_bytes(&self) -> u64 {
        let forms = self.pages.iter().flatten();
        forms.map(StoredForm::most_bytes).max().unwrap_or(0)
    }

    pub(crate) fn push(&mut self, at: u64, bytes: u64) {
        self.offsets.push(at);
        self.sizes.push(bytes);
    }

    /// Adds a sample of shard `number`, which was begun before the first sample.
    pub(crate) fn push_scattered(&mut self, number: u32, at: u64, bytes: u64) {
        self.numbers.push(number);
        self.push(at, bytes);
    }

    pub(crate) fn encode(self) -> EncodedShards {
        let wide = |all: &[u64]| all.iter().flat_map(|n| n.to_le_bytes()).collect();
        let (page_bytes, pages) = page_section::encode(&self.pages);
        let narrow = self.sizes.iter().all(|&n| u32::try_from(n).is_ok());
        EncodedShards {
            size_bytes: if narrow { 4 } else { 8 },
            shards: self.firsts.len() as u64,
            shard_path_bytes: self.shard_paths.len() as u64,
            offsets: wide(&self.offsets),
            sizes: if narrow {
                let narrow = |&n: &u64| (n as u32).to_le_bytes();
                self.sizes.iter().flat_map(narrow).collect()
            } else {
                wide(&self.sizes)
            },
            firsts: wide(&self.firsts),
            shard_ends: wide(&self.shard_ends),
            shard_paths: self.shard_paths,
            page_bytes,
            pages,
            number_bytes: if self.numbers.is_empty() { 0 } else { 4 },
            numbers: self.numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
        }
    }
}

/// The shard of a sample, and its byte range there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleLocation {
    pub(crate) shard: u64,
    /// Offset from the start of the shard.
    pub(crate) at: u64,
    /// Length.
    pub(crate) bytes: u64,
}

impl SampleLocation {
    pub(crate) fn range(self) -> Range<u64> {
        // `check` made sure that this sum does not overflow.
        self.at..self.at + self.bytes
    }
}

/// The samples of one shard, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardExtent {
    pub(crate) samples: u64,
    /// The largest end of a sample, as an offset from the start of the shard.
    pub(crate) end: u64,
}

/// The offsets of the sections in checked bytes.
#[derive(Debug, Clone)]
pub(crate) struct ShardSections {
    shards: usize,
    offsets: WordArray,
    sizes: WordArray,
    firsts: WordArray,
    shard_ends: WordArray,
    shard_paths: Range<usize>,
    pages: Option<PageSection>,
    /// The shard of each sample, if samples are scattered.
    numbers: Option<WordArray>,
}

/// The counts, as they are stored before the sections.
#[derive(Clone, Copy)]
pub(crate) struct SectionCounts {
    pub(crate) samples: u64,
    pub(crate) size_bytes: u8,
    pub(crate) shards: u64,
    pub(crate) shard_path_bytes: u64,
    pub(crate) page_bytes: u8,
    pub(crate) number_bytes: u8,
}

impl SectionCounts {
    /// Whether samples are in shards.
    ///
    /// # Errors
    /// The counts contradict each other.
    pub(crate) fn is_of_shards(self) -> Result<bool, IndexDamage> {
        match (self.size_bytes, self.shards) {
            (0, 0)
                if self.shard_path_bytes == 0 && self.page_bytes == 0 && self.number_bytes == 0 =>
            {
                Ok(false)
            }
            (4 | 8, 1..) if matches!(self.number_bytes, 0 | 4) => Ok(true),
            _ => Err(IndexDamage::Counts { of: "shards" }),
        }
    }
}

impl ShardSections {
    /// Takes its sections. The paths follow later, with `take_paths`.
    pub(crate) fn take(
        sections: &mut SectionCursor,
        counts: SectionCounts,
    ) -> Result<Self, IndexDamage> {
        let SectionCounts {
            samples,
            size_bytes,
            shards,
            page_bytes,
            number_bytes,
            ..
        } = counts;
        let wide = |at: Range<usize>| WordArray {
            at: at.start,
            wide: true,
        };
        let offsets = wide(sections.next([samples, 8, 1], "parts")?);
        let sizes = WordArray {
            at: sections
                .next([samples, u64::from(size_bytes), 1], "parts")?
                .start,
            wide: size_bytes == 8,
        };
        let firsts = wide(sections.next([shards, 8, 1], "shards")?);
        let shard_ends = wide(sections.next([shards, 8, 1], "shards")?);
        let pages = PageSection::take(sections, shards, page_bytes)?;
        let numbers = sections.next([samples, u64::from(number_bytes), 1], "shard numbers")?;
        let numbers = (number_bytes > 0).then_some(WordArray {
            at: numbers.start,
            wide: false,
        });
        Ok(Self {
            shards: usize::try_from(shards).map_err(|_| IndexDamage::Counts { of: "shards" })?,
            offsets,
            sizes,
            firsts,
            shard_ends,
            shard_paths: 0..0,
            pages,
            numbers,
        })
    }

    pub(crate) fn take_paths(
        &mut self,
        sections: &mut SectionCursor,
        counts: SectionCounts,
    ) -> Result<(), IndexDamage> {
        self.shard_paths = sections.next([counts.shard_path_bytes, 1, 1], "shard path bytes")?;
        Ok(())
    }

    /// Checks everything that the accessors rely on: no path is empty, first samples rise from 0,
    /// and no end overflows.
    pub(crate) fn check(&self, bytes: &[u8], samples: usize) -> Result<(), IndexDamage> {
        let damaged = |number: usize, what| IndexDamage::Shard {
            number: number as u64,
            what,
        };
        let paths = bytes.get(self.shard_paths.clone()).unwrap_or_default();
        let (mut path_at, mut first) = (0, 0);
        for number in 0..self.shards {
            let end = self.shard_ends.unsigned(bytes, number).unwrap_or(0);
            if end <= path_at || end > paths.len() as u64 {
                return Err(damaged(number, "path's place"));
            }
            path_at = end;
            let this = self.firsts.unsigned(bytes, number).unwrap_or(u64::MAX);
            if this < first || this > samples as u64 || (number == 0 && this != 0) {
                return Err(damaged(number, "first sample"));
            }
            first = this;
        }
        if path_at != paths.len() as u64 || paths.contains(&0) {
            return Err(IndexDamage::Counts {
                of: "shard path bytes",
            });
        }
        if let Some(pages) = self.pages {
            pages.check(bytes, self.shards())?;
        }
        for id in 0..samples {
            let number = self.numbers.map(|all| all.unsigned(bytes, id));
            if number.is_some_and(|number| number.is_none_or(|n| n >= self.shards())) {
                return Err(IndexDamage::Sample {
                    id: id as u64,
                    what: "shard",
                });
            }
            let end = self.offsets.unsigned(bytes, id).and_then(|at| {
                let bytes = self.sizes.unsigned(bytes, id)?;
                at.checked_add(bytes)
            });
            if end.is_none() {
                return Err(IndexDamage::Sample {
                    id: id as u64,
                    what: "place in its shard",
                });
            }
        }
        Ok(())
    }

    pub(crate) fn shards(&self) -> u64 {
        self.shards as u64
    }

    /// The form of a shard's samples. `None` if the shard is a file of image files.
    pub(crate) fn form(&self, bytes: &[u8], number: u64) -> Option<StoredForm> {
        self.pages?.get(bytes, number)
    }

    pub(crate) fn shard_path<'a>(&self, bytes: &'a [u8], number: u64) -> Option<&'a [u8]> {
        let number = usize::try_from(number).ok().filter(|&n| n < self.shards)?;
        let start = match number.checked_sub(1) {
            Some(before) => self.shard_ends.unsigned(bytes, before)?,
            None => 0,
        };
        let end = self.shard_ends.unsigned(bytes, number)?;
        bytes
            .get(self.shard_paths.clone())?
            .get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// Whether the samples of a shard are not consecutive.
    pub(crate) fn are_scattered(&self) -> bool {
        self.numbers.is_some()
    }

    /// The number of samples of each shard, and the largest end of their bytes.
    pub(crate) fn extents(&self, bytes: &[u8], samples: usize) -> Vec<ShardExtent> {
        if let Some(numbers) = self.numbers {
            let none = ShardExtent { samples: 0, end: 0 };
            let mut all = vec![none; self.shards];
            for id in 0..samples {
                let end = self
                    .offsets
                    .unsigned(bytes, id)
                    .zip(self.sizes.unsigned(bytes, id));
                let number = numbers.unsigned(bytes, id).unwrap_or(u64::MAX) as usize;
                if let (Some(extent), Some((at, size))) = (all.get_mut(number), end) {
                    extent.samples += 1;
                    extent.end = extent.end.max(at + size);
                }
            }
            return all;
        }
        let first = |number: usize| match number < self.shards {
            true => self.firsts.unsigned(bytes, number).unwrap_or(0) as usize,
            false => samples,
        };
        let end = |id| Some(self.offsets.unsigned(bytes, id)? + self.sizes.unsigned(bytes, id)?);
        let extent = |number| {
            let ids = first(number)..first(number + 1);
            ShardExtent {
                samples: ids.len() as u64,
                end: ids.filter_map(end).max().unwrap_or(0),
            }
        };
        (0..self.shards).map(extent).collect()
    }

    /// The place of a sample. The id must be valid.
    pub(crate) fn part(&self, bytes: &[u8], id: usize) -> Option<SampleLocation> {
        if let Some(numbers) = self.numbers {
            return Some(SampleLocation {
                shard: numbers.unsigned(bytes, id)?,
                at: self.offsets.unsigned(bytes, id)?,
                bytes: self.sizes.unsigned(bytes, id)?,
            });
        }
        // Finds the last shard whose first sample is not after this one. An empty shard has the
        // same first sample as the next one.
        let (mut low, mut high) = (0, self.shards);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.firsts.unsigned(bytes, middle)? <= id as u64 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(SampleLocation {
            shard: low.checked_sub(1)? as u64,
            at: self.offsets.unsigned(bytes, id)?,
            bytes: self.sizes.unsigned(bytes, id)?,
        })
    }
}
