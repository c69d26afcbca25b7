//! Uploads one shard, and the first and last files of its cache.
//!
//! Runs in the uploader.

use std::io::ErrorKind;
use std::path::Path;

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::data::shard::manifest::{
    CACHE_MANIFEST, CacheManifest, HexHash128, Manifest, ShardManifest,
};
use crate::remote::helper::messages::HelperError;
use crate::remote::upload::object::{CacheObjects, read};
use crate::remote::upload::parts::UploadFile;
use crate::sys::atomic_file::replace_by;

/// Number of shards checked in parallel.
const LOOKS: usize = 8;

/// The three objects of a shard.
fn names(shard: &str) -> [String; 3] {
    ["tar", "idx", "json"].map(|extension| format!("{shard}.{extension}"))
}

/// Size of the tar of each shard that is complete in the store, by its manifest. The manifests are
/// downloaded into `folder`.
pub(super) async fn look(
    objects: &CacheObjects,
    folder: &Path,
    shards: &[String],
) -> Result<Vec<Option<u64>>, HelperError> {
    let looks = stream::iter(shards).map(|shard| async move {
        let [tar, _, json] = names(shard);
        let Some(bytes) = objects.get(&json).await? else {
            return Ok(None);
        };
        // An invalid one is detected when the shard is built again.
        let Ok(manifest) = ShardManifest::from_bytes(&bytes) else {
            return Ok(None);
        };
        if objects.size(&tar).await? != Some(manifest.bytes) {
            return Ok(None);
        }
        let to = folder.join(&json);
        let written = replace_by(&to, &bytes);
        written.map_err(|e| HelperError::of_path(&to, e.to_string()))?;
        Ok(Some(manifest.bytes))
    });
    looks.buffered(LOOKS).try_collect().await
}

/// Uploads the manifest of an unfinished cache. Returns false if another manifest exists. One with
/// the same bytes, or with the hash `over`, does not count.
pub(super) async fn begin(
    objects: &CacheObjects,
    from: &Path,
    over: Option<HexHash128>,
) -> Result<bool, HelperError> {
    let bytes = read(from)?;
    let there = objects.get(CACHE_MANIFEST).await?;
    let is_replaced = match (&there, over) {
        (Some(there), Some(over)) => HexHash128::of(there) == over,
        _ => false,
    };
    objects
        .put_or_compare(CACHE_MANIFEST, &bytes, is_replaced)
        .await
}

/// Uploads a shard of `folder`: tar, index, then the manifest, which confirms both. If the tar is
/// not in the folder, it must be in the store.
pub(super) async fn send(
    objects: &CacheObjects,
    folder: &Path,
    shard: &str,
    replace: bool,
) -> Result<(), HelperError> {
    let [tar, idx, json] = names(shard);
    let [tar_file, idx_file, json_file] = names(shard).map(|name| folder.join(name));
    let text = read(&json_file)?;
    let manifest = ShardManifest::from_bytes(&text)
        .map_err(|damage| HelperError::of_path(&json_file, damage.to_string()))?;
    let idx_text = read(&idx_file)?;
    let is_up = async || -> Result<bool, HelperError> {
        Ok(objects.size(&tar).await? == Some(manifest.bytes)
            && objects.size(&idx).await? == Some(idx_text.len() as u64))
    };
    match objects.get(&json).await? {
        Some(there) if there == text && !replace && is_up().await? => return Ok(()),
        Some(there) if there != text && !replace => {
            // Names the object.
            return objects.put(&json, &text, false).await;
        }
        _ => {}
    }
    match tar_file.metadata() {
        Ok(_) => {
            let whole = UploadFile {
                path: &tar_file,
                bytes: manifest.bytes,
                hash: manifest.hash,
            };
            objects.put_file(&tar, &whole, replace).await?;
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            if objects.size(&tar).await? != Some(manifest.bytes) {
                let what = "existed, but was removed: build again, and let nothing else \
                            write to this address";
                return Err(objects.object_error(&tar, what));
            }
        }
        Err(e) => {
            let what = format!("cannot be read: {e}");
            return Err(HelperError::of_path(&tar_file, what));
        }
    }
    objects.put(&idx, &idx_text, replace).await?;
    objects.put(&json, &text, replace).await
}

/// Deletes shards, their manifests first.
pub(super) async fn remove(objects: &CacheObjects, shards: &[String]) -> Result<(), HelperError> {
    for shard in shards {
        let [tar, idx, json] = names(shard);
        for name in [json, tar, idx] {
            objects.remove(&name).await?;
        }
    }
    Ok(())
}

/// Uploads the files beside the shards, and the manifest. The manifest replaces the one with the hash `over`, which marks the
/// cache as unfinished.
pub(super) async fn end(
    objects: &CacheObjects,
    folder: &Path,
    over: HexHash128,
    replace: bool,
) -> Result<(), HelperError> {
    let text = folder.join(CACHE_MANIFEST);
    let manifest = read(&text)?;
    let stated = CacheManifest::from_bytes(&manifest)
        .map_err(|damage| HelperError::of_path(&text, damage.to_string()))?;
    for (name, due) in stated.side_files() {
        let path = folder.join(&name);
        let (bytes, hash) = HexHash128::of_file(&path)
            .map_err(|e| HelperError::of_path(&path, format!("cannot be read: {e}")))?;
        if hash != due {
            let what = "is not the one that its manifest names: build again";
            return Err(HelperError::of_path(&path, what.to_owned()));
        }
        let whole = UploadFile {
            path: &path,
            bytes,
            hash,
        };
        objects.put_file(&name, &whole, replace).await?;
    }
    let there = objects.get(CACHE_MANIFEST).await?;
    if there.as_ref() == Some(&manifest) {
        return Ok(());
    }
    if there.is_none_or(|there| HexHash128::of(&there) != over) {
        return Err(objects.object_error(
            CACHE_MANIFEST,
            "was written or removed by another program while the cache was built: build again, and \
             let nothing else write to this address",
        ));
    }
    objects.put(CACHE_MANIFEST, &manifest, true).await
}
