//! Which paths name Arrow files: files by their extension, folders of `save_to_disk` by their
//! `state.json`, other folders by the names of their files.
//!
//! Runs in the consumer. Lists folders, and reads `state.json`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::data::index::names::is_hidden;
use crate::data::index::parquet::is_folder_of;
use crate::data::shard::shard_patterns;
use crate::error::{Error, Result};

/// What `save_to_disk` writes beside the files of a data set.
const STATE: &str = "state.json";
/// What `save_to_disk` writes beside the folders of several splits.
const SPLITS: &str = "dataset_dict.json";
/// Most bytes of these files.
const MOST_STATE: u64 = 16 << 20;

/// The files of a data set in Arrow's format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArrowFiles {
    /// Files with the rows of the data set, in their order.
    pub data: Vec<PathBuf>,
    /// Files with a column `indices`: the rows that are samples, in the order of the samples.
    /// Empty if all rows are samples in their order.
    pub indices: Vec<PathBuf>,
}

/// The part of `state.json` that is read.
#[derive(Deserialize)]
struct SavedState {
    #[serde(rename = "_data_files")]
    data: Vec<SavedFile>,
    /// Of versions before 2.0, which saved a shuffled data set in this way.
    #[serde(rename = "_indices_data_files", default)]
    indices: Option<Vec<SavedFile>>,
}

#[derive(Deserialize)]
struct SavedFile {
    filename: PathBuf,
}

/// Whether a path names Arrow files.
///
/// True for a path or pattern that ends in `.arrow` or `.feather`, for a folder of `save_to_disk`,
/// and for a folder of such files without images and sub-folders.
pub(crate) fn is_named(path: &Path) -> bool {
    match path.is_dir() {
        true => path.join(SPLITS).is_file() || is_folder_of(path, has_extension),
        false => has_extension(path),
    }
}

fn has_extension(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    extension.eq_ignore_ascii_case("arrow") || extension.eq_ignore_ascii_case("feather")
}

/// The files that a path names: a file, the matches of a pattern, the files that `state.json`
/// names, or the Arrow files of a folder, sorted by the bytes of their names.
///
/// # Errors
/// The errors of [`shard_patterns::expand_all`]; a folder that cannot be listed, that has several
/// data sets, or whose `state.json` is not that of `save_to_disk`.
pub(crate) fn expand(path: &Path) -> Result<ArrowFiles> {
    if !path.is_dir() {
        return Ok(ArrowFiles {
            data: shard_patterns::expand_all(&[path])?,
            indices: Vec::new(),
        });
    }
    if path.join(SPLITS).is_file() {
        return Err(several_splits(path));
    }
    if path.join(STATE).is_file() {
        return saved(path);
    }
    let entries = fs::read_dir(path).map_err(|e| Error::io_at("list", path, e))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|e| Error::io_at("list", path, e))?;
        let name = name.file_name();
        // `datasets` keeps the results of `map`, `filter` and `shuffle` in such files.
        let is_result = name.as_bytes().starts_with(b"cache-");
        if !is_hidden(name.as_bytes()) && has_extension(Path::new(&name)) && !is_result {
            names.push(name);
        }
    }
    names.sort_unstable();
    let mut sets: Vec<&[u8]> = names.iter().map(|name| set_of(name)).collect();
    sets.dedup();
    match sets[..] {
        [] => Err(Error::dataset(
            path,
            "has only files cache-*.arrow, which are results of `datasets`: give the file that has \
             the images",
        )),
        [_] => Ok(ArrowFiles {
            data: names.into_iter().map(|name| path.join(name)).collect(),
            indices: Vec::new(),
        }),
        [one, ..] => {
            let all: Vec<_> = sets.iter().map(|s| String::from_utf8_lossy(s)).collect();
            Err(Error::dataset(
                path,
                format!(
                    "has files of several data sets or splits ({}): give one, such as '{}/{}*.arrow'",
                    all.join(", "),
                    path.display(),
                    String::from_utf8_lossy(one)
                ),
            ))
        }
    }
}

/// The name of a data set in a name such as `train-00000-of-00005.arrow`: what is before the
/// number.
fn set_of(name: &OsStr) -> &[u8] {
    let stem = Path::new(name).file_stem().unwrap_or(name).as_bytes();
    let front = stem.windows(4).position(|part| part == b"-of-");
    let front = front.and_then(|of| stem.get(..of)).unwrap_or(stem);
    let digits = front
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let name = &front[..front.len() - digits];
    match name.strip_suffix(b"-") {
        Some(name) if digits == 5 && front.len() < stem.len() => name,
        _ => stem,
    }
}

fn saved(folder: &Path) -> Result<ArrowFiles> {
    let file = folder.join(STATE);
    let failed = |what: &str| {
        Error::dataset(
            &file,
            format!(
                "{what}: save the data set again (Python: dataset.save_to_disk), or give its files \
                 ('{}/*.arrow')",
                folder.display()
            ),
        )
    };
    let bytes = fs::metadata(&file).map(|found| found.len());
    if bytes.map_err(|e| Error::io_at("look at", &file, e))? > MOST_STATE {
        return Err(failed("has more than 16 MiB"));
    }
    let text = fs::read(&file).map_err(|e| Error::io_at("read", &file, e))?;
    let state: SavedState = serde_json::from_slice(&text)
        .map_err(|e| failed(&format!("is not that of Hugging Face's save_to_disk ({e})")))?;
    let within = |files: Vec<SavedFile>| -> Result<Vec<PathBuf>> {
        let one = |saved: SavedFile| {
            let mut parts = saved.filename.components();
            match parts.all(|part| matches!(part, Component::Normal(_))) {
                true => Ok(folder.join(saved.filename)),
                false => Err(failed(&format!(
                    "names the file '{}', which is outside of the folder",
                    saved.filename.display()
                ))),
            }
        };
        files.into_iter().map(one).collect()
    };
    let data = within(state.data)?;
    if data.is_empty() {
        return Err(failed("names no files, so the data set is empty"));
    }
    Ok(ArrowFiles {
        data,
        indices: within(state.indices.unwrap_or_default())?,
    })
}

/// The error for a folder of a `DatasetDict`, which names its splits.
fn several_splits(folder: &Path) -> Error {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut splits: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join(STATE).is_file())
        .collect();
    splits.sort();
    let is_train = |path: &&PathBuf| path.ends_with("train");
    let first = splits.iter().find(is_train).or(splits.first());
    Error::dataset(
        folder,
        match first {
            Some(first) => format!(
                "has several splits of Hugging Face's save_to_disk ({SPLITS}): give one, such as {}",
                first.display()
            ),
            None => format!(
                "has a {SPLITS} of Hugging Face's save_to_disk, and no split beside it: copy the \
                 whole folder"
            ),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in names {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn a_saved_folder_has_the_files_that_its_state_names() {
        let state = r#"{"_data_files": [{"filename": "data-1.arrow"}, {"filename": "data-0.arrow"}],
            "_fingerprint": "x", "_indices_data_files": [{"filename": "indices.arrow"}]}"#;
        let dir = folder(&[
            ("state.json", state),
            ("data-0.arrow", ""),
            ("data-1.arrow", ""),
            ("cache-7.arrow", ""),
        ]);
        assert!(is_named(dir.path()));
        let found = expand(dir.path()).unwrap();
        let at = |name: &str| dir.path().join(name);
        assert_eq!(found.data, [at("data-1.arrow"), at("data-0.arrow")]);
        assert_eq!(found.indices, [at("indices.arrow")]);
        for (state, what) in [
            ("{}", "is not that of Hugging Face's save_to_disk"),
            (r#"{"_data_files": []}"#, "names no files"),
            (
                r#"{"_data_files": [{"filename": "../x.arrow"}]}"#,
                "names the file '../x.arrow', which is outside",
            ),
            (
                r#"{"_data_files": [{"filename": "/x.arrow"}]}"#,
                "which is outside of the folder",
            ),
        ] {
            fs::write(at("state.json"), state).unwrap();
            let e = expand(dir.path()).unwrap_err().to_string();
            assert!(e.contains(what) && e.contains("state.json: "), "{e}");
        }
    }

    #[test]
    fn splits_and_data_sets_are_not_mixed() {
        let dir = folder(&[
            ("dataset_dict.json", "{}"),
            ("test/state.json", "{}"),
            ("train/state.json", "{}"),
        ]);
        assert!(is_named(dir.path()));
        let e = expand(dir.path()).unwrap_err().to_string();
        assert!(
            e.contains("give one, such as ") && e.ends_with("/train"),
            "{e}"
        );
        let dir = folder(&[
            ("c-train-00000-of-00002.arrow", ""),
            ("c-train-00001-of-00002.arrow", ""),
            ("cache-0123.arrow", ""),
            ("dataset_info.json", ""),
        ]);
        assert!(is_named(dir.path()));
        assert_eq!(expand(dir.path()).unwrap().data.len(), 2);
        fs::write(dir.path().join("c-test.arrow"), "").unwrap();
        let e = expand(dir.path()).unwrap_err().to_string();
        assert!(e.contains("(c-test, c-train): give one, such as"), "{e}");
        fs::write(dir.path().join("a.jpg"), "").unwrap();
        assert!(!is_named(dir.path()));
    }
}
