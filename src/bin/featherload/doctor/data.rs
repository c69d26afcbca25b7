//! The data set: where it is stored, and whether it can be read.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use featherload::index::{
    DamagedShard, FolderLabels, Index, ParquetLabels, ScanReport, ShardLabels, TableLabels,
};
use featherload::{Error, Result, Source};
use nix::sys::statfs::{self, FsType, statfs};

use super::finding::{DoctorFinding, FindingVerdict};
use crate::flags;
use crate::index::NAMED;

/// Samples that are opened: the first, the last, and some between.
const TRIED: u64 = 16;

/// Some of a data set's samples.
pub struct CheckedSamples {
    of: u64,
    /// Whether the samples are members of shards.
    in_store: bool,
    in_shards: bool,
    tried: Vec<PathBuf>,
    /// What the scan found and left out.
    scan: ScanReport,
    /// Why labels cannot be used, if samples can.
    labels: Option<Error>,
}

impl CheckedSamples {
    /// Scans the names at `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let source = match Source::detect(path)? {
            // Every image below, whatever the folders are called.
            Source::Folder(path, mut options) => {
                options.labels = FolderLabels::None;
                Source::Folder(path, options)
            }
            other => other,
        };
        let (index, scan, labels) = open(source)?;
        let of = index.len();
        let in_store = index.is_remote();
        let count = if in_store { 0 } else { TRIED.min(of) };
        let tried = (0..count).map(|i| index.file(i * (of - 1) / (count - 1).max(1)));
        Ok(Self {
            of,
            in_store,
            in_shards: index.shards() > 0,
            tried: tried.collect(),
            scan: scan.unwrap_or_default(),
            labels,
        })
    }

    pub fn findings(&self) -> Vec<DoctorFinding> {
        let mut findings = vec![match self.in_store {
            true => in_store(self.of),
            false => readable(self.of, &self.tried),
        }];
        findings.extend(self.labels.as_ref().map(labels));
        findings.extend(damaged(&self.scan.damaged));
        findings.extend(left_out(&self.scan));
        // Where samples are stored, not the list file that names them.
        if let Some(place) = self.tried.iter().find(|path| path.exists()) {
            let found = file_system(place).into_iter().chain(device(place));
            findings.extend(found.map(|f| with_order(f, self.in_shards)));
        }
        findings
    }
}

/// For a data set in an object store, the index was downloaded or kept. No sample is requested.
fn in_store(samples: u64) -> DoctorFinding {
    let value = format!("{samples}, in an object store");
    DoctorFinding::ok(
        "samples",
        value,
        "the index is on this machine; no sample was fetched",
    )
}

fn readable(samples: u64, tried: &[PathBuf]) -> DoctorFinding {
    let name = "samples";
    let failures: Vec<String> = tried
        .iter()
        .filter_map(|path| {
            read_a_byte(path)
                .err()
                .map(|e| format!("{}: {e}", path.display()))
        })
        .collect();
    let value = format!("{samples}, {} of them opened", tried.len());
    match failures.first() {
        None => DoctorFinding::ok(name, value, "each could be read"),
        Some(first) if failures.len() == tried.len() => {
            DoctorFinding::missing(name, value, format!("none could be read, such as {first}"))
                .breaks("the data set can be read")
        }
        Some(first) => DoctorFinding::limited(
            name,
            value,
            format!(
                "{} could not be read, such as {first}: with --on-error stop a run ends there",
                failures.len()
            ),
        ),
    }
}

/// The index and the report of its scan. If only the labels are invalid: an index without labels,
/// and the error.
fn open(source: Source) -> Result<(Index, Option<ScanReport>, Option<Error>)> {
    let (opened, unlabelled) = match source {
        Source::Shards(shards, mut options) => {
            let opened = Index::from_shards(&shards, &options);
            options.labels = ShardLabels::None;
            (opened, Source::Shards(shards, options))
        }
        Source::Table(file, mut options) => {
            let opened = Index::table(&file, &options);
            options.labels = TableLabels::None;
            (opened, Source::Table(file, options))
        }
        Source::Parquet(files, mut options) => {
            let opened = Index::parquet(&files, &options);
            options.labels = ParquetLabels::None;
            (opened, Source::Parquet(files, options))
        }
        Source::Arrow(files, mut options) => {
            let opened = Index::arrow(&files, &options);
            options.labels = ParquetLabels::None;
            (opened, Source::Arrow(files, options))
        }
        other => {
            let (index, scan) = other.open()?;
            return Ok((index, scan, None));
        }
    };
    match opened {
        Ok((index, scan)) => Ok((index, Some(scan), None)),
        Err(refused) => {
            let (index, scan) = unlabelled.open()?;
            Ok((index, scan, Some(refused)))
        }
    }
}

fn labels(refused: &Error) -> DoctorFinding {
    DoctorFinding::missing(
        "labels",
        flags::of_error(refused),
        "a run is rejected: use --labels none, or name other labels with --label-field, \
         --label-json or (for a table) --label-column",
    )
    .breaks("the labels of the data set can be read")
}

/// A run continues without the missing data, so no promise is broken.
fn damaged(shards: &[DamagedShard]) -> impl Iterator<Item = DoctorFinding> {
    let named = shards.iter().take(NAMED).map(|shard| {
        DoctorFinding::limited(
            "damaged shard",
            flags::in_place(&shard.to_string()),
            "a run warns and continues without the lost samples, and `cache build` needs \
             --on-error skip: make or fetch the shard again",
        )
    });
    let more = shards.len().checked_sub(NAMED).filter(|more| *more > 0);
    named.chain(more.map(|more| {
        DoctorFinding::limited(
            "damaged shards",
            format!("{more} more"),
            "`featherload index --json` lists them",
        )
    }))
}

/// One finding for each reason why entries are not samples.
fn left_out(scan: &ScanReport) -> impl Iterator<Item = DoctorFinding> {
    scan.skipped.iter().map(|(reason, skipped)| {
        let example = skipped.examples.first();
        DoctorFinding::ok(
            "left out",
            format!("{} x {reason}", skipped.count),
            format!(
                "no samples, such as {}",
                example.map_or_else(String::new, |path| path.display().to_string())
            ),
        )
    })
}

/// If random reads are slow, shards can be read in another order.
fn with_order(mut place: DoctorFinding, in_shards: bool) -> DoctorFinding {
    if in_shards && place.verdict == FindingVerdict::Limited {
        place.meaning.push_str(
            "; --sampler shard-shuffle reads shards almost sequentially, shuffle reads them at \
             random",
        );
    }
    place
}

/// A regular file only: opening a FIFO would wait for its other end.
fn read_a_byte(path: &Path) -> std::io::Result<()> {
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    File::open(path)?.read_exact(&mut [0])
}

/// The name of a file system, and whether its data come over a network.
const KNOWN: &[(FsType, &str, bool)] = &[
    (statfs::EXT4_SUPER_MAGIC, "ext4", false),
    (statfs::XFS_SUPER_MAGIC, "xfs", false),
    (statfs::BTRFS_SUPER_MAGIC, "btrfs", false),
    (statfs::F2FS_SUPER_MAGIC, "f2fs", false),
    (FsType(0x2fc1_2fc1), "zfs", false),
    (statfs::TMPFS_MAGIC, "tmpfs", false),
    (FsType(0x8584_58f6), "ramfs", false),
    (statfs::OVERLAYFS_SUPER_MAGIC, "overlay", false),
    (FsType(0x7371_7368), "squashfs", false),
    (FsType(0xe0f5_e1e2), "erofs", false),
    (FsType(0x4d44), "vfat", false),
    (FsType(0x2011_bab0), "exfat", false),
    (FsType(0x6a65_6a63), "virtiofs", false),
    (statfs::NFS_SUPER_MAGIC, "nfs", true),
    (statfs::SMB_SUPER_MAGIC, "smb", true),
    (FsType(0xff53_4d42), "cifs", true),
    (FsType(0xfe53_4d42), "smb2", true),
    (FsType(0x00c3_6400), "ceph", true),
    (FsType(0x0bd0_0bd0), "lustre", true),
    (FsType(0x4750_4653), "gpfs", true),
    (FsType(0x0102_1997), "9p", true),
    (statfs::AFS_SUPER_MAGIC, "afs", true),
    (statfs::FUSE_SUPER_MAGIC, "fuse", true),
];

fn file_system(place: &Path) -> Option<DoctorFinding> {
    let name = "file system";
    let kind = statfs(place).ok()?.filesystem_type();
    let Some((_, found, remote)) = KNOWN.iter().find(|(known, ..)| *known == kind) else {
        return Some(DoctorFinding::ok(
            name,
            format!("type {:#x}", kind.0),
            "unknown; samples are mapped, so any file system that can map files works",
        ));
    };
    let meaning = match (*found, *remote) {
        ("tmpfs" | "ramfs", _) => "the data are in memory already, and use it",
        ("fuse", _) => {
            "each miss of the page cache goes through another process or a network: storage may \
             limit the first epoch"
        }
        (_, true) => {
            "over a network: storage may limit the first epoch, and a file that changes on the \
             server while it is mapped is a failed sample"
        }
        ("overlay", _) => "a container's layers; a mounted volume saves a lookup for each file",
        _ => {
            "local; samples are mapped, so a second epoch comes from the page cache while that \
             has room"
        }
    };
    let verdict = if *remote {
        FindingVerdict::Limited
    } else {
        FindingVerdict::Ok
    };
    Some(DoctorFinding::new(verdict, name, *found, meaning))
}

/// Whether the disk rotates. None if the file system is not on a single disk.
fn device(place: &Path) -> Option<DoctorFinding> {
    let device = fs::metadata(place).ok()?.dev();
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let block = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    // The queue of a partition is that of its disk.
    let rotational = block
        .ancestors()
        .take(2)
        .find_map(|b| fs::read_to_string(b.join("queue/rotational")).ok())?;
    let value = block.file_name()?.to_string_lossy().into_owned();
    Some(if rotational.trim() == "1" {
        DoctorFinding::limited(
            "disk",
            format!("{value}, reported as rotating"),
            "shuffled reads seek, so storage limits the first epoch. Data that fit in memory \
             come from the page cache later (virtual disks may report rotation without rotating)",
        )
    } else {
        DoctorFinding::ok(
            "disk",
            format!("{value}, not rotating"),
            "random reads need no seeks",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shards_on_a_slow_place_get_a_word_on_their_order() {
        let slow = || DoctorFinding::limited("disk", "sda", "seeks");
        let fast = || DoctorFinding::ok("disk", "nvme0", "none");
        for (place, in_shards, want) in [
            (slow(), true, true),
            (slow(), false, false),
            (fast(), true, false),
        ] {
            let text = with_order(place, in_shards).meaning;
            assert_eq!(text.contains("--sampler shard-shuffle"), want, "{text}");
        }
    }
}
