//! Estimates the disk space of a build before it begins.
//!
//! Runs in the consumer. It lays out the shards as the build will, with member sizes from the
//! headers and without hashes. Columns are read as the build will read them. So a value that cannot
//! be kept ends the build before it begins. For the encodings `copy` and `raw`, tars, `.idx` files, manifests
//! and index are exact to the byte. The size of each file is rounded up as its file system does.
//! For `jpeg` the sizes of images are estimates.

use std::io::Sink;
use std::ops::ControlFlow;

use crate::cache::columns::{CacheColumns, IN_MEMORY, ShardColumns};
use crate::cache::layout::ShardFile;
use crate::cache::sample_members::SampleMembers;
use crate::cache::shard_ledger::{LedgerEntry, ShardLedger, idx_text};
use crate::cache::shard_places::ShardRun;
use crate::cache::source_headers::SourceHeaders;
use crate::cache::targets::CacheTargets;
use crate::cache::{BuildOptions, CacheEncoding};
use crate::data::index::{CachedSamples, Index};
use crate::data::shard::manifest::Manifest;
use crate::error::{Error, Result};
use crate::jobs::encode::payload::CacheOrder;

/// The bytes that a build will still write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiskNeed {
    pub(super) bytes: u64,
    /// False if it is estimated by the usual sizes of JPEGs.
    pub(super) exact: bool,
}

/// The inputs of an estimate.
pub(super) struct DiskEstimate<'a> {
    pub(super) index: &'a Index,
    pub(super) options: &'a BuildOptions,
    pub(super) order: &'a CacheOrder,
    pub(super) headers: &'a SourceHeaders<'a>,
    pub(super) members: &'a SampleMembers<'a>,
    pub(super) columns: Option<&'a CacheColumns>,
    pub(super) targets: &'a CacheTargets,
    /// The samples of complete shards.
    pub(super) samples: CachedSamples,
    /// The unit that file sizes are rounded up to, bytes.
    pub(super) fragment: u64,
    /// Bytes of the largest file of columns so far, of those that do not stay in memory.
    pub(super) largest_columns: u64,
    /// Whether the bytes of any raster so far are a usual number.
    pub(super) has_usual_rasters: bool,
}

/// Samples between two calls that tell how many are read.
const TOLD: u64 = 1024;

/// Space for the cache's manifest without its shards. Twice, because the old file is replaced after
/// the new one is written.
const MANIFESTS: u64 = 2 * 4096;

impl DiskEstimate<'_> {
    /// The space for the shards of `runs`. With `ends`, also for index and manifest. `tell` receives
    /// the number of samples whose columns are read. `None` if it ended the estimate.
    ///
    /// # Errors
    /// When there is not enough memory; a value of a column that cannot be kept.
    pub(super) fn need(
        mut self,
        runs: &[ShardRun],
        ends: bool,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<DiskNeed>> {
        let (mut bytes, mut shards, mut read) = (0u64, 0, 0);
        for run in runs {
            let mut tell = |here: u64| tell(read + here);
            let Some((files, end)) = self.shards(run, &mut tell)? else {
                return Ok(None);
            };
            read += run.places.end - run.places.start;
            bytes = bytes.saturating_add(files);
            shards = end;
        }
        if ends {
            let each = self.options.shard_samples;
            let shards = each.map_or(shards, |each| self.order.samples().div_ceil(each));
            let index = self.round_up(self.samples.clone().seal()?.bytes());
            // The entry of a shard in the cache's manifest is shorter than 320 bytes, and the place
            // of columns in it than 128.
            let (entry, names) = match self.columns {
                None => (320, 0),
                Some(columns) => (448, columns.names_bytes()),
            };
            let targets = self.targets.names_bytes();
            let manifests = self.round_up(MANIFESTS + 2 * (entry * shards + names + targets));
            let table = self.targets.objects.as_ref().map(|kept| kept.table.bytes());
            let rasters = self.targets.rasters.iter().map(|_| index);
            bytes = [Some(index), Some(manifests), table]
                .into_iter()
                .flatten()
                .chain(rasters)
                .fold(bytes, |all, of| all.saturating_add(self.round_up(of)));
        }
        // While a shard is completed, its columns may be in a further file.
        Ok(Some(DiskNeed {
            bytes: bytes.saturating_add(self.largest_columns),
            exact: !(matches!(self.options.encode, CacheEncoding::Jpeg { .. })
                || self.has_usual_rasters),
        }))
    }

    /// The bytes of a run's shards, and the number of the shard after them. `None` if `tell` ended
    /// the estimate.
    fn shards(
        &mut self,
        run: &ShardRun,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<(u64, u64)>> {
        let mut bytes = 0u64;
        let mut number = run.first_shard;
        let targets = self.targets.members();
        let mut ledger = ShardLedger::new(run.first_id, targets);
        let begin = |columns: Option<&CacheColumns>| columns.map(CacheColumns::counted).transpose();
        let mut columns = begin(self.columns)?;
        let (most, each) = (
            self.options.shard_bytes(),
            self.options.most_shard_places(self.order.samples()),
        );
        for position in run.places.clone() {
            let id = run.first_id + (position - run.places.start);
            if ledger.samples() > 0 && each.is_some_and(|n| position.is_multiple_of(n)) {
                let full = std::mem::replace(&mut ledger, ShardLedger::new(id, targets));
                let values = std::mem::replace(&mut columns, begin(self.columns)?);
                bytes = bytes.saturating_add(self.files(full, values, number)?);
                number += 1;
            }
            let Some(source) = self.order.sample(position) else {
                break;
            };
            let Some((size, file)) = self.headers.output(source, self.options.resize) else {
                continue;
            };
            let picture = match self.options.encode {
                CacheEncoding::Jpeg { quality } => estimated_jpeg(size, quality),
                encode => encode.most_bytes(size, file),
            };
            let Some(in_source) = self.headers.sizes.get(source) else {
                continue;
            };
            // A sample with a fault is left out, or ends the build.
            let Ok(names) = self.members.of(id, source, in_source)? else {
                continue;
            };
            self.has_usual_rasters |= !self.headers.has_exact_rasters(source);
            let rasters = names.rasters.iter().map(String::as_str);
            let rasters = rasters.zip(self.headers.raster_bytes(source, size));
            let rasters: Vec<_> = rasters.collect();
            let entries = || {
                let texts = [&names.label, &names.objects].into_iter().flatten();
                let texts = texts.map(|(name, text)| (name.as_str(), text.len() as u64));
                [(names.picture.as_str(), picture)]
                    .into_iter()
                    .chain(texts)
                    .chain(rasters.iter().copied())
                    .map(|(name, size)| LedgerEntry {
                        name,
                        size,
                        hash: 0,
                    })
            };
            let row = self.columns.map(|columns| columns.row(self.index, source));
            let row = row.transpose()?;
            let behind = columns.as_ref().zip(row.as_ref());
            let behind = behind.map_or(0, |(columns, row)| columns.most_bytes_with(row));
            if !ledger.takes(entries(), most.saturating_sub(behind)) {
                let full = std::mem::replace(&mut ledger, ShardLedger::new(id, targets));
                let values = std::mem::replace(&mut columns, begin(self.columns)?);
                bytes = bytes.saturating_add(self.files(full, values, number)?);
                number += 1;
            }
            ledger.add((source, self.members.stated_size(in_source)), entries());
            if let Some((columns, row)) = columns.as_mut().zip(row) {
                let pushed = columns.push(row);
                pushed.map_err(|e| Error::dataset(self.index.path(source), e.to_string()))?;
                let here = position - run.places.start;
                if here.is_multiple_of(TOLD) && tell(here).is_break() {
                    return Ok(None);
                }
            }
        }
        if ledger.samples() > 0 {
            bytes = bytes.saturating_add(self.files(ledger, columns, number)?);
            number += 1;
        }
        Ok(Some((bytes, number)))
    }

    /// Bytes of the three files of a shard.
    fn files(
        &mut self,
        mut ledger: ShardLedger,
        columns: Option<ShardColumns<Sink>>,
        number: u64,
    ) -> Result<u64> {
        if let Some(columns) = columns {
            let ended = columns.finish();
            let (_, bytes) = ended.map_err(|e| Error::io("count columns", e))?;
            ledger.add_columns(bytes, 0);
            if bytes > IN_MEMORY as u64 {
                self.largest_columns = self.largest_columns.max(bytes);
            }
        }
        let manifest = ledger.manifest(0);
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

/// Bytes per pixel of a 4:2:0 JPEG without its headers, by quality. Measured on 66 photos at
/// `shorter:256`. At their own sizes, the photos take 1 to 12 % less (0.171, 0.275 and 0.396 at 75,
/// 90 and 95). Images with few edges take much less, noise several times as much.
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

/// The usual bytes of a JPEG of a photo of this size.
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
