//! Describes a cache, and measures how fast its samples are read as they are stored.
//!
//! Runs in the consumer. Reads manifests and the sealed index. Reads samples only for the
//! measurement, by positioned reads of one thread.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cache::cache_folder::{absent_file, cache_manifest};
use crate::cache::layout::{ShardFile, length, no_such_path, shard_name};
use crate::data::columns::AvailableColumn;
use crate::data::index::{ClassCount, Index, open_cache_objects};
use crate::data::objects::ObjectCategory;
use crate::data::shard::manifest::{
    CACHE_MANIFEST, Manifest, ObjectsEntry, ShardManifest, SourceLosses,
};
use crate::data::shard::read_at;
use crate::error::{Error, Result};

/// The content of a cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CacheInfo {
    /// False if the build has not ended. Counts are then those of complete shards.
    pub complete: bool,
    /// The version of featherload that built the cache.
    pub featherload: String,
    /// As on the command line: `copy`, `jpeg:90` or `raw`.
    pub encode: String,
    /// As on the command line, such as `shorter:256`; none = not resized.
    pub resize: Option<String>,
    /// The most bytes of a shard with more than one sample. 0 if each shard is made of
    /// `shard_samples` samples, independently of the others.
    pub shard_size: u64,
    /// The most samples of the source in one shard; none = as many as fit.
    pub shard_samples: Option<u64>,
    /// The seed of the order; none = the source's order.
    pub shuffle: Option<u64>,
    /// What the build did with bad samples: `stop` or `skip`.
    pub on_error: String,
    /// Number of samples of the source.
    pub source_samples: u64,
    /// Number of samples in complete shards.
    pub samples: u64,
    /// Number of samples of the source that were left out.
    pub skipped: u64,
    /// Content of the source that is not in its index. None if this was not known when the cache
    /// was built: its source was a saved index or another cache.
    pub lost: Option<SourceLosses>,
    /// Number of complete shards.
    pub shards: u64,
    /// Bytes of their tars.
    pub tar_bytes: u64,
    /// Bytes of all files of the cache.
    pub bytes: u64,
    /// Sizes of samples, labels included; none without samples.
    pub sample_bytes: Option<SampleBytes>,
    /// Numbers per label: 0 without labels, 1 for classes, n for vectors.
    pub label_width: u64,
    /// The columns that the shards have, as in the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<AvailableColumn>,
    /// Bytes of the columns in all complete shards.
    #[serde(skip_serializing_if = "is_zero")]
    pub column_bytes: u64,
    /// The objects that the samples have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<CacheObjectInfo>,
    /// How labels of masks become numbers, if a run does not say it. None without masks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masks: Option<serde_json::Value>,
    /// The other rasters that the samples have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rasters: Vec<CacheRasterInfo>,
    /// Number of samples of each class, in the order of class numbers. Empty if samples have no
    /// classes, or the cache is not complete.
    pub classes: Vec<ClassCount>,
    /// The class with the fewest samples, which may be none. The first one of equal size.
    pub smallest_class: Option<ClassCount>,
    pub largest_class: Option<ClassCount>,
    /// Speed of reading samples, measured during this call; none without samples.
    pub reading: Option<ReadMeasurement>,
}

/// The rasters of a cache that have one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CacheRasterInfo {
    pub name: String,
    /// Kind and fields of the rule that a run has if it gives none.
    pub rule: serde_json::Map<String, serde_json::Value>,
    /// Bytes of the rasters in all complete shards.
    pub bytes: u64,
}

/// The objects of a cache.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CacheObjectInfo {
    /// In the order of labels.
    pub categories: Vec<ObjectCategory>,
    /// Keypoints of an object; 0 without keypoints.
    pub keypoints: usize,
    /// Whether objects have outlines, from which instance masks are drawn.
    pub outlines: bool,
    /// Number of objects; none if the cache is not complete.
    pub objects: Option<u64>,
    /// Objects of the image that has most of them; none if the cache is not complete.
    pub most_in_image: Option<usize>,
    /// How objects move with their images, if a run does not say it.
    pub rule: serde_json::Value,
}

impl CacheObjectInfo {
    fn of(entry: &ObjectsEntry) -> Self {
        Self {
            categories: entry.form.categories.clone(),
            keypoints: entry.form.keypoints,
            outlines: entry.form.shapes,
            objects: None,
            most_in_image: None,
            rule: entry.rule.clone(),
        }
    }
}

/// Sizes of samples, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SampleBytes {
    pub mean: f64,
    pub least: u64,
    /// A quarter of the samples is this size or smaller.
    pub quarter: u64,
    pub median: u64,
    pub three_quarters: u64,
    /// 99 % of the samples are this size or smaller.
    pub p99: u64,
    pub most: u64,
}

/// How fast stored members are read from their tars, without decoding.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReadMeasurement {
    /// A description of the measurement.
    pub what: &'static str,
    /// Number of samples that were read, from the first on.
    pub samples: u64,
    pub bytes: u64,
    pub seconds: f64,
    pub samples_per_s: f64,
    pub bytes_per_s: f64,
}

/// The longest time of the measurement.
const LONGEST: Duration = Duration::from_secs(1);

const MEASURED: &str = "positioned reads of all members of the first samples, in order, by one \
                        thread, nothing decoded; whether they were in the page cache is not known";

/// Describes the cache in the folder `path`. Reads samples for up to a second, to measure the
/// speed.
///
/// ```
/// # fn main() -> featherload::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
/// # std::fs::create_dir(&src).unwrap();
/// # std::fs::write(src.join("1.ppm"), b"P6 2 1 255\n\x01\x02\x03\x04\x05\x06").unwrap();
/// use featherload::Source;
/// use featherload::cache::{self, BuildOptions, CacheBuilder};
///
/// let source = Source::detect(&src)?;
/// CacheBuilder::new(source, &dst, BuildOptions::default()).num_workers(0).build()?;
/// let info = cache::info(&dst)?;
/// assert!(info.complete && info.samples == 1 && info.encode == "copy");
/// assert_eq!(info.sample_bytes.unwrap().most, 17);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When `path` is not the folder of a cache, or a file cannot be read. When a shard is missing or
/// has another length, or a manifest or the index is damaged. Then
/// [`verify`](crate::cache::verify()) lists all damage.
pub fn info(path: &Path) -> Result<CacheInfo> {
    let at = path.join(CACHE_MANIFEST);
    if at.symlink_metadata().is_err() {
        let what = match fs::metadata(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => no_such_path("folder", path),
            Err(e) => return Err(Error::io_at("look at", path, e)),
            Ok(there) => format!(
                "is not a cache: {}. For other tars use `featherload index`",
                match there.is_dir() {
                    true => format!("it has no {CACHE_MANIFEST}"),
                    false => "a cache is a folder".into(),
                }
            ),
        };
        return Err(Error::dataset(path, what));
    }
    let manifest = cache_manifest(path)?;
    let options = manifest.options.clone();
    let stand_alone = options.has_independent_shards();
    // Those of an unfinished build are not written yet.
    let side_files = manifest.side_files();
    let side_files = side_files.iter().map(|(name, _)| length(&path.join(name)));
    let rasters = manifest.rasters.iter().map(|entry| CacheRasterInfo {
        name: entry.name.clone(),
        rule: entry.rule.clone(),
        bytes: 0,
    });
    let mut info = CacheInfo {
        complete: manifest.complete,
        featherload: manifest.featherload.clone(),
        encode: options.encode,
        resize: options.resize,
        shard_size: options.shard_size,
        shard_samples: options.shard_samples,
        shuffle: options.shuffle,
        on_error: options.on_error,
        source_samples: manifest.source.samples,
        lost: manifest.source.lost.clone(),
        label_width: manifest.label_width,
        columns: manifest
            .columns
            .iter()
            .map(|column| AvailableColumn::new(&column.name, &column.kind))
            .collect(),
        bytes: length(&at) + side_files.sum::<u64>(),
        rasters: rasters.collect(),
        objects: manifest.objects.as_ref().map(CacheObjectInfo::of),
        masks: manifest.masks.as_ref().map(|masks| masks.rule.clone()),
        ..CacheInfo::default()
    };
    let due = manifest.complete.then_some(manifest.shards.len() as u64);
    let mut sizes = Vec::new();
    let mut reader = SampleReader::default();
    // Independent shards may exist in any combination. Others exist up to the first one without a
    // manifest.
    let each = options.shard_samples.filter(|_| stand_alone);
    let apart = each.map(|each| manifest.source.samples.div_ceil(each.max(1)));
    for number in 0..due.or(apart).unwrap_or(u64::MAX) {
        let of_shard = ShardFile::Manifest.path(path, number);
        if due.is_none() && of_shard.symlink_metadata().is_err() {
            match stand_alone {
                true => continue,
                false => break,
            }
        }
        let shard = manifest_of(path, number)?;
        info.shards += 1;
        info.skipped += shard.skipped.len() as u64;
        info.tar_bytes += shard.bytes;
        info.column_bytes += shard.columns.as_ref().map_or(0, |member| member.size);
        let files = ShardFile::ALL.iter();
        info.bytes += files.map(|f| length(&f.path(path, number))).sum::<u64>();
        let (all, others) = (shard.targets.all_rasters(), shard.targets.rasters as usize);
        for sample in &shard.samples {
            for (number, raster) in info.rasters.iter_mut().enumerate() {
                let member = sample.raster(all - others + number, all);
                raster.bytes += member.map_or(0, |member| member.size);
            }
            sizes.push(sample.members.iter().map(|m| m.size).sum());
        }
        reader.read(path, number, &shard)?;
    }
    info.samples = sizes.len() as u64;
    info.sample_bytes = SampleBytes::of(sizes);
    info.reading = reader.ended();
    if manifest.complete {
        if info.samples != manifest.samples {
            let what = format!(
                "its shards have {} samples, but its manifest says {}: run `featherload cache \
                 verify`",
                info.samples, manifest.samples
            );
            return Err(Error::dataset(path, what));
        }
        info.skipped = manifest.skipped;
        if let Some(objects) = &mut info.objects {
            let table = open_cache_objects(&Index::cache(path)?)?.table;
            objects.objects = Some(table.objects() as u64);
            objects.most_in_image = Some(table.most_objects());
        }
        info.classes = Index::of_cache(path, Some(&manifest))?.class_counts();
        let ends = ClassCount::smallest_and_largest(&info.classes);
        (info.smallest_class, info.largest_class) =
            ends.map(|(few, many)| (few.clone(), many.clone())).unzip();
    }
    Ok(info)
}

/// The manifest of a shard. Checks that its tar exists and has the stated length.
///
/// # Errors
/// When the manifest or the tar is missing or damaged. The error states how to repair it.
fn manifest_of(folder: &Path, number: u64) -> Result<ShardManifest> {
    let hurt = |what: String| {
        Error::dataset(
            folder,
            format!(
                "its shard {}: {what}. `featherload cache verify` lists all damage, and the same \
                 `featherload cache build` repairs it",
                shard_name(number)
            ),
        )
    };
    let failed = |file: ShardFile, e: Error| match e {
        Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            // A link with a missing target is reported as in a build.
            match absent_file::<()>(&file.path(folder, number)) {
                Ok(_) => hurt(format!("{} is missing", file.name(number))),
                Err(link) => link,
            }
        }
        Error::Dataset { what, .. } => hurt(format!("{} is {what}", file.name(number))),
        e => e,
    };
    let path = ShardFile::Manifest.path(folder, number);
    let read = ShardManifest::read(&path).map_err(|e| failed(ShardFile::Manifest, e))?;
    let path = ShardFile::Tar.path(folder, number);
    let tar = fs::metadata(&path).map_err(|e| Error::io_at("look at", &path, e));
    let found = tar.map_err(|e| failed(ShardFile::Tar, e))?.len();
    let said = read.0.bytes;
    if found != said {
        return Err(hurt(format!(
            "{} has {found} bytes, but its manifest says {said}",
            ShardFile::Tar.name(number)
        )));
    }
    Ok(read.0)
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl SampleBytes {
    fn of(mut sizes: Vec<u64>) -> Option<Self> {
        sizes.sort_unstable();
        let (least, most) = (*sizes.first()?, *sizes.last()?);
        // The smallest size that `percent` of the samples do not exceed.
        let at = |percent: usize| {
            let rank = (sizes.len() * percent).div_ceil(100);
            sizes.get(rank.max(1) - 1).copied().unwrap_or(most)
        };
        let sum: u64 = sizes.iter().sum();
        Some(Self {
            mean: sum as f64 / sizes.len() as f64,
            least,
            quarter: at(25),
            median: at(50),
            three_quarters: at(75),
            p99: at(99),
            most,
        })
    }
}

/// Reads samples until the time limit of the measurement. The time for manifests does not count.
#[derive(Default)]
struct SampleReader {
    buffer: Vec<u8>,
    samples: u64,
    bytes: u64,
    took: Duration,
}

impl SampleReader {
    fn read(&mut self, folder: &Path, number: u64, shard: &ShardManifest) -> Result<()> {
        if self.took >= LONGEST {
            return Ok(());
        }
        let path = ShardFile::Tar.path(folder, number);
        let began = Instant::now();
        let before = self.took;
        let (file, _) = crate::data::shard::open(&path)?;
        for sample in &shard.samples {
            for member in &sample.members {
                let mut at = member.data_at;
                let end = member.data_at.saturating_add(member.size);
                // Reads in pieces, so that no number of a file decides how much is allocated.
                while at < end {
                    let piece = (end - at).min(1 << 20) as usize;
                    self.buffer.resize(piece.max(self.buffer.len()), 0);
                    let read = read_at(&file, &mut self.buffer[..piece], at)
                        .map_err(|e| Error::io_at("read", &path, e))?;
                    if read < piece {
                        let what = format!(
                            "{} ends within '{}': run `featherload cache verify`",
                            shard_name(number),
                            member.name
                        );
                        return Err(Error::dataset(&path, what));
                    }
                    at += read as u64;
                    self.bytes += read as u64;
                }
            }
            self.samples += 1;
            self.took = before + began.elapsed();
            if self.took >= LONGEST {
                break;
            }
        }
        Ok(())
    }

    fn ended(self) -> Option<ReadMeasurement> {
        let seconds = self.took.as_secs_f64();
        (self.samples > 0 && seconds > 0.0).then(|| ReadMeasurement {
            what: MEASURED,
            samples: self.samples,
            bytes: self.bytes,
            seconds,
            samples_per_s: self.samples as f64 / seconds,
            bytes_per_s: self.bytes as f64 / seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_sizes_that_so_many_do_not_exceed() {
        let of = SampleBytes::of((1..=200).rev().collect()).unwrap();
        assert_eq!((of.least, of.quarter, of.median), (1, 50, 100));
        assert_eq!((of.three_quarters, of.p99, of.most), (150, 198, 200));
        assert!((of.mean - 100.5).abs() < 1e-9);
        let one = SampleBytes::of(vec![7]).unwrap();
        assert_eq!((one.least, one.quarter, one.p99, one.most), (7, 7, 7, 7));
        assert_eq!(SampleBytes::of(Vec::new()), None);
    }
}
