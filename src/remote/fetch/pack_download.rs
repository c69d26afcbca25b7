//! Downloads the objects of a pack, several at a time, into one tar.
//!
//! Runs in the fetcher. Objects are written in the order of the pack, so its bytes do not depend on
//! the order of the responses.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::data::shard::shard_writer::END;
use crate::remote::fetch::download::{
    self, DownloadedShard, OpenedPart, ShardCheck, ShardDownload, WholeObject,
};
use crate::remote::fetch::object_pack::PackedObject;
use crate::remote::fetch::part_file::not_written;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::client::Store;
use crate::remote::store::retry_policy::PATIENCE;

/// Parallel requests of one pack.
const REQUESTS: usize = 16;
/// Most bytes of objects in memory for all packs, in units of [`UNIT`]. A larger object is alone.
pub(super) const MOST_UNITS: u32 = 2048;
const UNIT: u64 = 64 << 10;
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
    let (mut sent, mut retries) = (0, 0);
    let store = &wanted.store;
    let requests = objects.iter().map(|object| {
        let room = wanted.object_room.clone();
        async move { fetch(store, object, room).await.map(|got| (object, got)) }
    });
    let requests: Vec<_> = requests.collect();
    let mut answers = futures_util::stream::iter(requests).buffered(REQUESTS);
    while let Some((object, (got, _room))) = answers.try_next().await? {
        sent += got.bytes.len() as u64;
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
    })
}

/// One object, once there is room for it. The room is free again after the permit is dropped.
async fn fetch(
    store: &Store,
    object: &PackedObject,
    room: Arc<Semaphore>,
) -> Result<(WholeObject, Option<OwnedSemaphorePermit>), HelperError> {
    let units = object.bytes.div_ceil(UNIT).clamp(1, MOST_UNITS.into());
    // Permits are given in the order of the requests, and the first request of a pack comes before
    // its others. So a pack that holds permits for later objects has the first, and can be written.
    // The semaphore is never closed, so the error does not come.
    let permit = room.acquire_many_owned(units as u32).await.ok();
    let path = store.object(&object.object)?;
    let named = (&path, object.object.as_str());
    let address = || store.address().of(&object.object);
    let listed_again = "start the run again, which lists the objects again";
    let overwritten = || format!("was overwritten since it was listed: {listed_again}");
    let longer = |_| overwritten();
    let got = download::whole_object(store, named, object.bytes, &longer, PATIENCE).await?;
    let Some(got) = got else {
        let what = format!("was listed, and does not exist any more: {listed_again}");
        return Err(HelperError::new(address(), what));
    };
    if got.bytes.len() as u64 != object.bytes || got.state != object.state {
        return Err(HelperError::new(address(), overwritten()));
    }
    Ok((got, permit))
}
