//! A file with values, and what it was before the index of its data set was made.
//!
//! In the consumer. A row of a changed file may belong to another picture. So each reader compares
//! the file that it has open after it read a value.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::sys::regular_file::{FileStamp, keeps_inodes_of, nanoseconds};

#[derive(Debug, Clone)]
pub(crate) struct StampedFile {
    path: PathBuf,
    stamp: FileStamp,
    /// When content, mode or links last changed, ns since 1970. No program can set it.
    status_changed: i64,
}

impl StampedFile {
    /// The file as it is now.
    ///
    /// # Errors
    /// A file that cannot be examined.
    pub(crate) fn of(path: PathBuf) -> Result<Self> {
        let found = path
            .metadata()
            .map_err(|e| Error::io_at("open", &path, e))?;
        Ok(Self {
            stamp: FileStamp::of_metadata(&found),
            status_changed: status_changed(&found),
            path,
        })
    }

    /// # Errors
    /// The first file that cannot be examined.
    pub(crate) fn of_all(paths: impl IntoIterator<Item = PathBuf>) -> Result<Vec<Self>> {
        paths.into_iter().map(Self::of).collect()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Compares `file`, which was opened at the path later.
    ///
    /// # Errors
    /// It is another file, or has changed.
    pub(crate) fn check(&self, file: &File) -> Result<()> {
        let found = file.metadata();
        let found = found.map_err(|e| Error::io_at("look at", &self.path, e))?;
        let now = FileStamp::of_metadata(&found);
        let differs = self.stamp.difference(&now, || keeps_inodes_of(file));
        let differs = differs.or_else(|| {
            let is_other = self.status_changed != status_changed(&found) && keeps_inodes_of(file);
            is_other.then(|| "of the same length and time, but written, moved or linked".to_owned())
        });
        match differs {
            None => Ok(()),
            Some(how) => Err(Error::dataset(
                &self.path,
                format!(
                    "changed after its data set was opened ({how}), so its rows may belong to \
                     other images: do not change it while it is in use, and start again"
                ),
            )),
        }
    }

    /// Like [`StampedFile::check`], for a file that was read and closed.
    ///
    /// # Errors
    /// As [`StampedFile::check`].
    pub(crate) fn check_closed(&self) -> Result<()> {
        let file = File::open(&self.path).map_err(|e| Error::io_at("open", &self.path, e))?;
        self.check(&file)
    }
}

fn status_changed(found: &Metadata) -> i64 {
    nanoseconds(found.ctime(), found.ctime_nsec())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_changed_or_replaced_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        fs::write(&path, "ab").unwrap();
        let was = StampedFile::of(path.clone()).unwrap();
        let file = File::open(&path).unwrap();
        was.check(&file).unwrap();
        was.check_closed().unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        // Clocks of file systems tick every few milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(30));
        // The same length and time, as after `cp -p` over it.
        fs::write(&path, "ba").unwrap();
        let writer = File::options().write(true).open(&path).unwrap();
        writer.set_modified(modified).unwrap();
        let e = was.check(&file).unwrap_err().to_string();
        assert!(e.contains("a.csv") && e.contains("written, moved"), "{e}");
        // Another file at the path.
        let other = dir.path().join("b");
        fs::write(&other, "abc").unwrap();
        fs::rename(&other, &path).unwrap();
        let e = was.check_closed().unwrap_err().to_string();
        assert!(e.contains("2 bytes then, 3 now"), "{e}");
    }
}
