//! Rendezvous: how the processes of a machine that train on the same images share one image store.
//!
//! Runs in the consumer. A small file per store lists the processes that have it open, with their
//! namespaces and descriptors. A later process opens the same memory through `/proc`. So no name
//! outlives its users, and any process may exit first, in any way. Each process locks a byte of the
//! file while it lives, which processes of every namespace can see. Only processes of the same user
//! and the same PID namespace share a store: a process id of another namespace means no process or
//! another one. A user may have several folders of lists (a user namespace, a session); all are
//! read. Not here: the content of a store.
//!
//! - `folders`: folders of the lists; `list`: the list of one store.

mod folders;
mod list;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result};
use crate::scene::image_store::content::StoreBacking;
use crate::scene::image_store::layout::StoreLayout;
use crate::scene::image_store::rendezvous::list::{
    HolderList, StoreHolder, living_holders, remove_stale_lists,
};
use crate::scene::image_store::store::ImageStore;
use crate::sys::pid_namespace;

/// Offers a store to other processes until it is dropped.
#[derive(Debug)]
pub(crate) struct StoreOffer {
    file: PathBuf,
    holder: StoreHolder,
    /// Open while this process lives. Closing it releases the lock of its seat.
    _lock_byte: File,
}

/// Returns the store of `key`: that of another process whose backing passes `suits`, or the one
/// that `create` makes. If sharing is not possible, returns the result of `create` and logs a
/// warning with the reason.
///
/// # Errors
/// The errors of `create`.
pub(crate) fn open_or_create(
    key: u128,
    places: &StoreLayout,
    suits: impl Fn(StoreBacking) -> bool,
    create: impl FnOnce() -> Result<ImageStore>,
) -> Result<(ImageStore, Option<StoreOffer>)> {
    let listed = list::path(key)
        .and_then(|path| Ok((HolderList::open(&path)?, path, current_namespaces()?)));
    let (mut list, path, (namespace, users)) = match listed {
        Ok(listed) => listed,
        Err(e) => {
            tracing::warn!("decoded images are not shared with other processes: {e}");
            return Ok((create()?, None));
        }
    };
    list.remove_dead();
    let elsewhere = folders::lists_elsewhere(&path)
        .into_iter()
        .flat_map(living_holders);
    let holders = list.holders.iter().copied().chain(elsewhere);
    let (near, far): (Vec<StoreHolder>, Vec<StoreHolder>) = holders
        .filter(|holder| suits(holder.holding))
        .partition(|holder| holder.namespace == namespace);
    let found = near
        .iter()
        .find_map(|holder| open_from_holder(holder, users, places, key));
    if let (None, Some(holder)) = (&found, far.first()) {
        tracing::warn!(
            "decoded images are not shared with {}: process {} of PID namespace {} has them, and \
             this process is in namespace {namespace}; start both in one PID namespace",
            match far.len() {
                1 => "another process".to_owned(),
                n => format!("{n} other processes"),
            },
            holder.process,
            holder.namespace
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
    let holder = StoreHolder {
        process: getpid().as_raw(),
        namespace,
        users,
        lock_byte: list.free_lock_byte(),
        control,
        content,
        holding: store.backing(),
    };
    list.holders.push(holder);
    let written = list.lock_byte(&holder).and_then(|lock_byte| {
        list.write(&path)?;
        Ok(lock_byte)
    });
    drop(list);
    match written {
        Ok(lock_byte) => {
            remove_stale_lists(&path);
            let presence = StoreOffer {
                file: path,
                holder,
                _lock_byte: lock_byte,
            };
            Ok((store, Some(presence)))
        }
        Err(e) => {
            tracing::warn!("decoded images are not shared with other processes: {e}");
            Ok((store, None))
        }
    }
}

/// The PID namespace and the user namespace.
fn current_namespaces() -> Result<(u64, u64)> {
    pid_namespace::current()
        .and_then(|processes| Ok((processes, pid_namespace::of_users()?)))
        .map_err(|e| Error::io("find the namespaces of this process", e))
}

/// Opens the store of a holder in this PID namespace. `None` if the holder has exited or has
/// another store now. Logs a warning if it lives but access is denied. `users` is the user
/// namespace of this process.
fn open_from_holder(
    holder: &StoreHolder,
    users: u64,
    places: &StoreLayout,
    key: u128,
) -> Option<ImageStore> {
    let open = |fd: i32| -> io::Result<OwnedFd> {
        let path = pid_namespace::folder(holder.process)?.join(format!("fd/{fd}"));
        let opened = File::options().read(true).write(true).open(path)?;
        Ok(OwnedFd::from(opened))
    };
    let opened = open(holder.control).and_then(|control| Ok((control, open(holder.content)?)));
    let e = match opened {
        Ok((control, content)) => {
            return ImageStore::open(places.clone(), holder.holding, control, content, key).ok();
        }
        Err(e) if e.kind() == ErrorKind::NotFound => return None,
        Err(e) => e,
    };
    let reason = match holder.users == users {
        true => Error::io(format!("open its memory in /proc/{}/fd", holder.process), e).to_string(),
        false => format!(
            "it runs in user namespace {}, and this process in {users}, which may not open its \
             memory ({e}); start both in one user namespace",
            holder.users
        ),
    };
    tracing::warn!(
        "decoded images are not shared with process {}: {reason}",
        holder.process
    );
    None
}

impl Drop for StoreOffer {
    /// Does nothing in a forked copy: the offer belongs to the parent.
    fn drop(&mut self) {
        if Pid::from_raw(self.holder.process) != getpid() {
            return;
        }
        if let Err(e) = remove_holder(&self.file, &self.holder) {
            tracing::warn!("{e}");
        }
    }
}

fn remove_holder(path: &Path, holder: &StoreHolder) -> Result<()> {
    let mut list = HolderList::open(path)?;
    list.holders.retain(|other| other != holder);
    match list.holders.is_empty() {
        true => {
            list.end(path);
            Ok(())
        }
        false => list.write(path),
    }
}
