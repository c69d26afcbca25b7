//! Downloads the objects of a pack, several at a time, into one tar.
//!
//! Runs in the fetcher. Objects are written in the order of the pack, so its bytes do not depend on
//! the order of the responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::data::shard::shard_writer::END;
use crate::error::lost_picture;
use crate::remote::fetch::asked_addresses;
use crate::remote::fetch::download::{
    self, DownloadedShard, OpenedPart, ShardCheck, ShardDownload, WholeObject,
};
use crate::remote::fetch::object_pack::PackedObject;
use crate::remote::fetch::part_file::not_written;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::address_stores::{AddressStores, LocatedObject};
use crate::remote::store::client::Store;
use crate::remote::store::retry_policy::PATIENCE;

/// Parallel requests of one pack.
const REQUESTS: usize = 16;
/// Most bytes of objects in memory for all packs, in units of [`UNIT`]. A larger object is alone.
pub(super) const MOST_UNITS: u32 = 2048;
const UNIT: u64 = 64 << 10;
/// How long the object at an address of a list may give no data. Others wait for it.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that are written at a time. The consumer checks in between that its fetcher responds.
const PIECE: usize = 1 << 20;

/// Downloads a shard: a pack object by object, any other as one object.
///
/// # Errors
/// An object that does not exist, that changed since it was listed, or that cannot be downloaded;
/// a file that cannot be written.
pub(super) async fn shard(wanted: ShardDownload) -> Result<DownloadedShard, HelperError> {
    let ShardCheck::Objects(objects) = wanted.shard.check.clone() else {
        return download::shard(wanted).await;
    };
    let (mut part, left) = match download::open_part(&wanted).await? {
        OpenedPart::Whole(pack) => return Ok(pack),
        OpenedPart::Part(part, left) => (*part, left),
    };
    let failed = |e| not_written(&wanted.whole, &e);
    // An unfinished pack, or one whose checksum differs from the recorded one.
    let was_changed = left.is_some() && wanted.recorded.is_some();
    part.restart().map_err(failed)?;
    let (mut sent, mut retries, mut left_out) = (0, 0, 0);
    let stores = (&wanted.store, wanted.others.as_deref());
    let requests = objects.iter().map(|object| {
        let room = wanted.object_room.clone();
        async move { fetch(stores, object, room).await.map(|got| (object, got)) }
    });
    let requests: Vec<_> = requests.collect();
    let mut answers = futures_util::stream::iter(requests).buffered(REQUESTS);
    while let Some((object, (got, _room))) = answers.try_next().await? {
        let got = match got {
            Ok(got) => got,
            Err(reason) => {
                left_out += u64::from(object.dead.is_none());
                WholeObject {
                    bytes: in_place(&reason, object.bytes),
                    state: String::new(),
                    retries: 0,
                }
            }
        };
        if object.dead.is_none() {
            sent += got.bytes.len() as u64;
        }
        retries += got.retries;
        part.push(&object.header()).map_err(failed)?;
        for piece in got.bytes.chunks(PIECE) {
            part.push(piece).map_err(failed)?;
            tokio::task::yield_now().await;
        }
        part.push(&vec![0; object.padding() as usize])
            .map_err(failed)?;
    }
    part.push(&[0; END as usize]).map_err(failed)?;
    let hash = part.hash();
    part.finish(&wanted.whole)?;
    Ok(DownloadedShard {
        hash,
        is_checked: true,
        was_changed,
        bytes: sent,
        retries,
        left_out,
    })
}

/// The reason in place of an object of this length.
fn in_place(reason: &str, bytes: u64) -> Vec<u8> {
    let mut text = lost_picture::bytes_for(reason);
    text.resize(bytes as usize, 0);
    text
}

/// The store of all objects, or the stores of a list of addresses.
type Stores<'a> = (&'a Store, Option<&'a AddressStores>);

/// An object with its room, or the reason why it is left out.
type ArrivedObject = (Result<WholeObject, String>, Option<OwnedSemaphorePermit>);

/// One object, once there is room for it. The room is free again after the permit is dropped.
///
/// # Errors
/// An object that cannot be had, unless the stores leave it out; a store that does not answer.
async fn fetch(
    stores: Stores<'_>,
    object: &PackedObject,
    room: Arc<Semaphore>,
) -> Result<ArrivedObject, HelperError> {
    if let Some(why) = &object.dead {
        return Ok((Err(why.clone()), None));
    }
    let units = object.bytes.div_ceil(UNIT).clamp(1, MOST_UNITS.into());
    // Permits are given in the order of the requests, and the first request of a pack comes before
    // its others. So a pack that holds permits for later objects has the first, and can be written.
    // The semaphore is never closed, so the error does not come.
    let permit = room.acquire_many_owned(units as u32).await.ok();
    let arrived = || {
        stores
            .1
            .map_or(0, |all| all.arrived.load(Ordering::Relaxed))
    };
    let before = arrived();
    match download(stores, object).await {
        Ok(got) => {
            if let Some(all) = stores.1 {
                all.arrived.fetch_add(1, Ordering::Relaxed);
            }
            Ok((Ok(got), permit))
        }
        Err(lost) => {
            let leaves_out = stores.1.is_some_and(|all| all.leaves_out) && lost.is_alone;
            let e = lost.error;
            // While others arrive, the network is not at fault.
            match leaves_out && (!e.may_pass || arrived() > before) {
                true => Ok((Err(asked_addresses::without_times(&e.what)), permit)),
                false => Err(e),
            }
        }
    }
}

/// Why an object did not arrive.
struct LostObject {
    error: HelperError,
    /// Other objects of its store may arrive all the same.
    is_alone: bool,
}

async fn download(
    (base, others): Stores<'_>,
    object: &PackedObject,
) -> Result<WholeObject, LostObject> {
    let is_web = asked_addresses::is_web(&object.object);
    let lost = |error, is_alone| LostObject { error, is_alone };
    let LocatedObject { store, path, name } =
        LocatedObject::find(base, others, &object.object).map_err(|e| lost(e, is_web))?;
    let what_to_do = match others {
        // Such a run keeps its list.
        Some(all) if all.leaves_out => "",
        Some(_) => ": start the run again, which asks for it again",
        None => ": start the run again, which lists the objects again",
    };
    let overwritten = || format!("was overwritten since it was listed{what_to_do}");
    let is_longer = AtomicBool::new(false);
    let longer = |_| {
        is_longer.store(true, Ordering::Relaxed);
        overwritten()
    };
    let named = (&path, name.as_str());
    let patience = match others {
        Some(_) => ADDRESS_PATIENCE,
        None => PATIENCE,
    };
    let got = download::whole_object(&store, named, object.bytes, &longer, patience).await;
    let changed = match got {
        Err(e) if e.may_pass => return Err(lost(e, true)),
        // Credentials, a setting, the bucket, the region: of all objects of the store.
        Err(e) if !is_web && !is_longer.load(Ordering::Relaxed) => return Err(lost(e, false)),
        Err(e) => e,
        Ok(Some(got)) if got.bytes.len() as u64 == object.bytes && got.state == object.state => {
            return Ok(got);
        }
        Ok(Some(_)) => HelperError::new(store.address_of(&name), overwritten()),
        Ok(None) => {
            let what = format!("was listed, and does not exist any more{what_to_do}");
            HelperError::new(store.address_of(&name), what)
        }
    };
    if let Some(all) = others
        && !all.leaves_out
        && let Some(answers) = &all.answers
    {
        asked_addresses::forget(answers, &object.object);
    }
    Err(lost(changed, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_takes_the_place_of_its_object() {
        for bytes in [0, 7, 60, 5000] {
            let text = in_place("does not exist", bytes);
            assert_eq!(text.len() as u64, bytes);
        }
        let text = in_place("does not exist", 5000);
        assert!(text.windows(14).any(|window| window == b"does not exist"));
    }
}
