//! Index files: written completely or not at all, and read back.
//!
//! Used in the consumer. The file is the sealed form, byte for byte. `binary_form` checks its
//! contents.

use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::data::index::Index;
use crate::data::index::binary_form;
use crate::data::index::binary_form::IndexDamage;
use crate::data::index::index_cache;
use crate::error::{Error, Result};
use crate::sys::atomic_file::replace_by;
use crate::sys::memory;
use crate::sys::regular_file;
use crate::sys::sealed_bytes::SealedBytes;

pub(crate) fn save(bytes: &[u8], path: &Path) -> Result<()> {
    replace_by(path, bytes)
}

/// Rejects a path whose file would be lost.
///
/// # Errors
/// A file at `path` is not empty and not a saved index.
pub(crate) fn refuse_other_file(path: &Path) -> Result<()> {
    let is_file = path
        .metadata()
        .is_ok_and(|found| found.is_file() && found.len() > 0);
    match !is_file || is_saved(path)? {
        true => Ok(()),
        false => Err(Error::dataset(
            path,
            "exists and is not a saved index, so it is not replaced: name another file, or remove \
            it",
        )),
    }
}

pub(crate) fn is_saved(path: &Path) -> Result<bool> {
    let failed = |e| Error::io_at("read", path, e);
    // A FIFO may be a list. Opening and closing it would end its writer.
    if !path.metadata().map_err(failed)?.is_file() {
        return Ok(false);
    }
    let mut head = Vec::new();
    let (file, _) = regular_file::open(path).map_err(failed)?;
    file.take(binary_form::MAGIC.len() as u64)
        .read_to_end(&mut head)
        .map_err(failed)?;
    // `open` rejects an index that `index_cache` keeps, and describes it.
    Ok(head == binary_form::MAGIC || index_cache::is_kept(&head))
}

/// Why an index file could not be loaded.
#[derive(Debug)]
pub(crate) enum LoadFailure {
    Damaged(IndexDamage),
    /// The file is missing, or the system reported an error.
    Failed(Error),
}

impl From<IndexDamage> for LoadFailure {
    fn from(damage: IndexDamage) -> Self {
        Self::Damaged(damage)
    }
}

impl From<Error> for LoadFailure {
    fn from(e: Error) -> Self {
        Self::Failed(e)
    }
}

pub(crate) fn load(path: &Path) -> Result<Index> {
    open(path).map_err(|unusable| match unusable {
        LoadFailure::Damaged(damage) => Error::dataset(
            path,
            format!("{damage}: make the index again with `featherload index`"),
        ),
        LoadFailure::Failed(e) => e,
    })
}

/// Like [`load`], but leaves the repair hint to the caller.
pub(crate) fn open(path: &Path) -> Result<Index, LoadFailure> {
    let opening = |e: io::Error| -> LoadFailure {
        match e.kind() {
            ErrorKind::NotFound => Error::dataset(path, "no such file").into(),
            ErrorKind::InvalidInput => IndexDamage::NotAnIndex.into(),
            _ => Error::io_at("open", path, e).into(),
        }
    };
    let (mut file, found) = regular_file::open(path).map_err(opening)?;
    let reading = |e| Error::io_at("read", path, e);
    // The head states the length. A wrong file is rejected before gigabytes of it are read.
    let mut bytes = Vec::new();
    (&mut file)
        .take(binary_form::HEAD as u64)
        .read_to_end(&mut bytes)
        .map_err(reading)?;
    if index_cache::is_kept(&bytes) {
        let what = index_cache::describe(path).unwrap_or_else(|| "an index of tar shards".into());
        let refused = Error::dataset(
            path,
            format!(
                "is {what} that featherload keeps for itself: open the shards, or save an index \
                 of them with `save`"
            ),
        );
        return Err(refused.into());
    }
    let total = binary_form::total_bytes(&bytes)?;
    if found != total {
        return Err(IndexDamage::Length { said: total, found }.into());
    }
    (&mut file)
        .take((binary_form::COUNTS_PREFIX - binary_form::HEAD) as u64)
        .read_to_end(&mut bytes)
        .map_err(reading)?;
    binary_form::check_counts(&bytes)?;
    binary_form::check_room(total, memory::available_bytes())?;
    file.read_to_end(&mut bytes).map_err(reading)?;
    let sealed = SealedBytes::new(binary_form::NAME, &[&bytes])?;
    drop(bytes);
    Ok(Index::open(sealed)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::data::index::binary_form::{IndexContent, IndexLabels};

    fn saved(dir: &Path) -> (Index, std::path::PathBuf) {
        let mut content = IndexContent::default();
        content.push_path(b"a/1.jpg");
        content.push_path(b"b/\xff.png");
        content.labels = IndexLabels::Class(vec![0, 1]);
        content.classes = crate::data::index::ClassList::new(["a", "b"]).unwrap();
        let index = Index::open(content.encode(Path::new("/data")).unwrap()).unwrap();
        let path = dir.join("index.fli");
        index.save(&path).unwrap();
        (index, path)
    }

    #[test]
    fn a_saved_index_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let (index, path) = saved(dir.path());
        index.save(&path).unwrap();
        let again = Index::load(&path).unwrap();
        assert_eq!(again.hash(), index.hash());
        assert_eq!(again.classes(), index.classes());
        for id in 0..2 {
            assert_eq!(again.path(id), index.path(id));
            assert_eq!(again.label(id), index.label(id));
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), index.bytes());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_no_index_is_not_replaced_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let (index, path) = saved(dir.path());
        let list = dir.path().join("list.txt");
        fs::write(&list, "a/1.jpg 0\n").unwrap();
        let e = index.save(&list).unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains("not replaced"),
            "{e}"
        );
        assert_eq!(fs::read(&list).unwrap(), b"a/1.jpg 0\n");
        // An empty file, for example a reserved temporary name.
        fs::write(&list, "").unwrap();
        index.save(&list).unwrap();
        assert_eq!(fs::read(&list).unwrap(), fs::read(path).unwrap());
    }

    #[test]
    fn every_truncation_and_every_changed_byte_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (_, path) = saved(dir.path());
        let good = fs::read(&path).unwrap();
        let other = dir.path().join("bad");
        for len in 0..good.len() {
            fs::write(&other, &good[..len]).unwrap();
            let e = Index::load(&other).unwrap_err();
            assert!(e.is_usage(), "{len}: {e}");
        }
        for at in 0..good.len() {
            for change in [1, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= change;
                fs::write(&other, &bad).unwrap();
                let e = Index::load(&other).unwrap_err();
                assert!(e.to_string().contains("featherload index"), "{at}: {e}");
            }
        }
        let mut long = good.clone();
        long.push(0);
        fs::write(&other, &long).unwrap();
        assert!(Index::load(&other).unwrap_err().is_usage());
    }

    /// A head and counts that are valid for a file with one large hole after them.
    fn hole(dir: &Path, samples: u64, change: impl Fn(&mut [u8])) -> std::path::PathBuf {
        let (_, good) = saved(dir);
        let mut front = fs::read(good).unwrap()[..binary_form::COUNTS_PREFIX].to_vec();
        // A vector label of one sample: 4 bytes for its path end, the labels, and a path of one
        // byte.
        let width = 1u64 << 40;
        let sizes = samples * 4 + samples * width * 4 + samples;
        let root_at = binary_form::COUNTS_PREFIX as u64 + sizes;
        front[48..56].copy_from_slice(&root_at.to_le_bytes());
        front[56..64].copy_from_slice(&5u64.to_le_bytes());
        front[64..72].copy_from_slice(&samples.to_le_bytes());
        front[72..80].copy_from_slice(&[2, 4, 4, 0, 0, 0, 0, 0]);
        front[80..88].copy_from_slice(&width.to_le_bytes());
        front[88..96].copy_from_slice(&samples.to_le_bytes());
        front[96..112].fill(0);
        change(&mut front);
        let path = dir.join("hole.fli");
        fs::write(&path, &front).unwrap();
        let said = binary_form::total_bytes(&front).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(said).unwrap();
        path
    }

    #[test]
    fn a_hole_behind_a_right_head_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Index::load(path).unwrap_err().to_string();
        // No machine has memory for 4 TiB twice.
        let e = refused(&hole(dir.path(), 1, |_| {}));
        for due in [
            "hole.fli: 4.01 TiB",
            "half of the available memory",
            "again",
        ] {
            assert!(e.contains(due), "{e}");
        }
        // Contradicting counts are found before that.
        let more = |front: &mut [u8]| front[64] = 9;
        let e = refused(&hole(dir.path(), 1, more));
        assert!(e.contains("damaged: its number of"), "{e}");
        let rest = |front: &mut [u8]| front[56..64].copy_from_slice(&(1u64 << 40).to_le_bytes());
        let e = refused(&hole(dir.path(), 1, rest));
        assert!(e.contains("damaged: its number of root bytes"), "{e}");
    }

    #[test]
    fn another_file_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jpg");
        fs::write(&path, [0xff; 4096]).unwrap();
        let e = Index::load(&path).unwrap_err().to_string();
        assert!(e.contains("not an index file"), "{e}");
        let e = Index::load(dir.path()).unwrap_err().to_string();
        assert!(e.contains("not an index file"), "{e}");
        let e = Index::load(&dir.path().join("none")).unwrap_err();
        assert!(e.is_usage() && e.to_string().contains("no such file"));
    }
}
