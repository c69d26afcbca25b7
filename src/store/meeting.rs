//! Where the processes of a machine that train on the same images find one store.
//!
//! In the consumer. A small file per store lists who has it open: process, PID namespace and
//! descriptors. Who comes later opens the same memory through `/proc`, so nothing has a
//! name that outlives its users, and any of them may end first, in any way. Each locks a byte
//! of the file while it lives, which processes of every namespace see. Only processes of the
//! same user and of the same PID namespace meet: a number of another namespace leads to no
//! process, or to another one. Never in here: what a store holds.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::unistd::{Pid, Uid, getpid};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::store::content::Holding;
use crate::store::pictures::Pictures;
use crate::store::places::Places;
use crate::sys::{pid_namespace, turns};

/// What the names of lists begin with.
const NAME: &str = "store-";

/// The longest list that is read: tens of thousands of guests.
const MOST_LIST: u64 = 1 << 20;

/// Who has the store open, and under which descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Guest {
    /// Its number in its namespace.
    process: i32,
    /// Inode number of its PID namespace.
    namespace: u64,
    /// The byte of the list that it locks while it lives.
    seat: u64,
    control: i32,
    content: i32,
    holding: Holding,
}

/// That this process can be asked for a store, until this is dropped.
#[derive(Debug)]
pub(crate) struct Presence {
    file: PathBuf,
    guest: Guest,
    /// Open for as long as this process lives: with it ends the lock of its seat.
    _seat: File,
}

/// The store of `key`: that of a process which has it and whose kind `suits`, or the one
/// that `create` makes. Where no meeting is possible that is for this process alone, and a
/// warning says why.
///
/// # Errors
/// What `create` says.
pub(crate) fn meet(
    key: u128,
    places: &Places,
    suits: impl Fn(Holding) -> bool,
    create: impl FnOnce() -> Result<Pictures>,
) -> Result<(Pictures, Option<Presence>)> {
    let listed = folder()
        .map(|folder| folder.join(format!("{NAME}{key:032x}")))
        .and_then(|path| Ok((List::open(&path)?, path, current_namespace()?)));
    let (mut list, path, namespace) = match listed {
        Ok(listed) => listed,
        Err(e) => {
            tracing::warn!("decoded images are not shared with other processes: {e}");
            return Ok((create()?, None));
        }
    };
    list.keep_the_living();
    let suitable = list.guests.iter().filter(|guest| suits(guest.holding));
    let (near, far): (Vec<&Guest>, Vec<&Guest>) =
        suitable.partition(|guest| guest.namespace == namespace);
    let found = near.into_iter().find_map(|guest| ask(guest, places, key));
    if let (None, Some(guest)) = (&found, far.first()) {
        tracing::warn!(
            "decoded images are not shared with {}: process {} of PID namespace {} has them, and \
             this process is in namespace {namespace}; start both in one PID namespace",
            match far.len() {
                1 => "another process".to_owned(),
                n => format!("{n} other processes"),
            },
            guest.process,
            guest.namespace
        );
    }
    let made = found.map_or_else(create, Ok);
    let store = match made {
        Ok(store) => store,
        Err(e) => {
            list.end(&path);
            return Err(e);
        }
    };
    let [control, content] = store.descriptors().map(|fd| fd.as_raw_fd());
    let guest = Guest {
        process: getpid().as_raw(),
        namespace,
        seat: list.free_seat(),
        control,
        content,
        holding: store.holding(),
    };
    list.guests.push(guest);
    let written = list.seat(&guest).and_then(|seat| {
        list.write(&path)?;
        Ok(seat)
    });
    drop(list);
    match written {
        Ok(seat) => {
            sweep(&path);
            let presence = Presence {
                file: path,
                guest,
                _seat: seat,
            };
            Ok((store, Some(presence)))
        }
        Err(e) => {
            tracing::warn!("decoded images are not shared with other processes: {e}");
            Ok((store, None))
        }
    }
}

fn current_namespace() -> Result<u64> {
    pid_namespace::current().map_err(|e| Error::io("find the PID namespace of this process", e))
}

/// The store that a guest of this namespace has open; none where it has gone, or has another
/// one by now. A living one that may not be asked is reported.
fn ask(guest: &Guest, places: &Places, key: u128) -> Option<Pictures> {
    let open = |fd: i32| -> io::Result<OwnedFd> {
        let path = pid_namespace::folder(guest.process)?.join(format!("fd/{fd}"));
        let opened = File::options().read(true).write(true).open(path)?;
        Ok(OwnedFd::from(opened))
    };
    let opened = open(guest.control).and_then(|control| Ok((control, open(guest.content)?)));
    match opened {
        Ok((control, content)) => {
            Pictures::open(places.clone(), guest.holding, control, content, key).ok()
        }
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => {
            let e = Error::io(format!("open its memory in /proc/{}/fd", guest.process), e);
            tracing::warn!(
                "decoded images are not shared with process {}: {e}",
                guest.process
            );
            None
        }
    }
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
    let mut list = List::open(path)?;
    list.guests.retain(|other| other != guest);
    match list.guests.is_empty() {
        true => {
            list.end(path);
            Ok(())
        }
        false => list.write(path),
    }
}

/// The list of a store and whom it names, locked until this is dropped.
#[derive(Debug)]
struct List {
    file: File,
    guests: Vec<Guest>,
}

/// How long a list may be locked by somebody: each has it for less than a millisecond.
const LOCKED: Duration = Duration::from_secs(5);

impl List {
    fn open(path: &Path) -> Result<Self> {
        let began = Instant::now();
        while began.elapsed() < LOCKED {
            let opened = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(path);
            let file = opened.map_err(|e| Error::io_at("open", path, e))?;
            match Self::of(file) {
                Some(list) => return Ok(list),
                // Locked, or the last guest took it away meanwhile.
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        Err(Error::dataset(
            path,
            format!(
                "is locked by another process for {LOCKED:?}: remove it if that process has \
                     ended"
            ),
        ))
    }

    /// Locks the file of a list; none where somebody has it locked, or it has no name any
    /// more. One that was broken off in the middle names nobody.
    fn of(mut file: File) -> Option<Self> {
        file.try_lock().ok()?;
        let mut text = String::new();
        let read = (&mut file)
            .take(MOST_LIST)
            .read_to_string(&mut text)
            .is_ok();
        let guests = serde_json::from_str(&text).ok().filter(|_| read);
        let list = Self {
            file,
            guests: guests.unwrap_or_default(),
        };
        let named = list.file.metadata().is_ok_and(|found| found.nlink() > 0);
        named.then_some(list)
    }

    /// Only those that still have their seats.
    fn keep_the_living(&mut self) {
        let file = &self.file;
        // A system that does not answer has lost nobody.
        self.guests
            .retain(|guest| turns::is_kept(file, guest.seat).unwrap_or(true));
    }

    /// A seat that no guest has.
    fn free_seat(&self) -> u64 {
        let taken = self.guests.iter().map(|guest| guest.seat).max();
        taken.map_or(0, |seat| seat.saturating_add(1))
    }

    /// Takes the seat of this process.
    fn seat(&self, guest: &Guest) -> Result<File> {
        let file = self.file.try_clone();
        let file = file.map_err(|e| Error::io("have the list of a store open", e))?;
        turns::keep(&file, guest.seat)?;
        Ok(file)
    }

    fn write(&mut self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec(&self.guests)
            .map_err(|e| Error::protocol(format!("write who has a store: {e}")))?;
        self.file
            .rewind()
            .and_then(|()| self.file.write_all(&text))
            .and_then(|()| self.file.set_len(text.len() as u64))
            .map_err(|e| Error::io_at("write", path, e))
    }

    /// Takes the list away, if it names nobody.
    fn end(self, path: &Path) {
        if self.guests.is_empty() {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for List {
    /// Said, not left to the close: a forked copy of this process may have the file open.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Takes away the lists beside `own` that name no process which is alive: one that was killed
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
        let Some(mut list) = File::open(&path).ok().and_then(List::of) else {
            continue;
        };
        list.keep_the_living();
        list.end(&path);
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
        let made = std::cell::Cell::new(false);
        let create = || {
            made.set(true);
            create(key)
        };
        let (store, presence) = meet(key, &places(), |_| true, create).unwrap();
        (store, presence.unwrap(), !made.get())
    }

    /// The guests that live have their seats until the files are closed.
    fn write(path: &Path, dead: &[Guest], living: &[Guest]) -> Vec<File> {
        let mut list = List::open(path).unwrap();
        list.guests = [dead, living].concat();
        list.write(path).unwrap();
        let file = || File::options().write(true).open(path).unwrap();
        let seated = living.iter().map(|guest| {
            let file = file();
            turns::keep(&file, guest.seat).unwrap();
            file
        });
        seated.collect()
    }

    fn guest(process: i32, seat: u64, [control, content]: [i32; 2]) -> Guest {
        Guest {
            process,
            namespace: current_namespace().unwrap(),
            seat,
            control,
            content,
            holding: Holding::Memory,
        }
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
        let own = getpid().as_raw();
        // No such descriptors, another store's, and one that is none.
        let living = [
            guest(own, 1, [9_999, 9_998]),
            guest(own, 2, [control, content]),
            guest(own, 3, [0, 1]),
        ];
        let seats = write(&path, &[guest(i32::MAX, 0, [3, 4])], &living);
        let (_store, presence, was_there) = met(key);
        assert!(!was_there);
        let listed = List::open(&path).unwrap();
        assert_eq!(listed.guests, [&living[..], &[presence.guest]].concat());
        drop(seats);
    }

    #[test]
    fn a_guest_of_another_namespace_is_not_asked_and_keeps_its_place() {
        let key = key("namespace");
        let path = folder().unwrap().join(format!("store-{key:032x}"));
        let (store, _presence, _) = met(key);
        let descriptors = store.descriptors().map(|fd| fd.as_raw_fd());
        // By its number and its descriptors it is this process, which has the store.
        let mut far = guest(getpid().as_raw(), 7, descriptors);
        far.namespace += 1;
        let seats = write(&path, &[], &[far]);
        let (_other, presence, was_there) = met(key);
        assert!(!was_there);
        assert_eq!(List::open(&path).unwrap().guests, [far, presence.guest]);
        // It ends, as only its lock tells.
        drop(seats);
        let (_third, last, was_there) = met(key);
        assert!(was_there);
        let guests = List::open(&path).unwrap().guests.clone();
        assert_eq!(guests, [presence.guest, last.guest]);
    }

    #[test]
    fn lists_of_the_killed_are_swept_and_those_of_the_living_are_not() {
        let killed = folder()
            .unwrap()
            .join(format!("store-{:032x}", key("killed")));
        write(&killed, &[guest(i32::MAX, 0, [3, 4])], &[]);
        let empty = killed.with_file_name(format!("store-{:032x}", key("empty")));
        fs::write(&empty, b"").unwrap();
        let (_store, living, _) = met(key("living"));
        let (_other, ..) = met(key("sweeper"));
        assert!(!killed.exists() && !empty.exists() && living.file.exists());
    }

    #[test]
    fn a_store_that_cannot_be_made_leaves_no_list_and_one_that_does_not_suit_is_not_taken() {
        let key = key("unmade");
        let path = folder().unwrap().join(format!("store-{key:032x}"));
        let failed = meet(key, &places(), |_| true, || Err(Error::config("no")));
        assert!(failed.is_err() && !path.exists());
        let (_first, _presence, _) = met(key);
        let (_second, presence) = meet(
            key,
            &places(),
            |holding| holding == Holding::File,
            || create(key),
        )
        .unwrap();
        assert_eq!(List::open(&path).unwrap().guests.len(), 2);
        drop(presence);
        assert_eq!(List::open(&path).unwrap().guests.len(), 1);
    }

    #[test]
    fn a_list_is_read_up_to_its_limit() {
        let key = key("long");
        let path = folder().unwrap().join(format!("store-{key:032x}"));
        write(&path, &[guest(getpid().as_raw(), 0, [0, 0])], &[]);
        assert_eq!(List::open(&path).unwrap().guests.len(), 1);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        let mut list = List::open(&path).unwrap();
        assert!(list.guests.is_empty(), "{list:?}");
        assert_eq!(list.file.stream_position().unwrap(), MOST_LIST);
        list.end(&path);
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
