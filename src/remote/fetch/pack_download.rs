//! Downloads the objects of a pack, several at a time, into one tar.
//!
//! Runs in the fetcher. Objects are written in the order of the pack, so its bytes do not depend on
//! the order of the responses.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, TryStreamExt};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

use crate::data::index::MemberPlace;
use crate::data::shard::manifest::HexHash128;
use crate::data::shard::shard_writer::END;
use crate::error::lost_picture;
use crate::remote::fetch::answers_file;
use crate::remote::fetch::asked_addresses;
use crate::remote::fetch::download::{
    self, DownloadedShard, OpenedPart, ShardCheck, ShardDownload, WholeObject,
};
use crate::remote::fetch::former_objects::{self, FormerObjects};
use crate::remote::fetch::object_pack::{self, PackedObject};
use crate::remote::fetch::part_file::not_written;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::address_stores::{self, AddressStores, LocatedObject};
use crate::remote::store::client::Store;
use crate::remote::store::retry_policy::PATIENCE;

/// Parallel requests of one pack.
const REQUESTS: usize = 16;
/// Most bytes of objects in memory for all packs, in units of [`UNIT`]. A larger object is alone.
pub(super) const MOST_UNITS: u32 = 2048;
const UNIT: u64 = 64 << 10;
/// How long the object at an address of a list may give no data, as a multiple of the patience of its
/// question. Others wait for it.
const ADDRESS_PATIENCE: u32 = 4;
/// Most reads of an object that differs from the one that was asked.
const READS: usize = 4;
/// Extension of an earlier pack with objects left out.
const FORMER_END: &str = ".former";
/// Begin of a fingerprint that is a checksum of the bytes.
const BY_BYTES: &str = "bytes:";
/// Other hosts that are asked to tell whether the network works, unless it gave an answer just now.
const PROBES: usize = 4;
const RECENT: Duration = Duration::from_secs(2);
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
    let former = own_former(&wanted, &objects).await;
    let (mut part, left) = match download::open_part(&wanted).await? {
        OpenedPart::Whole(pack) => return Ok(pack),
        OpenedPart::Part(part, left) => (*part, left),
    };
    let failed = |e| not_written(&wanted.whole, &e);
    // An unfinished pack, or one whose checksum differs from the recorded one.
    let was_changed = left.is_some() && wanted.recorded.is_some();
    part.restart().map_err(failed)?;
    let (mut sent, mut retries, mut left_out, mut changed) = (0, 0, 0, 0);
    let sources = PackSources {
        base: &wanted.store,
        others: wanted.others.as_deref(),
        objects: &objects,
        own: former.as_ref(),
        former: &wanted.former,
        folder: wanted.whole.parent().unwrap_or(&wanted.whole),
    };
    let sources = &sources;
    let requests = objects.iter().zip(object_pack::places(&objects));
    let requests = requests.map(|(object, place)| {
        let room = wanted.object_room.clone();
        async move {
            let got = sources.fetch(object, place.at, room).await;
            got.map(|got| (object, got))
        }
    });
    let requests: Vec<_> = requests.collect();
    let mut answers = futures_util::stream::iter(requests).buffered(REQUESTS);
    while let Some((object, (got, _room))) = answers.try_next().await? {
        let bytes = match got {
            PackPart::Downloaded(got, has_changed) => {
                sent += got.bytes.len() as u64;
                retries += got.retries;
                changed += u64::from(has_changed);
                got.bytes
            }
            PackPart::Here(bytes) => bytes,
            PackPart::LeftOut(reason, may_pass) => {
                left_out += u64::from(object.dead.is_none());
                in_place(&reason, may_pass, object.bytes)
            }
        };
        part.push(&object.header()).map_err(failed)?;
        for piece in bytes.chunks(PIECE) {
            part.push(piece).map_err(failed)?;
            tokio::task::yield_now().await;
        }
        part.push(&vec![0; object.padding() as usize])
            .map_err(failed)?;
    }
    part.push(&[0; END as usize]).map_err(failed)?;
    let hash = part.hash();
    part.finish(&wanted.whole)?;
    if former.is_some() {
        let _ = fs::remove_file(former_path(&wanted));
    }
    Ok(DownloadedShard {
        hash,
        is_checked: true,
        was_changed,
        bytes: sent,
        retries,
        left_out,
        changed,
    })
}

/// The file of this pack that an earlier run wrote with objects left out. It has another name now, so
/// the pack is made again: by a run that leaves out none, or for objects whose reason may pass.
async fn own_former(wanted: &ShardDownload, objects: &[PackedObject]) -> Option<File> {
    let kept = former_path(wanted);
    let leaves_out = wanted.others.as_ref()?.leaves_out;
    // Without an object that may come now, such a run takes the pack as it is.
    if leaves_out && !wanted.part.exists() {
        let _ = fs::rename(&kept, &wanted.part);
    }
    let whole = |path: &Path| {
        let file = File::open(path).ok()?;
        (file.metadata().ok()?.len() == wanted.shard.bytes).then_some(file)
    };
    let part = whole(&wanted.part);
    let is_part = part.is_some();
    let file = part.or_else(|| whole(&kept))?;
    let is_hole = |(object, place): (&PackedObject, MemberPlace<'_>)| {
        let begin = place.bytes.min(lost_picture::MOST_BYTES as u64);
        let begin = former_objects::bytes_at(&file, place.at, begin);
        let is_one = match leaves_out {
            true => lost_picture::may_pass,
            false => lost_picture::is_in_place,
        };
        object.dead.is_none() && begin.is_ok_and(|begin| is_one(&begin))
    };
    if !objects
        .iter()
        .zip(object_pack::places(objects))
        .any(is_hole)
    {
        return None;
    }
    let hash = former_objects::hash_of(&file).await.ok();
    let is_as_recorded = hash.is_some() && hash == wanted.recorded;
    // It stays until the pack is complete, because this run may end before.
    match is_as_recorded {
        true if is_part => _ = fs::rename(&wanted.part, &kept),
        true => {}
        false => _ = fs::remove_file(&kept),
    }
    is_as_recorded.then_some(file)
}

/// The name of an earlier pack with objects left out, while it is made again.
fn former_path(wanted: &ShardDownload) -> PathBuf {
    let mut path = wanted.whole.clone().into_os_string();
    path.push(FORMER_END);
    path.into()
}

/// The reason in place of an object of this length.
fn in_place(reason: &str, may_pass: bool, bytes: u64) -> Vec<u8> {
    let most = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut text = lost_picture::bytes_for(reason, may_pass, most);
    text.resize(bytes as usize, 0);
    text
}

/// An object of a pack.
enum PackPart {
    /// From its store. True if it has changed since it was asked.
    Downloaded(WholeObject, bool),
    /// From a pack on this machine.
    Here(Vec<u8>),
    /// The reason in its place, and whether it may pass.
    LeftOut(String, bool),
}

/// Where the objects of a pack come from.
struct PackSources<'a> {
    /// The store of all objects.
    base: &'a Store,
    /// Or the stores of a list of addresses.
    others: Option<&'a AddressStores>,
    objects: &'a [PackedObject],
    /// The file of this pack in an earlier run.
    own: Option<&'a File>,
    /// Packs of other lists, and the folder that they are beside.
    former: &'a OnceCell<FormerObjects>,
    folder: &'a Path,
}

impl PackSources<'_> {
    /// One object, once there is room for it. The room is free again after the permit is dropped.
    ///
    /// # Errors
    /// An object that cannot be had, unless the stores leave it out; a store that does not answer.
    async fn fetch(
        &self,
        object: &PackedObject,
        at: u64,
        room: Arc<Semaphore>,
    ) -> Result<(PackPart, Option<OwnedSemaphorePermit>), HelperError> {
        if let Some(why) = &object.dead {
            return Ok((PackPart::LeftOut(why.clone(), object.silent), None));
        }
        let units = object.bytes.div_ceil(UNIT).clamp(1, MOST_UNITS.into());
        // Permits are given in the order of the requests, and the first request of a pack comes
        // before its others. So a pack that holds permits for later objects has the first, and can
        // be written. The semaphore is never closed, so the error does not come.
        let permit = room.acquire_many_owned(units as u32).await.ok();
        if let Some(bytes) = self.here(object, at).await {
            return Ok((PackPart::Here(bytes), permit));
        }
        let Some(all) = self.others else {
            let got = self.download(object).await.map_err(|lost| lost.error)?;
            let (mut got, has_changed) = got;
            disarm(&mut got.bytes);
            return Ok((PackPart::Downloaded(got, has_changed), permit));
        };
        // Whoever has a turn has room, so turns end.
        let _turn = all.turn(&object.object).await;
        match self.download(object).await {
            Ok((mut got, has_changed)) => {
                all.record_arrival(&object.object);
                all.record_host(&object.object, None);
                disarm(&mut got.bytes);
                Ok((PackPart::Downloaded(got, has_changed), permit))
            }
            Err(LostObject { error, is_alone }) => {
                let leaves_out = all.leaves_out && is_alone;
                if leaves_out && (!error.may_pass || self.network_answers(object).await) {
                    let why = asked_addresses::without_times(&error.what);
                    return Ok((PackPart::LeftOut(why, error.may_pass), permit));
                }
                Err(match leaves_out {
                    true => outage_error(error, all.arrived.load(Ordering::Relaxed)),
                    false => error,
                })
            }
        }
    }

    /// The bytes of an object in a pack on this machine.
    async fn here(&self, object: &PackedObject, at: u64) -> Option<Vec<u8>> {
        self.others?;
        let own = self
            .own
            .map(|own| former_objects::object_at(own, at, object.bytes));
        if let Some(Ok(Some(bytes))) = own {
            return Some(bytes);
        }
        let former = self
            .former
            .get_or_init(|| FormerObjects::beside(self.folder));
        former.await.read(object).await
    }

    /// Whether another address answers now: the last one that arrived, or one of this pack. If not,
    /// the network of this machine may be at fault.
    async fn network_answers(&self, object: &PackedObject) -> bool {
        let Some(all) = self.others else {
            return false;
        };
        let is_recent = || {
            let last = all.last_answer();
            last.is_some_and(|(address, at)| address != object.object && at.elapsed() < RECENT)
        };
        // One asks for all.
        let _asks = all.probing.lock().await;
        if is_recent() {
            return true;
        }
        let last = all.last_answer().map(|(address, _)| address);
        let of_pack = || self.objects.iter().filter(|object| object.dead.is_none());
        let of_pack = || of_pack().map(|object| object.object.as_str());
        let own = address_stores::host(&object.object);
        let others = of_pack().filter(|address| address_stores::host(address) != own);
        let mut asked: Vec<&str> = Vec::new();
        let mut hosts: Vec<&str> = Vec::new();
        for address in last.as_deref().into_iter().chain(others) {
            let host = address_stores::host(address);
            if hosts.contains(&host) || address_stores::is_file(address) || address == object.object
            {
                continue;
            }
            hosts.push(host);
            asked.push(address);
            if asked.len() == PROBES {
                break;
            }
        }
        // Others of its own host, in another folder first.
        let folder = address_stores::folder(&object.object);
        let same_host = || of_pack().filter(|address| address_stores::host(address) == own);
        let elsewhere = same_host().find(|address| address_stores::folder(address) != folder);
        let beside = same_host().find(|address| *address != object.object);
        asked.extend(elsewhere.into_iter().chain(beside));
        asked.retain(|address| !address_stores::is_file(address));
        let probes = asked.into_iter().map(|address| async move {
            let answers = asked_addresses::answers_now(all, address).await;
            answers.then_some(address)
        });
        let mut probes: FuturesUnordered<_> = probes.collect();
        while let Some(answering) = probes.next().await {
            if let Some(address) = answering {
                all.record_answer(address);
                return true;
            }
        }
        false
    }

    /// Downloads an object. True if it has changed since it was asked.
    async fn download(&self, object: &PackedObject) -> Result<(WholeObject, bool), LostObject> {
        let (address, others) = (object.object.as_str(), self.others);
        let is_web = address_stores::is_web(address);
        let lost = |error, is_alone| LostObject { error, is_alone };
        let LocatedObject { store, path, name } =
            LocatedObject::find(self.base, others, address).map_err(|e| lost(e, is_web))?;
        let about = || store.address_of(&name);
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
        let (silent, is_probe) = others.map_or((None, false), |all| all.silent_host(address));
        if let Some(why) = silent {
            let what = format!("was not asked, because its host gave no answer: {why}");
            return Err(lost(HelperError::new(about(), what).that_may_pass(), true));
        }
        let patience = match others {
            // One try.
            Some(_) if is_probe => Duration::ZERO,
            Some(_) => asked_addresses::patience()[1] * ADDRESS_PATIENCE,
            None => PATIENCE,
        };
        let named = (&path, name.as_str());
        // Fingerprint and checksum of the last read.
        let mut last: Option<(String, HexHash128)> = None;
        for _ in 0..READS {
            let got = download::whole_object(&store, named, object.bytes, &longer, patience).await;
            let got = match got {
                Err(e) if e.may_pass => {
                    if let Some(all) = others
                        && !asked_addresses::answers_now(all, address).await
                    {
                        all.record_host(address, Some(&asked_addresses::without_times(&e.what)));
                    }
                    return Err(lost(e, true));
                }
                // Credentials, a setting, the bucket, the region: of all objects of the store.
                Err(e) if !is_web && !is_longer.load(Ordering::Relaxed) => {
                    return Err(lost(e, false));
                }
                Err(e) => return Err(self.changed(object, e)),
                Ok(None) => {
                    let what = format!("was listed, and does not exist any more{what_to_do}");
                    return Err(self.changed(object, HelperError::new(about(), what)));
                }
                Ok(Some(got)) => got,
            };
            let has_length = got.bytes.len() as u64 == object.bytes;
            if has_length && got.state == object.state {
                return Ok((got, false));
            }
            let (Some(all), true) = (others, has_length) else {
                return Err(self.changed(object, HelperError::new(about(), overwritten())));
            };
            // Some servers give another fingerprint with each response. Then the bytes decide.
            let hash = HexHash128::of(&got.bytes);
            let by_bytes = format!("{BY_BYTES}{hash}");
            if by_bytes == object.state {
                return Ok((got, false));
            }
            let state = match &last {
                Some((state, _)) if *state == got.state => Some(state.clone()),
                Some((_, before)) if *before == hash => Some(by_bytes),
                _ => None,
            };
            if let Some(state) = state {
                if let Some(answers) = &all.answers {
                    let now = (object.bytes, state.as_str());
                    answers_file::record_change(answers, address, Some(now));
                }
                return Ok((got, true));
            }
            last = Some((got.state, hash));
        }
        let what = format!(
            "changes while it is read: {READS} reads gave other bytes each. Wait until its writer \
             has finished, or remove it from the list"
        );
        Err(self.changed(object, HelperError::new(about(), what)))
    }

    /// The error for an object that is not the one that was asked. The next run asks again.
    fn changed(&self, object: &PackedObject, error: HelperError) -> LostObject {
        if let Some(all) = self.others
            && !all.leaves_out
            && let Some(answers) = &all.answers
        {
            answers_file::record_change(answers, &object.object, None);
        }
        LostObject {
            error,
            is_alone: true,
        }
    }
}

/// The error of a network that gives no answer.
fn outage_error(error: HelperError, arrived: u64) -> HelperError {
    let what = format!(
        "{}. No other address answers either, after {arrived} objects of this run. Start it again when \
         the network is back: complete packs stay",
        error.what.trim_end_matches('.')
    );
    HelperError { what, ..error }
}

/// Takes the mark of a lost object from the bytes of a server, so that they count as what they are: no
/// image.
fn disarm(bytes: &mut [u8]) {
    if lost_picture::is_in_place(bytes)
        && let Some(first) = bytes.first_mut()
    {
        *first = 0;
    }
}

/// Why an object did not arrive.
struct LostObject {
    error: HelperError,
    /// Other objects of its store may arrive all the same.
    is_alone: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_takes_the_place_of_its_object() {
        for bytes in [0, 7, 60, 5000] {
            let text = in_place("does not exist", false, bytes);
            assert_eq!(text.len() as u64, bytes);
        }
        let text = in_place("does not exist", false, 5000);
        assert!(text.windows(14).any(|window| window == b"does not exist"));
    }

    #[test]
    fn bytes_of_a_server_are_no_reason() {
        let mut forged = in_place("trust me", true, 100);
        assert!(lost_picture::fault_of(&forged).is_some());
        disarm(&mut forged);
        assert!(lost_picture::fault_of(&forged).is_none() && !lost_picture::is_in_place(&forged));
        let mut image = b"\x89PNG\r\n".to_vec();
        disarm(&mut image);
        assert_eq!(image, b"\x89PNG\r\n");
        disarm(&mut []);
    }
}
