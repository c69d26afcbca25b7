//! Finds the executable that becomes the coordinator under `Launch::Exec`.
//!
//! Runs in the consumer.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use crate::error::{Error, Result};
use crate::pool::coordinator::own::{Own, own};

const NAME: &str = "featherload";

/// The running executable, whatever has become of its file since: the kernel keeps it
/// as long as a process runs it, so the helper is never of another build.
const RUNNING: &str = "/proc/self/exe";

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Helper {
    /// This program, which called `init`.
    Own,
    Other(PathBuf),
}

impl Helper {
    pub(crate) fn executable(&self) -> &Path {
        match self {
            Self::Own => Path::new(RUNNING),
            Self::Other(path) => path,
        }
    }

    /// What to try when it did not greet.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::Own => {
                "this program is its own helper: make `featherload::init();` the first line of \
                 main, before arguments are read; a test of cargo's harness needs another program, \
                 named with LoaderBuilder::helper"
            }
            Self::Other(_) => {
                "run it with --version to see whether it runs at all; a program of yours needs \
                 `featherload::init();` as the first line of main"
            }
        }
    }
}

impl fmt::Display for Helper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => own_executable().display().fmt(f),
            Self::Other(path) => path.display().fmt(f),
        }
    }
}

/// What this program is called in messages.
pub(crate) fn own_executable() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| PathBuf::from("this process"))
}

/// The helper: the named one, else `FEATHERLOAD_HELPER`, else this program when it
/// called `init` and `works`, else `featherload` beside it, else the one on PATH.
///
/// # Errors
/// Says which line this program lacks, and lists everything that was tried.
pub(crate) fn find(named: Option<&Path>, works: bool) -> Result<Helper> {
    if let Some(path) = named {
        // Its file may be replaced meanwhile, which the running one does not mind.
        return match own_helper(works) {
            Ok(own) if path == own_executable() => Ok(own),
            _ => explicit(path, "LoaderBuilder::helper"),
        };
    }
    if let Some(path) = env::var_os("FEATHERLOAD_HELPER") {
        return explicit(Path::new(&path), "FEATHERLOAD_HELPER");
    }
    let own_fault = match own_helper(works) {
        Ok(own) => return Ok(own),
        Err(why) => why,
    };
    let beside = env::current_exe().map_or_else(|_| Vec::new(), |exe| beside(&exe));
    let on_path = on_path(env::var_os("PATH").as_deref());
    let trusted = Trusted::of_process();
    let found = beside
        .iter()
        .find(|p| executable(p).is_some_and(|m| trusted.wrote(&m)))
        .or_else(|| on_path.iter().find(|p| executable(p).is_some()));
    if let Some(found) = found {
        return Ok(Helper::Other(found.clone()));
    }
    let tried: Vec<String> = beside
        .iter()
        .chain(&on_path)
        .map(|path| quoted(path))
        .collect();
    Err(Error::option(
        "helper",
        format!(
            "no helper to start workers with: {own_fault}; or install one with `cargo install \
             featherload --features cli`, name one with LoaderBuilder::helper or \
             FEATHERLOAD_HELPER, or use Launch::Fork (no executable of yours or root's at: {})",
            tried.join(", ")
        ),
    ))
}

/// This program, or what it lacks to be one. `works` says whether it can do any job.
fn own_helper(works: bool) -> std::result::Result<Helper, String> {
    match own() {
        _ if !works => Err(
            "this library was built without the feature 'codecs', so this program cannot be its \
             own"
            .to_owned(),
        ),
        Own::Ready => Ok(Helper::Own),
        Own::Unknown => Err(
            "add `featherload::init();` as the first line of main, and this \
                             program is its own"
                .to_owned(),
        ),
        Own::Late(threads) => Err(format!(
            "featherload::init() was called when {threads} threads ran: make it the first line of \
             main, and this program is its own"
        )),
    }
}

fn quoted(path: &Path) -> String {
    path.display().to_string()
}

/// Where an executable that was built or installed with this one may lie.
fn beside(exe: &Path) -> Vec<PathBuf> {
    let Some(folder) = exe.parent() else {
        return Vec::new();
    };
    let mut found = vec![folder.join(NAME)];
    // Cargo puts examples and tests in a folder below the executables'.
    let is_cargo_folder = folder
        .file_name()
        .is_some_and(|n| n == "deps" || n == "examples");
    if let Some(above) = folder.parent().filter(|_| is_cargo_folder) {
        found.push(above.join(NAME));
    }
    found
}

/// Absolute folders only: an empty part of PATH would be the working folder.
fn on_path(path: Option<&OsStr>) -> Vec<PathBuf> {
    path.map(|path| {
        env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(NAME))
            .collect()
    })
    .unwrap_or_default()
}

/// Whose files are started without being asked for: programs may lie in a folder
/// where others write, such as `/tmp`.
struct Trusted {
    me: u32,
    /// Who installed this program.
    installer: Option<u32>,
}

impl Trusted {
    fn of_process() -> Self {
        Self {
            me: geteuid().as_raw(),
            installer: fs::metadata(RUNNING).ok().map(|m| m.uid()),
        }
    }

    fn wrote(&self, file: &Metadata) -> bool {
        let owner = file.uid();
        let known = owner == 0 || owner == self.me || Some(owner) == self.installer;
        known && file.mode() & 0o002 == 0
    }
}

fn explicit(path: &Path, source: &str) -> Result<Helper> {
    if executable(path).is_some() {
        Ok(Helper::Other(path.to_owned()))
    } else {
        Err(Error::option(
            "helper",
            format!(
                "{source} names {}, which is no executable file",
                path.display()
            ),
        ))
    }
}

fn executable(path: &Path) -> Option<Metadata> {
    let file = fs::metadata(path).ok()?;
    (file.is_file() && file.permissions().mode() & 0o111 != 0).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_helper_must_exist() {
        let e = find(Some(Path::new("/nowhere/featherload")), true).unwrap_err();
        assert!(e.to_string().contains("/nowhere/featherload"), "{e}");
        assert_eq!(e.option_name(), Some("helper"));
        let sh = Helper::Other("/bin/sh".into());
        assert_eq!(find(Some(Path::new("/bin/sh")), true).unwrap(), sh);
    }

    #[test]
    fn only_folders_of_a_build_have_one_above() {
        let of = |exe: &str| beside(Path::new(exe));
        assert_eq!(of("/opt/a/train"), [Path::new("/opt/a/featherload")]);
        assert_eq!(
            of("/b/debug/examples/train"),
            ["/b/debug/examples/featherload", "/b/debug/featherload"].map(PathBuf::from)
        );
    }

    #[test]
    fn the_working_folder_is_not_searched() {
        let path = OsStr::new(":.:bin:/usr/bin");
        assert_eq!(on_path(Some(path)), [Path::new("/usr/bin/featherload")]);
        assert!(on_path(None).is_empty());
    }

    #[test]
    fn files_that_others_wrote_are_not_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(NAME);
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        let me = fs::metadata(&file).unwrap();
        let trusted = Trusted::of_process();
        assert!(trusted.wrote(&me));
        let stranger = Trusted {
            me: me.uid() + 1,
            installer: None,
        };
        assert_eq!(stranger.wrote(&me), me.uid() == 0);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o757)).unwrap();
        assert!(!trusted.wrote(&fs::metadata(&file).unwrap()));
    }
}
