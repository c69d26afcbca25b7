//! The file of an incomplete shard.
//!
//! Runs in the fetcher.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use twox_hash::xxhash3_128::Hasher;

use crate::data::shard::manifest::HexHash128;
use crate::remote::helper::messages::HelperError;

/// Bytes to read again at a time.
const PIECE: usize = 1 << 20;

/// The beginning of a shard, in its file.
pub(super) struct PartFile {
    file: File,
    path: PathBuf,
    /// Number of bytes that are here.
    pub(super) at: u64,
    hasher: Hasher,
}

impl PartFile {
    /// Opens the file. If it is longer than the shard, it starts again.
    pub(super) async fn open(path: PathBuf, most: u64) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        let mut part = Self {
            file,
            path,
            at: 0,
            hasher: Hasher::new(),
        };
        if part.file.metadata()?.len() > most {
            part.restart()?;
        }
        let mut piece = vec![0; PIECE];
        loop {
            match part.file.read_at(&mut piece, part.at)? {
                0 => return Ok(part),
                n => {
                    part.hasher.write(&piece[..n]);
                    part.at += n as u64;
                    // It may be long, and the consumer checks that its fetcher responds.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.at)?;
        self.hasher.write(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Checksum of the bytes that are here.
    pub(super) fn hash(&self) -> HexHash128 {
        HexHash128(self.hasher.finish_128())
    }

    /// Gives the complete file the shard's name.
    pub(super) fn finish(self, whole: &Path) -> Result<(), HelperError> {
        fs::rename(&self.path, whole).map_err(|e| not_written(&self.path, &e))
    }

    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.at = 0;
        self.hasher = Hasher::new();
        Ok(())
    }
}

/// Error for a file of a shard that cannot be written.
pub(super) fn not_written(path: &Path, e: &io::Error) -> HelperError {
    let folder = path.parent().unwrap_or(path).display().to_string();
    let what = match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full: free some of it, or lower `fetch_limit`".to_owned()
        }
        _ => format!("cannot write {}: {e}", path.display()),
    };
    HelperError::new(folder, what)
}
