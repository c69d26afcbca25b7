//! How much storage a build will take, before it begins.
//!
//! In the consumer. The shards are laid out as they will be, with members of the
//! sizes that headers tell and hashes of no data: tars, `.idx`, manifests and
//! index to the byte where the encoding is `copy` or `raw`, and every file is
//! rounded up to what its file system gives. Under `jpeg` the size of a picture
//! is an estimate.

use crate::cache::book::{Book, Entry, idx_text};
use crate::cache::layout::ShardFile;
use crate::cache::members::Members;
use crate::cache::surveyed::Surveyed;
use crate::cache::{BuildOptions, Encoding};
use crate::error::Result;
use crate::index::{CachedSamples, Index};
use crate::packing::payload::Order;
use crate::shard::manifest::Manifest;

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
        let mut bytes = 0u64;
        let mut number = start.shard;
        let mut book = Book::new(start.id);
        for position in start.position..self.order.samples() {
            let id = start.id + (position - start.position);
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
            if !book.takes(entries(), self.options.shard_size) {
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
        let index = self.round_up(self.samples.clone().seal()?.bytes());
        // Each shard's entry in the cache's manifest is shorter than this.
        let manifests = MANIFESTS + 2 * 320 * number;
        let rest = index.saturating_add(self.round_up(manifests));
        Ok(Need {
            bytes: bytes.saturating_add(rest),
            exact: !matches!(self.options.encode, Encoding::Jpeg { .. }),
        })
    }

    /// Bytes of the three files of a shard.
    fn files(&mut self, book: Book, number: u64) -> Result<u64> {
        let manifest = book.manifest(0);
        self.samples.begin_shard(&ShardFile::Tar.name(number));
        for sample in &manifest.samples {
            if let Some(m) = sample.members.first() {
                self.samples
                    .push(self.index, sample.source, &m.name, m.data_at, m.size);
            }
        }
        let beside = [idx_text(&manifest).len(), manifest.to_bytes()?.len()];
        let beside = beside.map(|len| self.round_up(len as u64));
        Ok(self.round_up(manifest.bytes) + beside[0] + beside[1])
    }

    fn round_up(&self, bytes: u64) -> u64 {
        bytes
            .checked_next_multiple_of(self.fragment)
            .unwrap_or(u64::MAX)
    }
}

/// Bytes that a JPEG of a photo of this size usually takes.
///
/// From the 66 photos of the shared data, bytes a pixel, mean over the set (the
/// quarter of the photos that takes most needs about 1.5 times as much):
///
/// | quality | 75 | 90 | 95 |
/// |---|---|---|---|
/// | shorter:256 | 0.30 | 0.52 | 0.80 |
/// | full size | 0.20 | 0.36 | 0.60 |
fn estimated_jpeg((height, width): (u32, u32), quality: u8) -> u64 {
    let pixels = f64::from(height) * f64::from(width);
    let small = [
        (1, 0.03),
        (50, 0.20),
        (75, 0.30),
        (90, 0.52),
        (95, 0.80),
        (100, 1.60),
    ];
    let large = [
        (1, 0.02),
        (50, 0.14),
        (75, 0.20),
        (90, 0.36),
        (95, 0.60),
        (100, 1.30),
    ];
    let table = if pixels < 500_000.0 { small } else { large };
    let at = f64::from(quality);
    let mut per_pixel = table[0].1;
    for pair in table.windows(2) {
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        let (from, to) = (f64::from(from), f64::from(to));
        if at >= from {
            per_pixel = low + (high - low) * ((at - from) / (to - from)).min(1.0);
        }
    }
    // Headers and tables.
    (pixels * per_pixel) as u64 + 623
}
