//! The manifest of a set: the arguments it was made from. Its file is also the folder's lock.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use featherload::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::args::DemoKind;
use crate::short_text;

/// The file name. A scan does not report featherload's own names as left out.
pub(super) const MANIFEST: &str = ".featherload-demo.json";
/// The former, visible file name. A set with this file is accepted: the file is renamed.
const FORMER: &str = "featherload-demo.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DemoManifest {
    pub(super) format: u32,
    #[serde(default, skip_serializing_if = "DemoKind::is_default")]
    pub(super) kind: DemoKind,
    pub(super) images: u32,
    pub(super) classes: u32,
    pub(super) seed: u64,
    /// The files that cannot be loaded, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) broken: Vec<BrokenFile>,
}

/// One broken file, and the fault that a loader should report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BrokenFile {
    /// Path relative to the set's folder.
    pub(super) path: String,
    /// Names of `featherload::FaultKind`: one of them is expected.
    pub(super) faults: Vec<String>,
    /// The defect, as text.
    pub(super) what: String,
}

impl fmt::Display for DemoManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "--kind {} --images {} --classes {} --seed {}{} (format {})",
            self.kind,
            self.images,
            self.classes,
            self.seed,
            if self.broken.is_empty() {
                ""
            } else {
                " --broken"
            },
            self.format
        )
    }
}

/// Claims the folder: the manifest exists, is locked, and has the values of `wanted`.
pub(super) fn claim<M>(dir: &Path, wanted: &M) -> Result<File>
where
    M: Serialize + DeserializeOwned + PartialEq + fmt::Display,
{
    fs::create_dir_all(dir).map_err(|e| Error::io_at("create folder", dir, e))?;
    let path = dir.join(MANIFEST);
    let former = dir.join(FORMER);
    if former.is_file() && !path.exists() {
        fs::rename(&former, &path).map_err(|e| Error::io_at("rename", &former, e))?;
    }
    let others = holds_others(dir)?;
    if others && !path.exists() {
        return Err(Error::dataset(
            dir,
            format!("the folder is not empty and has no {MANIFEST}: name another DIR"),
        ));
    }
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|e| Error::io_at("open", &path, e))?;
    file.try_lock().map_err(|e| match e {
        TryLockError::WouldBlock => Error::dataset(
            dir,
            "another process is writing this demo set: wait for it, or name another DIR",
        ),
        TryLockError::Error(e) => Error::io_at("lock", &path, e),
    })?;

    let text = short_text::read(&file, &path, "manifest of a demo set")?;
    // A killed call left the manifest empty.
    if text.is_empty() && !others {
        let json = serde_json::to_string(wanted)
            .map_err(|e| Error::io_at("write", &path, io::Error::other(e)))?;
        file.write_all(format!("{json}\n").as_bytes())
            .map_err(|e| Error::io_at("write", &path, e))?;
        return Ok(file);
    }
    let found: M = serde_json::from_str(&text).map_err(|e| {
        let what = format!("not a manifest of this kind of demo set: {e}: name another DIR");
        Error::dataset(&path, what)
    })?;
    if found == *wanted {
        return Ok(file);
    }
    Err(Error::dataset(
        dir,
        format!("holds the demo set of {found}, not of {wanted}: name another DIR"),
    ))
}

/// Whether the folder holds anything beside the manifest.
fn holds_others(dir: &Path) -> Result<bool> {
    let failed = |e| Error::io_at("read folder", dir, e);
    for entry in fs::read_dir(dir).map_err(failed)? {
        if entry.map_err(failed)?.file_name() != MANIFEST {
            return Ok(true);
        }
    }
    Ok(false)
}
