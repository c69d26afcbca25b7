//! What a folder was made from. The manifest's file is the folder's lock too.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use featherload::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::args::DemoKind;
use crate::short_text;

/// A name of featherload's own, which a scan does not report as left out.
pub(super) const MANIFEST: &str = ".featherload-demo.json";
/// Its name before, in sight: such a set is taken over.
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
    /// The files that no loader can load, when they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) broken: Vec<BrokenFile>,
}

/// One broken file: what a loader should say about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BrokenFile {
    /// Under the set's folder.
    pub(super) path: String,
    /// Names of `featherload::FaultKind`: one of these is due.
    pub(super) faults: Vec<String>,
    /// What is wrong with it.
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

/// Makes the folder ours: the manifest is there, locked, and says `wanted`.
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
    // Killed between making the manifest and filling it.
    if text.is_empty() && !others {
        let json = serde_json::to_string(wanted)
            .map_err(|e| Error::io_at("write", &path, io::Error::other(e)))?;
        file.write_all(format!("{json}\n").as_bytes())
            .map_err(|e| Error::io_at("write", &path, e))?;
        return Ok(file);
    }
    let found: M = serde_json::from_str(&text).map_err(|e| {
        let what = format!("not the manifest of such a demo set: {e}: name another DIR");
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

/// True when the folder holds anything beside the manifest.
fn holds_others(dir: &Path) -> Result<bool> {
    let failed = |e| Error::io_at("read folder", dir, e);
    for entry in fs::read_dir(dir).map_err(failed)? {
        if entry.map_err(failed)?.file_name() != MANIFEST {
            return Ok(true);
        }
    }
    Ok(false)
}
