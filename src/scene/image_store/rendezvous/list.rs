//! The list of a store: the processes that have it open.
//!
//! Runs in the consumer. A change locks the list for less than a millisecond.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::scene::image_store::content::StoreBacking;
use crate::scene::image_store::rendezvous::folders;
use crate::sys::byte_locks;

/// Prefix of the names of lists.
const NAME: &str = "store-";

/// Maximum bytes of a list: tens of thousands of holders.
pub(super) const MOST_LIST: u64 = 1 << 20;

/// A process that has the store open, and its descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoreHolder {
    /// Process id in its namespace.
    pub(super) process: i32,
    /// Inode number of its PID namespace.
    pub(super) namespace: u64,
    /// Inode number of its user namespace.
    pub(super) users: u64,
    /// The byte of the list that it locks while it lives.
    #[serde(rename = "seat")]
    pub(super) lock_byte: u64,
    pub(super) control: i32,
    pub(super) content: i32,
    pub(super) holding: StoreBacking,
}

impl StoreHolder {
    /// Whether it still locks its byte. If the system reports an error, the holder counts as alive.
    fn is_alive(&self, list: &File) -> bool {
        byte_locks::is_byte_held(list, self.lock_byte).unwrap_or(true)
    }
}

/// Path of the list of the store of `key`.
pub(super) fn path(key: u128) -> Result<PathBuf> {
    folders::own_folder().map(|folder| folder.join(format!("{NAME}{key:032x}")))
}

/// Reads the holders. Empty if the text is incomplete or too long.
fn read_holders(file: &mut File) -> Vec<StoreHolder> {
    let mut text = String::new();
    let read = file.take(MOST_LIST).read_to_string(&mut text).is_ok();
    let holders = serde_json::from_str(&text).ok().filter(|_| read);
    holders.unwrap_or_default()
}

/// The living holders in the list at `path`, which is in another folder. Reads it without a lock,
/// so that no process waits for two lists.
pub(super) fn living_holders(path: PathBuf) -> Vec<StoreHolder> {
    let options = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let Ok(mut file) = options else {
        return Vec::new();
    };
    let holders = read_holders(&mut file).into_iter();
    holders.filter(|holder| holder.is_alive(&file)).collect()
}

/// The list of a store and its holders, locked until it is dropped.
#[derive(Debug)]
pub(super) struct HolderList {
    pub(super) file: File,
    pub(super) holders: Vec<StoreHolder>,
}

/// Longest wait for a list's lock. Each process holds it for less than a millisecond.
const LOCKED: Duration = Duration::from_secs(5);

impl HolderList {
    pub(super) fn open(path: &Path) -> Result<Self> {
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
                // Locked, or removed by the last holder meanwhile.
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

    /// Locks the file of a list. `None` if another process has locked it, or if it has no name any
    /// more. An incomplete list has no holders.
    fn of(mut file: File) -> Option<Self> {
        file.try_lock().ok()?;
        let holders = read_holders(&mut file);
        let list = Self { file, holders };
        let named = list.file.metadata().is_ok_and(|found| found.nlink() > 0);
        named.then_some(list)
    }

    /// Keeps only the holders that still lock their seats.
    pub(super) fn remove_dead(&mut self) {
        let file = &self.file;
        self.holders.retain(|holder| holder.is_alive(file));
    }

    /// A seat that no holder has.
    pub(super) fn free_lock_byte(&self) -> u64 {
        let taken = self.holders.iter().map(|holder| holder.lock_byte).max();
        taken.map_or(0, |lock_byte| lock_byte.saturating_add(1))
    }

    /// Locks the seat of this process.
    pub(super) fn lock_byte(&self, holder: &StoreHolder) -> Result<File> {
        let file = self.file.try_clone();
        let file =
            file.map_err(|e| Error::io("duplicate the descriptor of the store's list", e))?;
        byte_locks::hold_byte(&file, holder.lock_byte)?;
        Ok(file)
    }

    pub(super) fn write(&mut self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec(&self.holders)
            .map_err(|e| Error::protocol(format!("serialise the holders of a store: {e}")))?;
        self.file
            .rewind()
            .and_then(|()| self.file.write_all(&text))
            .and_then(|()| self.file.set_len(text.len() as u64))
            .map_err(|e| Error::io_at("write", path, e))
    }

    /// Removes the list if it has no holders.
    pub(super) fn end(self, path: &Path) {
        if self.holders.is_empty() {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for HolderList {
    /// Unlocks explicitly, because a forked copy of this process may have the file open.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Removes other lists in the folder of `own` that have no living holder. A killed process leaves
/// its list.
pub(super) fn remove_stale_lists(own: &Path) {
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
        let Some(mut list) = File::open(&path).ok().and_then(HolderList::of) else {
            continue;
        };
        list.remove_dead();
        list.end(&path);
    }
}
