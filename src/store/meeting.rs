//! Where the processes of a machine that train on the same images find one store.
//!
//! In the consumer. A small file per store lists who has it open: process and
//! descriptors. Who comes later opens the same memory through `/proc`, so nothing has a
//! name that outlives its users, and any of them may end first, in any way. Only
//! processes of the same user meet. Never in here: what a store holds.

use std::fs::{self, DirBuilder, File};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Pid, Uid, getpid};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::store::content::Holding;
use crate::store::pictures::Pictures;
use crate::store::places::Places;

/// What the names of lists begin with.
const NAME: &str = "store-";

/// Who has the store open, and under which descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Guest {
    process: i32,
    control: i32,
    content: i32,
    holding: Holding,
}

/// That this process can be asked for a store, until this is dropped.
#[derive(Debug)]
pub(crate) struct Presence {
    file: PathBuf,
    guest: Guest,
}

/// The store of `key`: that of a process which has it, or the one that `create` makes.
/// With it whether it was there.
///
/// # Errors
/// A system that refuses; a folder that belongs to somebody else.
pub(crate) fn meet(
    key: u128,
    places: &Places,
    create: impl FnOnce() -> Result<Pictures>,
) -> Result<(Pictures, Presence, bool)> {
    let path = folder()?.join(format!("{NAME}{key:032x}"));
    let (mut file, mut guests) = locked(&path)?;
    let mut found = None;
    guests.retain(|guest| {
        let store = found.is_none().then(|| ask(guest, places, key));
        match store {
            Some(Some(store)) => {
                found = Some(store);
                true
            }
            Some(None) => false,
            None => true,
        }
    });
    let was_there = found.is_some();
    let store = match found {
        Some(store) => store,
        None => create()?,
    };
    let [control, content] = store.descriptors().map(|fd| fd.as_raw_fd());
    let guest = Guest {
        process: getpid().as_raw(),
        control,
        content,
        holding: store.holding(),
    };
    guests.push(guest);
    write(&mut file, &path, &guests)?;
    drop(file);
    sweep(&path);
    Ok((store, Presence { file: path, guest }, was_there))
}

/// The store that a guest has open; none where it has gone, or has another one by now.
fn ask(guest: &Guest, places: &Places, key: u128) -> Option<Pictures> {
    let open = |fd: i32| {
        let path = format!("/proc/{}/fd/{fd}", guest.process);
        let opened = File::options().read(true).write(true).open(path);
        opened.ok().map(OwnedFd::from)
    };
    let (control, content) = (open(guest.control)?, open(guest.content)?);
    Pictures::open(places.clone(), guest.holding, control, content, key).ok()
}

impl Drop for Presence {
    /// Not in a forked copy: it is the parent that can be asked.
    fn drop(&mut self) {
        if Pid::from_raw(self.guest.process) != getpid() {
            return;
        }
        if let Err(e) = leave(&self.file, &self.guest) {
            tracing::warn!("{e}");
        }
    }
}

fn leave(path: &Path, guest: &Guest) -> Result<()> {
    let (mut file, mut guests) = locked(path)?;
    guests.retain(|other| other != guest);
    match guests.is_empty() {
        true => fs::remove_file(path).map_err(|e| Error::io_at("remove", path, e)),
        false => write(&mut file, path, &guests),
    }
}

/// The list of a store and whom it names, locked until the file is dropped.
fn locked(path: &Path) -> Result<(File, Vec<Guest>)> {
    loop {
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path);
        let mut file = opened.map_err(|e| Error::io_at("open", path, e))?;
        file.lock().map_err(|e| Error::io_at("lock", path, e))?;
        let links = file
            .metadata()
            .map_err(|e| Error::io_at("look at", path, e))?
            .nlink();
        if links == 0 {
            // The last guest took it away meanwhile.
            continue;
        }
        let mut text = String::new();
        // One that was broken off in the middle names nobody: who was in it is not found.
        let read = file.read_to_string(&mut text).is_ok();
        let guests = serde_json::from_str(&text).ok().filter(|_| read);
        return Ok((file, guests.unwrap_or_default()));
    }
}

fn write(file: &mut File, path: &Path, guests: &[Guest]) -> Result<()> {
    let text = serde_json::to_vec(guests)
        .map_err(|e| Error::protocol(format!("write who has a store: {e}")))?;
    file.rewind()
        .and_then(|()| file.set_len(0))
        .and_then(|()| file.write_all(&text))
        .map_err(|e| Error::io_at("write", path, e))
}

/// Takes away the lists beside `own` that name no process which is alive: who was killed
/// could not.
fn sweep(own: &Path) {
    let beside = own.parent().and_then(|folder| fs::read_dir(folder).ok());
    let lists = beside
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let others = lists.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        path != own && name.is_some_and(|name| name.starts_with(NAME))
    });
    for path in others {
        let Ok(mut file) = File::open(&path) else {
            continue;
        };
        // One that is locked has somebody.
        let mut text = String::new();
        let guests: Option<Vec<Guest>> = match file.try_lock() {
            Ok(()) => file.read_to_string(&mut text).ok(),
            Err(_) => None,
        }
        .and_then(|_| serde_json::from_str(&text).ok());
        let is_alive = |guest: &Guest| Path::new(&format!("/proc/{}", guest.process)).exists();
        if guests.is_some_and(|guests| !guests.iter().any(is_alive)) {
            // Whoever opened it meanwhile sees that it has no name any more.
            let _ = fs::remove_file(&path);
        }
    }
}

/// A folder of this user's alone, which goes with the session or the next boot.
fn folder() -> Result<PathBuf> {
    let of_session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = match of_session.filter(|dir| dir.is_absolute() && is_ours(dir)) {
        Some(dir) => dir.join("featherload"),
        None => PathBuf::from(format!("/tmp/featherload-{}", Uid::effective())),
    };
    let made = DirBuilder::new()
        .recursive(false)
        .mode(0o700)
        .create(&folder);
    match made {
        Ok(()) => Ok(folder),
        Err(_) if is_ours(&folder) => Ok(folder),
        Err(e) => Err(Error::io_at(
            "use (it must belong to this user, and nobody else may write to it)",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::pictures::Patience;

    fn places() -> Places {
        Places::new([100, 200]).unwrap()
    }

    fn create(key: u128) -> Result<Pictures> {
        Pictures::create(places(), Holding::Memory, &std::env::temp_dir(), key)
    }

    fn met(key: u128) -> (Pictures, Presence, bool) {
        meet(key, &places(), || create(key)).unwrap()
    }

    fn key(of: &str) -> u128 {
        twox_hash::XxHash3_128::oneshot(format!("{of} {}", getpid()).as_bytes())
    }

    #[test]
    fn who_comes_later_has_what_is_there() {
        let key = key("later");
        let (mut first, presence, was_there) = met(key);
        assert!(!was_there);
        let made = first.make(1, Patience::Wait, |out| {
            out.fill(7);
            Ok(())
        });
        assert!(made.unwrap());
        let (second, later, was_there) = met(key);
        assert!(was_there && second.is_there(1) && !second.is_there(0));
        // The first goes: a third finds the second.
        drop((first, presence));
        let (third, last, was_there) = met(key);
        assert!(was_there && third.is_there(1));
        let file = last.file.clone();
        drop((second, later));
        assert!(file.exists());
        drop((third, last));
        assert!(!file.exists());
        let (fourth, _presence, was_there) = met(key);
        assert!(!was_there && !fourth.is_there(1));
    }

    #[test]
    fn who_has_gone_or_has_another_store_is_passed_over() {
        let key = key("gone");
        let (other, ..) = met(key ^ 1);
        let [control, content] = other.descriptors().map(|fd| fd.as_raw_fd());
        let path = folder().unwrap().join(format!("store-{key:032x}"));
        let guest = |process, control, content| Guest {
            process,
            control,
            content,
            holding: Holding::Memory,
        };
        let own = getpid().as_raw();
        // No such process, no such descriptors, another store's, and one that is none.
        let guests = [
            guest(i32::MAX, 3, 4),
            guest(own, 9_999, 9_998),
            guest(own, control, content),
            guest(own, 0, 1),
        ];
        let mut file = File::create(&path).unwrap();
        write(&mut file, &path, &guests).unwrap();
        drop(file);
        let (_store, presence, was_there) = met(key);
        assert!(!was_there);
        let (_file, listed) = locked(&path).unwrap();
        assert_eq!(listed, [presence.guest]);
    }

    #[test]
    fn lists_of_the_killed_are_swept_and_those_of_the_living_are_not() {
        let killed = folder()
            .unwrap()
            .join(format!("store-{:032x}", key("killed")));
        let guest = Guest {
            process: i32::MAX,
            control: 3,
            content: 4,
            holding: Holding::File,
        };
        write(&mut File::create(&killed).unwrap(), &killed, &[guest]).unwrap();
        let (_store, living, _) = met(key("living"));
        let (_other, ..) = met(key("sweeper"));
        assert!(!killed.exists() && living.file.exists());
    }

    #[test]
    fn a_list_that_was_broken_off_names_nobody() {
        let key = key("broken");
        let path = folder().unwrap().join(format!("store-{key:032x}"));
        fs::write(&path, b"[{\"process\": 1, \"cont").unwrap();
        let (_store, _presence, was_there) = met(key);
        assert!(!was_there);
    }
}
