//! Finds the executable that becomes the coordinator under `Launch::Exec`.
//!
//! Runs in the consumer.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

const NAME: &str = "featherload";

/// The helper: the named one, else `FEATHERLOAD_HELPER`, else the one beside
/// (or one folder above) the current executable, else the one on PATH.
///
/// # Errors
/// Lists everything that was tried.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return explicit(path, "LoaderBuilder::helper");
    }
    if let Some(path) = env::var_os("FEATHERLOAD_HELPER") {
        return explicit(Path::new(&path), "FEATHERLOAD_HELPER");
    }
    let mut tried = Vec::new();
    if let Ok(current) = env::current_exe() {
        if current.file_name().is_some_and(|n| n == NAME) {
            return Ok(current);
        }
        // Examples and tests lie in a folder below the executable's.
        for folder in current.ancestors().skip(1).take(2) {
            tried.push(folder.join(NAME));
        }
    }
    if let Some(path) = env::var_os("PATH") {
        tried.extend(env::split_paths(&path).map(|folder| folder.join(NAME)));
    }
    if let Some(found) = tried.iter().find(|p| is_executable(p)) {
        return Ok(found.clone());
    }
    let list: Vec<String> = tried.iter().map(|p| p.display().to_string()).collect();
    Err(Error::config(format!(
        "the helper executable '{NAME}' was not found (tried {}): name it with \
         LoaderBuilder::helper or FEATHERLOAD_HELPER, or use Launch::Fork",
        list.join(", ")
    )))
}

fn explicit(path: &Path, source: &str) -> Result<PathBuf> {
    if is_executable(path) {
        Ok(path.to_owned())
    } else {
        Err(Error::config(format!(
            "{source} names {}, which is no executable file",
            path.display()
        )))
    }
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_helper_must_exist() {
        let e = find(Some(Path::new("/nowhere/featherload")))
            .unwrap_err()
            .to_string();
        assert!(e.contains("/nowhere/featherload"), "{e}");
        assert_eq!(
            find(Some(Path::new("/bin/sh"))).unwrap(),
            Path::new("/bin/sh")
        );
    }
}
