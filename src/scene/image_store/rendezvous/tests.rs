//! Sharing of one process with itself, and with holders that are written into lists.

use std::cell::Cell;
use std::fs;
use std::io::Seek;

use super::list::MOST_LIST;
use super::*;
use crate::scene::image_store::store::WaitMode;
use crate::sys::byte_locks;

fn places() -> StoreLayout {
    StoreLayout::new([100, 200]).unwrap()
}

fn create(key: u128) -> Result<ImageStore> {
    ImageStore::create(places(), StoreBacking::Memory, &std::env::temp_dir(), key)
}

fn met(key: u128) -> (ImageStore, StoreOffer, bool) {
    let made = Cell::new(false);
    let create = || {
        made.set(true);
        create(key)
    };
    let (store, presence) = open_or_create(key, &places(), |_| true, create).unwrap();
    (store, presence.unwrap(), !made.get())
}

/// The living holders lock their bytes until the files are closed.
fn write(path: &Path, dead: &[StoreHolder], living: &[StoreHolder]) -> Vec<File> {
    let mut list = HolderList::open(path).unwrap();
    list.holders = [dead, living].concat();
    list.write(path).unwrap();
    let file = || File::options().write(true).open(path).unwrap();
    let locked = living.iter().map(|holder| {
        let file = file();
        byte_locks::hold_byte(&file, holder.lock_byte).unwrap();
        file
    });
    locked.collect()
}

fn holder(process: i32, lock_byte: u64, [control, content]: [i32; 2]) -> StoreHolder {
    StoreHolder {
        process,
        namespace: current_namespaces().unwrap().0,
        users: current_namespaces().unwrap().1,
        lock_byte,
        control,
        content,
        holding: StoreBacking::Memory,
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
    let made = first.ensure_image(1, WaitMode::Wait, |out| {
        out.fill(7);
        Ok(())
    });
    assert!(made.unwrap());
    let (second, later, was_there) = met(key);
    assert!(was_there && second.is_present(1) && !second.is_present(0));
    // The first exits: a third finds the second.
    drop((first, presence));
    let (third, last, was_there) = met(key);
    assert!(was_there && third.is_present(1));
    let file = last.file.clone();
    drop((second, later));
    assert!(file.exists());
    drop((third, last));
    assert!(!file.exists());
    let (fourth, _presence, was_there) = met(key);
    assert!(!was_there && !fourth.is_present(1));
}

#[test]
fn who_has_gone_or_has_another_store_is_passed_over() {
    let key = key("gone");
    let (other, ..) = met(key ^ 1);
    let [control, content] = other.descriptors().map(|fd| fd.as_raw_fd());
    let path = list::path(key).unwrap();
    let own = getpid().as_raw();
    // Missing descriptors, those of another store, and one that is not a store.
    let living = [
        holder(own, 1, [9_999, 9_998]),
        holder(own, 2, [control, content]),
        holder(own, 3, [0, 1]),
    ];
    let locks = write(&path, &[holder(i32::MAX, 0, [3, 4])], &living);
    let (_store, presence, was_there) = met(key);
    assert!(!was_there);
    let listed = HolderList::open(&path).unwrap();
    assert_eq!(listed.holders, [&living[..], &[presence.holder]].concat());
    drop(locks);
}

#[test]
fn a_guest_of_another_namespace_is_not_asked_and_keeps_its_place() {
    let key = key("namespace");
    let path = list::path(key).unwrap();
    let (store, _presence, _) = met(key);
    let descriptors = store.descriptors().map(|fd| fd.as_raw_fd());
    // By process id and descriptors it is this process, which has the store.
    let mut far = holder(getpid().as_raw(), 7, descriptors);
    far.namespace += 1;
    let locks = write(&path, &[], &[far]);
    let (_other, presence, was_there) = met(key);
    assert!(!was_there);
    assert_eq!(
        HolderList::open(&path).unwrap().holders,
        [far, presence.holder]
    );
    // It exits; only its lock shows that.
    drop(locks);
    let (_third, last, was_there) = met(key);
    assert!(was_there);
    let holders = HolderList::open(&path).unwrap().holders.clone();
    assert_eq!(holders, [presence.holder, last.holder]);
}

#[test]
fn lists_of_the_killed_are_swept_and_those_of_the_living_are_not() {
    let killed = list::path(key("killed")).unwrap();
    write(&killed, &[holder(i32::MAX, 0, [3, 4])], &[]);
    let empty = killed.with_file_name(format!("store-{:032x}", key("empty")));
    fs::write(&empty, b"").unwrap();
    let (_store, living, _) = met(key("living"));
    let (_other, ..) = met(key("sweeper"));
    assert!(!killed.exists() && !empty.exists() && living.file.exists());
}

#[test]
fn a_store_that_cannot_be_made_leaves_no_list_and_one_that_does_not_suit_is_not_taken() {
    let key = key("unmade");
    let path = list::path(key).unwrap();
    let failed = open_or_create(key, &places(), |_| true, || Err(Error::config("no")));
    assert!(failed.is_err() && !path.exists());
    let (_first, _presence, _) = met(key);
    let (_second, presence) = open_or_create(
        key,
        &places(),
        |holding| holding == StoreBacking::File,
        || create(key),
    )
    .unwrap();
    assert_eq!(HolderList::open(&path).unwrap().holders.len(), 2);
    drop(presence);
    assert_eq!(HolderList::open(&path).unwrap().holders.len(), 1);
}

#[test]
fn a_list_is_read_up_to_its_limit() {
    let key = key("long");
    let path = list::path(key).unwrap();
    write(&path, &[holder(getpid().as_raw(), 0, [0, 0])], &[]);
    assert_eq!(HolderList::open(&path).unwrap().holders.len(), 1);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    let mut list = HolderList::open(&path).unwrap();
    assert!(list.holders.is_empty(), "{list:?}");
    assert_eq!(list.file.stream_position().unwrap(), MOST_LIST);
    list.end(&path);
}

#[test]
fn a_list_that_was_broken_off_names_nobody() {
    let key = key("broken");
    let path = list::path(key).unwrap();
    fs::write(&path, b"[{\"process\": 1, \"cont").unwrap();
    let (_store, _presence, was_there) = met(key);
    assert!(!was_there);
}

#[test]
fn a_guest_in_another_folder_of_this_user_is_found() {
    let key = key("elsewhere");
    // As for a process with another user id, in a user namespace.
    let folder = tempfile::Builder::new()
        .prefix("featherload-")
        .tempdir_in("/tmp")
        .unwrap();
    let own = list::path(key).unwrap();
    let other = folder.path().join(own.file_name().unwrap());
    let store = create(key).unwrap();
    let [control, content] = store.descriptors().map(|fd| fd.as_raw_fd());
    let there = holder(getpid().as_raw(), 3, [control, content]);
    let locks = write(&other, &[], &[there]);
    let (_second, presence, was_there) = met(key);
    assert!(was_there);
    assert_eq!(HolderList::open(&own).unwrap().holders, [presence.holder]);
    drop((presence, locks));
    // It has exited.
    assert!(!met(key).2);
}
