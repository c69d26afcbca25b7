//! How much storage a build will take, before it begins.
//!
//! In the consumer. The shards are laid out as they will be, with members of the
//! sizes that headers tell and hashes of no data: tars, `.idx`, manifests and
//! index to the byte where the encoding is `copy` or `raw`, and every file is
//! rounded up to what its file system gives. Under `jpeg` the size of a picture
//! is an estimate.

use std::ops::Range;

use crate::cache::book::{Book, Entry, idx_text};
use crate::cache::layout::ShardFile;
use crate::cache::members::Members;
use crate::cache::surveyed::Surveyed;
use crate::cache::{BuildOptions, Encoding};
use crate::data::index::{CachedSamples, Index};
use crate::data::shard::manifest::Manifest;
use crate::error::Result;
use crate::jobs::encode::payload::Order;

/// What a build will still write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) bytes: u64,
    /// False: by the size that JPEGs of photos usually have.
    pub(super) exact: bool,
}

/// Where a build begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// The first place of the order that is in no complete shard.
    pub(super) position: u64,
    /// The id in the cache of what will stand there.
    pub(super) id: u64,
    /// The shard that it begins.
    pub(super) shard: u64,
}

/// What a [`Need`] is made from.
pub(super) struct Outlook<'a> {
    pub(super) index: &'a Index,
    pub(super) options: &'a BuildOptions,
    pub(super) order: &'a Order,
    pub(super) surveyed: &'a Surveyed,
    pub(super) members: &'a Members<'a>,
    /// Of complete shards.
    pub(super) samples: CachedSamples,
    /// What files are rounded up to, bytes.
    pub(super) fragment: u64,
}

/// Room for what is written at the end and replaced: the manifest twice.
const MANIFESTS: u64 = 2 * 4096;

impl Outlook<'_> {
    /// What is to be written from `start` on.
    ///
    /// # Errors
    /// When the system gives no memory.
    pub(super) fn need(mut self, start: Start) -> Result<Need> {
        let (files, shards) = self.shards(start, start.position..self.order.samples())?;
        self.whole(files, start.shard + shards)
    }

    /// What shards that stand alone take, at these places; with `finish` index and manifest
    /// too.
    ///
    /// # Errors
    /// When the system gives no memory.
    pub(super) fn need_apart(mut self, parts: &[Range<u64>], finish: bool) -> Result<Need> {
        let each = self.options.most_places(self.order.samples()).unwrap_or(1);
        let mut files = 0u64;
        for part in parts {
            let start = Start {
                position: part.start,
                id: part.start,
                shard: part.start / each,
            };
            files = files.saturating_add(self.shards(start, part.clone())?.0);
        }
        match finish {
            true => {
                let shards = self.order.samples().div_ceil(each);
                self.whole(files, shards)
            }
            false => Ok(Need {
                bytes: files,
                exact: self.is_exact(),
            }),
        }
    }

    /// The files of shards, and their number.
    fn shards(&mut self, start: Start, positions: Range<u64>) -> Result<(u64, u64)> {
        let mut bytes = 0u64;
        let mut number = start.shard;
        let mut book = Book::new(start.id);
        let (most, each) = (
            self.options.shard_bytes(),
            self.options.most_places(self.order.samples()),
        );
        for position in positions {
            let id = start.id + (position - start.position);
            if book.samples() > 0 && each.is_some_and(|n| position.is_multiple_of(n)) {
                let full = std::mem::replace(&mut book, Book::new(id));
                bytes = bytes.saturating_add(self.files(full, number)?);
                number += 1;
            }
            let Some(source) = self.order.sample(position) else {
                break;
            };
            let Some((size, file)) = self.surveyed.output(source, self.options.resize) else {
                continue;
            };
            let picture = match self.options.encode {
                Encoding::Jpeg { quality } => estimated_jpeg(size, quality),
                encode => encode.most_bytes(size, file),
            };
            let names = self.members.of(id, source)?;
            let label = names.label.as_ref();
            let entries = || {
                let label = label.map(|(name, text)| (name.as_str(), text.len() as u64));
                [(names.picture.as_str(), picture)]
                    .into_iter()
                    .chain(label)
                    .map(|(name, size)| Entry {
                        name,
                        size,
                        hash: 0,
                    })
            };
            if !book.takes(entries(), most) {
                let full = std::mem::replace(&mut book, Book::new(id));
                bytes = bytes.saturating_add(self.files(full, number)?);
                number += 1;
            }
            book.add(source, entries());
        }
        if book.samples() > 0 {
            bytes = bytes.saturating_add(self.files(book, number)?);
            number += 1;
        }
        Ok((bytes, number - start.shard))
    }

    /// With index and manifest of so many shards.
    fn whole(self, bytes: u64, number: u64) -> Result<Need> {
        let index = self.round_up(self.samples.clone().seal()?.bytes());
        // Each shard's entry in the cache's manifest is shorter than this.
        let manifests = MANIFESTS + 2 * 320 * number;
        let rest = index.saturating_add(self.round_up(manifests));
        Ok(Need {
            bytes: bytes.saturating_add(rest),
            exact: self.is_exact(),
        })
    }

    fn is_exact(&self) -> bool {
        !matches!(self.options.encode, Encoding::Jpeg { .. })
    }

    /// Bytes of the three files of a shard.
    fn files(&mut self, book: Book, number: u64) -> Result<u64> {
        let manifest = book.manifest(0);
        let name = ShardFile::Tar.name(number);
        self.samples.push_shard(self.index, &name, &manifest);
        let beside = [idx_text(&manifest)?.len(), manifest.to_bytes()?.len()];
        let beside = beside.map(|len| self.round_up(len as u64));
        Ok(self.round_up(manifest.bytes) + beside[0] + beside[1])
    }

    fn round_up(&self, bytes: u64) -> u64 {
        bytes
            .checked_next_multiple_of(self.fragment)
            .unwrap_or(u64::MAX)
    }
}

/// Bytes a pixel of a JPEG of this quality, 4:2:0, beside its headers: the 66
/// photos of the shared data at `shorter:256`, whose own sizes take 1 to 12 %
/// less (0.171, 0.275 and 0.396 at 75, 90 and 95). Pictures of few edges take a
/// part of it, noise several times as much.
const JPEG: [(u8, f64); 8] = [
    (1, 0.022),
    (25, 0.075),
    (50, 0.116),
    (75, 0.173),
    (85, 0.233),
    (90, 0.292),
    (95, 0.418),
    (100, 0.816),
];

/// Bytes of a JPEG's headers and tables.
const JPEG_HEADERS: u64 = 623;

/// Bytes that a JPEG of a photo of this size usually takes.
fn estimated_jpeg((height, width): (u32, u32), quality: u8) -> u64 {
    let pixels = f64::from(height) * f64::from(width);
    let mut per_pixel = JPEG[0].1;
    for pair in JPEG.windows(2) {
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        if quality >= from {
            let part = f64::from(quality - from) / f64::from(to - from);
            per_pixel = low + (high - low) * part.min(1.0);
        }
    }
    (pixels * per_pixel) as u64 + JPEG_HEADERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_of_a_jpeg_goes_through_what_was_measured() {
        for (quality, per_pixel) in JPEG {
            let bytes = estimated_jpeg((1000, 1000), quality);
            let expected = (per_pixel * 1e6) as u64 + JPEG_HEADERS;
            assert!(bytes.abs_diff(expected) <= 1, "{quality}: {bytes}");
        }
        let all: Vec<_> = (1..=100).map(|q| estimated_jpeg((256, 256), q)).collect();
        assert!(all.is_sorted());
    }
}
