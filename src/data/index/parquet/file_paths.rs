//! Which paths name Parquet files: files by their extension, folders by the names of their files.
//!
//! Runs in the consumer. Lists folders and opens no file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::names::{has_image_extension, is_hidden, is_system_folder};
use crate::data::shard::shard_patterns;
use crate::error::{Error, Result};

/// Whether a path names Parquet files.
///
/// True for a path or pattern that ends in `.parquet`, and for a folder of such files without
/// images, tars and sub-folders.
pub(crate) fn is_named(path: &Path) -> bool {
    match path.is_dir() {
        true => is_folder_of(path, has_extension),
        false => has_extension(path),
    }
}

fn has_extension(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("parquet"))
}

/// Whether a folder has files that `has_extension` accepts, and no images, tars and sub-folders.
/// Stops at the first of these, so that a large folder of images is not listed twice. Beside tars,
/// tables are only a report of their download.
pub(in crate::data::index) fn is_folder_of(path: &Path, has_extension: fn(&Path) -> bool) -> bool {
    let mut found = false;
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if is_hidden(name.as_bytes()) || is_system_folder(name.as_bytes()) {
            continue;
        }
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_tar = name.as_bytes().ends_with(b".tar");
        if is_dir || is_tar || has_image_extension(name.as_bytes()) {
            return false;
        }
        found |= has_extension(Path::new(&name));
    }
    found
}

/// Whether `*.parquet` matches files of a folder, whatever else is in it.
pub(in crate::data::index) fn has_files(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let name = entry.file_name();
        let is_shown = !is_hidden(name.as_bytes()) && name.as_bytes().ends_with(b".parquet");
        is_shown && !entry.path().is_dir()
    })
}

/// The files that a path names: a file, the matches of a pattern, or the Parquet files of a
/// folder, sorted by the bytes of their names.
///
/// # Errors
/// The errors of [`shard_patterns::expand_all`]; a folder that cannot be listed, or that has files
/// of several splits.
pub(crate) fn expand(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return shard_patterns::expand_all(&[path]);
    }
    let entries = fs::read_dir(path).map_err(|e| Error::io_at("list", path, e))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry
            .map_err(|e| Error::io_at("list", path, e))?
            .file_name();
        if !is_hidden(name.as_bytes()) && has_extension(Path::new(&name)) {
            names.push(name);
        }
    }
    names.sort_unstable();
    let mut splits: Vec<&[u8]> = names.iter().filter_map(|name| split(name)).collect();
    splits.dedup();
    if let [one, .., _] = splits[..] {
        let all: Vec<_> = splits.iter().map(|s| String::from_utf8_lossy(s)).collect();
        return Err(Error::dataset(
            path,
            format!(
                "has files of several splits ({}): give one, such as '{}/{}-*.parquet'",
                all.join(", "),
                path.display(),
                String::from_utf8_lossy(one)
            ),
        ));
    }
    Ok(names.into_iter().map(|name| path.join(name)).collect())
}

/// The split in a name such as `train-00000-of-00005.parquet`. The name may have a hash before
/// its extension.
fn split(name: &OsStr) -> Option<&[u8]> {
    let name = name.as_bytes();
    let of = name.windows(4).position(|part| part == b"-of-")?;
    let front = name.get(..of)?;
    let dash = front.iter().rposition(|&b| b == b'-')?;
    let number = front.get(dash + 1..)?;
    let is_number = number.len() == 5 && number.iter().all(u8::is_ascii_digit);
    front.get(..dash).filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_of_parquet_files_when_it_has_no_pictures_and_no_folders() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert!(!is_named(dir.path()));
        for name in ["b.parquet", "a.PARQUET", "README.md", ".hidden.jpg"] {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at(".cache")).unwrap();
        assert!(is_named(dir.path()));
        assert_eq!(
            expand(dir.path()).unwrap(),
            [at("a.PARQUET"), at("b.parquet")]
        );
        assert_eq!(expand(&at("b.*")).unwrap(), [at("b.parquet")]);
        assert!(is_named(&at("b.parquet")) && is_named(&at("train-*.parquet")));
        assert!(!is_named(&at("README.md")));
        fs::write(at("1.jpg"), "").unwrap();
        assert!(!is_named(dir.path()));
        fs::remove_file(at("1.jpg")).unwrap();
        fs::create_dir(at("class")).unwrap();
        assert!(!is_named(dir.path()));
    }

    #[test]
    fn splits_are_not_mixed() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "train-00000-of-00002-0a1b2c.parquet",
            "train-00001-of-00002.parquet",
        ] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(expand(dir.path()).unwrap().len(), 2);
        fs::write(dir.path().join("test-00000-of-00001.parquet"), "").unwrap();
        let said = expand(dir.path()).unwrap_err().to_string();
        assert!(
            said.contains("several splits (test, train): give one"),
            "{said}"
        );
        assert!(said.contains("/test-*.parquet'"), "{said}");
    }
}
