//! Folders of the lists. They belong to this user alone.
//!
//! Runs in the consumer. A process finds its folder by its environment and user id. Both may differ
//! for one user: a login session has its own folder, and a user namespace has other ids.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

use crate::error::{Error, Result};

/// Parent of the folders of all users, and the prefix of our folders' names there.
const SHARED: &str = "/tmp";
const PREFIX: &str = "featherload-";

/// Name of our folder in that of a session.
const IN_SESSION: &str = "featherload";

/// A folder of this user alone. It disappears with the session or the next boot.
pub(super) fn own_folder() -> Result<PathBuf> {
    let folder = match session_folder() {
        Some(folder) => folder,
        None => Path::new(SHARED).join(format!("{PREFIX}{}", Uid::effective())),
    };
    let made = DirBuilder::new()
        .recursive(false)
        .mode(0o700)
        .create(&folder);
    match made {
        Ok(()) => Ok(folder),
        Err(_) if is_ours(&folder) => Ok(folder),
        Err(e) => Err(Error::io_at(
            "use (it must belong to this user, and no other user may write to it)",
            &folder,
            e,
        )),
    }
}

fn is_ours(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| {
        found.is_dir() && found.uid() == Uid::effective().as_raw() && found.mode() & 0o022 == 0
    })
}

/// The folder in that of the login session, if this process has one.
fn session_folder() -> Option<PathBuf> {
    let session = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    (session.is_absolute() && is_ours(&session)).then(|| session.join(IN_SESSION))
}

/// Lists with the name of `own` in other folders of this user.
pub(super) fn lists_elsewhere(own: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (own.parent(), own.file_name()) else {
        return Vec::new();
    };
    let session = PathBuf::from(format!("/run/user/{}/{IN_SESSION}", Uid::effective()));
    let shared = fs::read_dir(SHARED).into_iter().flatten().flatten();
    let shared = shared.filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
    });
    let mut all: Vec<PathBuf> = shared.map(|entry| entry.path()).collect();
    all.extend(session_folder());
    all.push(session);
    all.sort();
    all.dedup();
    all.retain(|other| other != folder && is_ours(other));
    all.into_iter().map(|other| other.join(name)).collect()
}
