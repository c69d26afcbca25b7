//! Finds the executable that becomes the coordinator, for `LaunchMethod::Exec`.
//!
//! Runs in the consumer.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{getegid, geteuid};

use crate::error::{Error, Result};
use crate::pool::coordinator::init::{
    InitState, NAME, init_state, is_command_line, own_executable,
};
use crate::sys::process;

/// The running executable. The kernel keeps it even if its file is replaced, so the helper is
/// always of the same build.
const RUNNING: &str = "/proc/self/exe";

/// The program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HelperProgram {
    /// This program, which called `init`.
    Own,
    Other(PathBuf),
}

impl HelperProgram {
    pub(crate) fn executable(&self) -> &Path {
        match self {
            Self::Own => Path::new(RUNNING),
            Self::Other(path) => path,
        }
    }

    /// Whether it is featherload's command line, which has no `main` of the user.
    fn is_command_line(&self) -> bool {
        match self {
            Self::Own => is_command_line(),
            Self::Other(path) => path.file_name().is_some_and(|name| name == NAME),
        }
    }

    /// Advice for a failed handshake.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            _ if self.is_command_line() => {
                "run it with --version to check that it runs, and check the limits of processes \
                 (`ulimit -a`) and the free memory"
            }
            Self::Own => {
                "this program is its own helper: make `featherload::init();` the first line of \
                 main, before arguments are read; a test of cargo's harness needs another program, \
                 named with LoaderBuilder::helper"
            }
            Self::Other(_) => {
                "run it with --version to check that it runs; a program of yours needs \
                 `featherload::init();` as the first line of main"
            }
        }
    }
}

impl fmt::Display for HelperProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => own_executable().display().fmt(f),
            Self::Other(path) => path.display().fmt(f),
        }
    }
}

/// Finds the helper: the named one, else `FEATHERLOAD_HELPER`, else this program if it called
/// `init` and lacks nothing, else `featherload` next to it, else the one on PATH.
///
/// # Errors
/// No helper. The text states what this program lacks, and lists everything that was tried.
pub(crate) fn find(named: Option<&Path>, lacks: Option<&'static str>) -> Result<HelperProgram> {
    if let Some(path) = named {
        // Its file may be replaced meanwhile. The running one stays valid.
        return match own_helper(lacks) {
            Ok(own) if path == own_executable() => Ok(own),
            _ => explicit(path, "LoaderBuilder::helper"),
        };
    }
    if let Some(path) = env::var_os("FEATHERLOAD_HELPER") {
        return explicit(Path::new(&path), "FEATHERLOAD_HELPER");
    }
    let own_fault = match own_helper(lacks) {
        Ok(own) => return Ok(own),
        Err(why) => why,
    };
    let siblings = env::current_exe().map_or_else(|_| Vec::new(), |exe| built_together(&exe));
    let on_path = in_path(env::var_os("PATH").as_deref());
    let trusted = TrustedOwners::of_process();
    let mut refused = Vec::new();
    for path in siblings.iter().filter(|path| executable(path).is_some()) {
        match trusted.why_not(path) {
            None => return Ok(HelperProgram::Other(path.clone())),
            Some(why) => refused.push(format!("{} is not used: {why}", quoted(path))),
        }
    }
    // The user's PATH is trusted, as for every command.
    if let Some(found) = on_path.iter().find(|p| executable(p).is_some()) {
        for refused in &refused {
            tracing::warn!("{refused}; the helper is {}", found.display());
        }
        return Ok(HelperProgram::Other(found.clone()));
    }
    if !refused.is_empty() {
        return Err(Error::option(
            "helper",
            format!(
                "no helper to start workers with: {}; remove that permission, or name the helper \
                 with LoaderBuilder::helper or FEATHERLOAD_HELPER, if you trust it",
                refused.join("; ")
            ),
        ));
    }
    let tried: Vec<String> = siblings
        .iter()
        .chain(&on_path)
        .map(|path| quoted(path))
        .collect();
    Err(Error::option(
        "helper",
        format!(
            "no helper to start workers with: {own_fault}; or install one with `cargo install \
             featherload --features cli`, name one with LoaderBuilder::helper or \
             FEATHERLOAD_HELPER, or use LaunchMethod::Fork (no executable of yours or root's at: \
             {})",
            tried.join(", ")
        ),
    ))
}

/// This program, or why it cannot be the helper. `lacks` names the feature that it was built
/// without.
fn own_helper(lacks: Option<&'static str>) -> std::result::Result<HelperProgram, String> {
    if let Some(feature) = lacks {
        return Err(format!(
            "this library was built without the feature '{feature}', so this program cannot be \
             its own"
        ));
    }
    match init_state() {
        InitState::Ready => Ok(HelperProgram::Own),
        InitState::NotCalled => Err(
            "add `featherload::init();` as the first line of main, and this \
                             program is its own"
                .to_owned(),
        ),
        InitState::ThreadsRunning(threads) => {
            let advice = match process::preloaded() {
                Some(libraries) => format!(
                    "a library of LD_PRELOAD={libraries} is likely to have started the rest; \
                     without it"
                ),
                None => "make it the first line of main, and".to_owned(),
            };
            Err(format!(
                "featherload::init() was called when {threads} threads ran: {advice} this program \
                 is its own"
            ))
        }
        InitState::ThreadsUnknown => Err(
            "/proc is not mounted, so this program, which called featherload::init(), cannot count \
             its threads"
                .to_owned(),
        ),
    }
}

fn quoted(path: &Path) -> String {
    path.display().to_string()
}

/// Paths of executables that were built or installed together with this one.
fn built_together(exe: &Path) -> Vec<PathBuf> {
    let Some(folder) = exe.parent() else {
        return Vec::new();
    };
    let mut found = vec![folder.join(NAME)];
    // Cargo puts examples and tests in a folder below that of executables.
    let is_cargo_folder = folder
        .file_name()
        .is_some_and(|n| n == "deps" || n == "examples");
    if let Some(above) = folder.parent().filter(|_| is_cargo_folder) {
        found.push(above.join(NAME));
    }
    found
}

/// Only absolute folders: an empty entry of PATH means the working folder.
fn in_path(path: Option<&OsStr>) -> Vec<PathBuf> {
    path.map(|path| {
        env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(NAME))
            .collect()
    })
    .unwrap_or_default()
}

/// Owners whose files may be started without being named by the user. A program may lie in a folder
/// where others write, such as `/tmp`; then files next to it are not trusted.
struct TrustedOwners {
    user: u32,
    /// Owner of this program's file. Trusted, because the owner can change this program.
    installer: Option<u32>,
    /// The user's private group, which has the same number as the user. With such groups umask 002
    /// is usual, so write permission of the group is harmless.
    own_group: Option<u32>,
}

/// Permission bits: write by group, write by others.
const BY_GROUP: u32 = 0o020;
const BY_OTHERS: u32 = 0o002;

impl TrustedOwners {
    fn of_process() -> Self {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        Self {
            user,
            installer: fs::metadata(RUNNING).ok().map(|m| m.uid()),
            own_group: (user == group).then_some(group),
        }
    }

    /// Why the file must not be started. `None` if only trusted owners can have written or replaced
    /// it. For a link, both its own place and its target are checked.
    fn why_not(&self, path: &Path) -> Option<String> {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(e) => return Some(format!("it cannot be checked: {e}")),
        };
        let folders = [path, &real].into_iter().filter_map(Path::parent);
        folders
            .chain([real.as_path()])
            .find_map(|place| match fs::metadata(place) {
                Ok(about) => self
                    .fault(&about)
                    .map(|why| format!("{} {why}", quoted(place))),
                Err(e) => Some(format!("{} cannot be checked: {e}", quoted(place))),
            })
    }

    fn fault(&self, about: &Metadata) -> Option<String> {
        let (owner, mode) = (about.uid(), about.mode());
        let known = owner == 0 || owner == self.user || Some(owner) == self.installer;
        if !known {
            return Some(format!("belongs to user {owner}, not to you or root"));
        }
        if mode & BY_OTHERS != 0 {
            return Some(format!(
                "is writable by everyone (mode {:o})",
                mode & 0o7777
            ));
        }
        if mode & BY_GROUP != 0 && Some(about.gid()) != self.own_group {
            let group = about.gid();
            return Some(format!(
                "is writable by group {group} (mode {:o})",
                mode & 0o7777
            ));
        }
        None
    }
}

fn explicit(path: &Path, source: &str) -> Result<HelperProgram> {
    if executable(path).is_some() {
        Ok(HelperProgram::Other(path.to_owned()))
    } else {
        Err(Error::option(
            "helper",
            format!(
                "{source} names {}, which is not an executable file",
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
        let e = find(Some(Path::new("/nowhere/featherload")), None).unwrap_err();
        assert!(e.to_string().contains("/nowhere/featherload"), "{e}");
        assert_eq!(e.option_name(), Some("helper"));
        let sh = HelperProgram::Other("/bin/sh".into());
        assert_eq!(find(Some(Path::new("/bin/sh")), None).unwrap(), sh);
    }

    /// The command line has no `main` of the user.
    #[test]
    fn only_programs_of_users_are_told_of_init() {
        let advice = |path: &str| HelperProgram::Other(path.into()).advice();
        assert!(!advice("/usr/bin/featherload").contains("init()"));
        assert!(advice("/usr/bin/featherload").contains("ulimit -a"));
        assert!(advice("/home/me/train").contains("`featherload::init();`"));
        assert!(
            HelperProgram::Own
                .advice()
                .contains("`featherload::init();`")
        );
    }

    #[test]
    fn only_folders_of_a_build_have_one_above() {
        let of = |exe: &str| built_together(Path::new(exe));
        assert_eq!(of("/opt/a/train"), [Path::new("/opt/a/featherload")]);
        assert_eq!(
            of("/b/debug/examples/train"),
            ["/b/debug/examples/featherload", "/b/debug/featherload"].map(PathBuf::from)
        );
    }

    #[test]
    fn the_working_folder_is_not_searched() {
        let path = OsStr::new(":.:bin:/usr/bin");
        assert_eq!(in_path(Some(path)), [Path::new("/usr/bin/featherload")]);
        assert!(in_path(None).is_empty());
    }

    /// Creates a helper in its own folder, with these modes.
    fn helper_in(folder: u32, file: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        fs::write(&path, "").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        mode(&path, file);
        mode(dir.path(), folder);
        (dir, path)
    }

    fn user() -> TrustedOwners {
        TrustedOwners {
            own_group: None,
            ..TrustedOwners::of_process()
        }
    }

    #[test]
    fn what_others_may_write_is_not_started() {
        for (folder, file, words) in [
            (0o755, 0o755, None),
            (0o700, 0o755, None),
            (
                0o755,
                0o757,
                Some("featherload is writable by everyone (mode 757)"),
            ),
            (0o755, 0o775, Some("featherload is writable by group ")),
            (0o777, 0o755, Some(" is writable by everyone (mode 777)")),
            // Like /tmp: the file cannot be replaced, but anyone may have created it.
            (0o1777, 0o755, Some(" is writable by everyone (mode 1777)")),
            (0o775, 0o755, Some(" is writable by group ")),
        ] {
            let (dir, path) = helper_in(folder, file);
            let why = user().why_not(&path);
            assert_eq!(
                why.is_some(),
                words.is_some(),
                "{folder:o} {file:o}: {why:?}"
            );
            if let (Some(why), Some(words)) = (why, words) {
                assert!(why.contains(words), "{why}");
                assert!(why.starts_with(&quoted(dir.path())), "{why}");
            }
        }
    }

    #[test]
    fn a_link_is_where_it_lies_and_what_it_leads_to() {
        let (_safe, safe) = helper_in(0o755, 0o755);
        let (_open, open) = helper_in(0o777, 0o755);
        let link = |from: &Path, to: &Path| {
            fs::remove_file(from).unwrap();
            std::os::unix::fs::symlink(to, from).unwrap();
        };
        let (_dir, path) = helper_in(0o755, 0o755);
        link(&path, &safe);
        assert_eq!(user().why_not(&path), None);
        link(&path, &open);
        assert!(user().why_not(&path).is_some());
        link(&open, &safe);
        assert!(user().why_not(&open).is_some());
    }

    #[test]
    fn what_a_stranger_owns_is_not_started() {
        let (_dir, path) = helper_in(0o755, 0o755);
        let owner = fs::metadata(&path).unwrap().uid();
        let stranger = TrustedOwners {
            user: owner + 1,
            installer: None,
            own_group: None,
        };
        // Files of root may be started by every user.
        assert_eq!(stranger.why_not(&path).is_none(), owner == 0);
    }

    #[test]
    fn a_group_of_ones_own_is_nobody_else() {
        let (_dir, path) = helper_in(0o775, 0o775);
        let group = fs::metadata(&path).unwrap().gid();
        let own_group = |own_group| TrustedOwners {
            own_group,
            ..user()
        };
        assert_eq!(own_group(Some(group)).why_not(&path), None);
        assert!(own_group(Some(group + 1)).why_not(&path).is_some());
    }
}
