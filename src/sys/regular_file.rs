//! Opens files of a data set without blocking, and only if they are regular. So a FIFO or a device
//! among them blocks no process.
//!
//! Used in workers, and in the consumer for headers, indexes and manifests or with zero workers.
//! Reads and maps nothing.

use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::{fs, io};

use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::sys::statfs::{FsType, fstatfs, statfs};
use serde::{Deserialize, Serialize};

use crate::error::{FaultKind, SampleFault, limits};
use crate::sys::sandbox::files;

/// Identifies a file, to detect its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct FileStamp {
    pub(crate) bytes: u64,
    /// Modification time of the content, ns since 1970. `touch` and `cp -p` can set it.
    pub(crate) modified: i64,
    pub(crate) inode: u64,
}

impl FileStamp {
    /// Of the file at `path`, following links.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|found| Self::of_metadata(&found))
    }

    pub(crate) fn of_metadata(found: &Metadata) -> Self {
        Self {
            bytes: found.len(),
            modified: nanoseconds(found.mtime(), found.mtime_nsec()),
            inode: found.ino(),
        }
    }

    /// Describes how `now` differs; `None` if it is the same file. If only the inode differs, calls
    /// `keeps_inodes`: on file systems without stable inodes, length and time decide.
    pub(crate) fn difference(
        &self,
        now: &Self,
        keeps_inodes: impl FnOnce() -> bool,
    ) -> Option<String> {
        if self.bytes != now.bytes {
            return Some(format!("{} bytes then, {} now", self.bytes, now.bytes));
        }
        if self.modified != now.modified {
            let (way, by) = match self.modified < now.modified {
                true => ("later", now.modified.abs_diff(self.modified)),
                false => ("earlier", self.modified.abs_diff(now.modified)),
            };
            return Some(format!(
                "of the same length, modified {}.{:09} s {way}",
                by / 1_000_000_000,
                by % 1_000_000_000
            ));
        }
        (self.inode != now.inode && keeps_inodes()).then(|| {
            format!(
                "of the same length and time, inode {} then, {} now",
                self.inode, now.inode
            )
        })
    }
}

/// File systems that may change inode numbers when a file is reopened or remounted: FUSE (sshfs,
/// s3fs, gcsfuse), Windows shares under three names, and FAT and exFAT, which store no inode
/// numbers.
const WITHOUT_INODES: [u32; 6] = [
    0x6573_5546,
    0xff53_4d42,
    0xfe53_4d42,
    0x517b,
    0x4d44,
    0x2011_bab0,
];

/// Whether inode numbers are stable at `path`. True if the system does not report the file system.
pub(crate) fn keeps_inodes(path: &Path) -> bool {
    statfs(path).map_or(true, |found| kind_keeps_inodes(found.filesystem_type()))
}

/// Like [`keeps_inodes`], for an open file.
pub(crate) fn keeps_inodes_of(file: impl AsFd) -> bool {
    fstatfs(file).map_or(true, |found| kind_keeps_inodes(found.filesystem_type()))
}

fn kind_keeps_inodes(kind: FsType) -> bool {
    // The field's width differs among C libraries; the constants have 32 bits.
    !WITHOUT_INODES.contains(&(kind.0 as u32))
}

/// A file system's time as ns since 1970.
pub(crate) fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

/// Opens the regular file at `path` to read, and returns its length in bytes. For files other than
/// samples. Never blocks on a FIFO.
///
/// # Errors
/// The system's error; [`ErrorKind::InvalidInput`] if it is not a regular file.
pub(crate) fn open(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found.len())),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}

/// Opens the regular file at `path` to read, and returns its length in bytes.
///
/// # Errors
/// The file is missing, or not a regular file: a folder, a FIFO, a device.
pub(crate) fn open_regular(path: &CStr) -> Result<(OwnedFd, usize), SampleFault> {
    let (fd, stamp) = open_stamped(path)?;
    Ok((fd, usize::try_from(stamp.bytes).unwrap_or(usize::MAX)))
}

/// Like [`open_regular`], and returns the file's stamp.
pub(crate) fn open_stamped(path: &CStr) -> Result<(OwnedFd, FileStamp), SampleFault> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let fd = fcntl::open(path, flags, Mode::empty()).map_err(|e| {
        // Landlock rules are bound to folders, not to their names.
        let fix = match e {
            Errno::EACCES if files::is_limited() => {
                "; make it readable, or start the run again where links or folders of the data set \
                 were replaced since it began: workers may read nothing else (option sandbox)"
                    .to_owned()
            }
            e => limits::explain(e as i32).map_or(String::new(), |limit| format!("; {limit}")),
        };
        SampleFault::new(
            FaultKind::Unreadable,
            format!("cannot be opened: {}{fix}", e.desc()),
        )
    })?;
    let stat = fstat(&fd).map_err(|e| {
        SampleFault::new(
            FaultKind::Unreadable,
            format!("cannot be examined: {}", e.desc()),
        )
    })?;
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    if kind != SFlag::S_IFREG {
        let what = match kind {
            SFlag::S_IFDIR => "a folder",
            SFlag::S_IFIFO => "a FIFO",
            SFlag::S_IFCHR | SFlag::S_IFBLK => "a device",
            SFlag::S_IFSOCK => "a socket",
            _ => "no regular file",
        };
        return Err(SampleFault::new(
            FaultKind::NotRegular,
            format!("is {what}, not a regular file"),
        ));
    }
    let stamp = FileStamp {
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        inode: stat.st_ino,
    };
    Ok((fd, stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_says_which_field_and_an_inode_counts_where_it_is_kept() {
        let was = FileStamp {
            bytes: 7,
            modified: 5_000_000_000,
            inode: 3,
        };
        let no_other_fields = || panic!("other fields differ");
        let of = |now: FileStamp| was.difference(&now, no_other_fields);
        let difference_text = of(FileStamp { bytes: 8, ..was });
        assert_eq!(difference_text.as_deref(), Some("7 bytes then, 8 now"));
        let difference_text = of(FileStamp {
            modified: 3_999_999_999,
            inode: 4,
            ..was
        });
        let want = "of the same length, modified 1.000000001 s earlier";
        assert_eq!(difference_text.as_deref(), Some(want));
        let difference_text = of(FileStamp {
            modified: 5_000_000_001,
            ..was
        });
        let want = "of the same length, modified 0.000000001 s later";
        assert_eq!(difference_text.as_deref(), Some(want));
        assert_eq!(of(was), None);
        let now = FileStamp { inode: 4, ..was };
        let want = "of the same length and time, inode 3 then, 4 now";
        assert_eq!(was.difference(&now, || true).as_deref(), Some(want));
        assert_eq!(was.difference(&now, || false), None);
    }

    #[test]
    fn which_file_systems_keep_inode_numbers() {
        // The numbers of linux/magic.h and of the modules.
        for (kind, keeps) in [
            (0xef53, true),
            (0x5846_5342, true),
            (0x6969, true),
            (0x0102_1994, true),
            (0x794c_7630, true),
            (0x6573_5546, false),
            (0xff53_4d42, false),
            (0xfe53_4d42, false),
            (0x517b, false),
            (0x4d44, false),
            (0x2011_bab0, false),
        ] {
            assert_eq!(kind_keeps_inodes(FsType(kind)), keeps, "{kind:x}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = File::open(dir.path()).unwrap();
        assert_eq!(keeps_inodes(dir.path()), keeps_inodes_of(&file));
        assert!(keeps_inodes(Path::new("/none")));
    }
}
