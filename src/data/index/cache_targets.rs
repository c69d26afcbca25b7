//! The objects, masks and other rasters of a cache, from the files beside its shards.
//!
//! In the consumer. Opens no shard: the table of objects is mapped as it is, and the index of rasters
//! has their places in the shards. So both are there for a cache whose shards come later.

use std::path::Path;

use serde_json::Value;

use crate::data::index::Index;
use crate::data::index::open_cache::{load_file, see_verify};
use crate::data::objects::ObjectTable;
use crate::data::shard::manifest::{
    CACHE_MANIFEST, CACHE_MASKS, CACHE_OBJECTS, CacheManifest, HexHash128, Manifest, RasterEntry,
    raster_file,
};
use crate::error::{Error, Result};
use crate::sys::{memory, whole_file};

/// The objects of a cache, and the fields of the rule that it was built with.
#[derive(Debug)]
pub(crate) struct CachedObjects {
    pub(crate) table: ObjectTable,
    pub(crate) rule: Value,
}

/// The rasters of a cache that have one name, and the fields of the rule that it was built with.
#[derive(Debug)]
pub(crate) struct CachedRasters {
    pub(crate) index: Index,
    pub(crate) rule: Value,
}

/// The manifest of the cache whose samples are `images`.
///
/// # Errors
/// Samples of no cache, or not all of them; a manifest that cannot be read.
fn manifest_of(images: &Index, option: &'static str) -> Result<CacheManifest> {
    let folder = images.root();
    if images.shards() == 0 || !Index::is_cache(folder) {
        return Err(Error::option(
            option,
            format!(
                "{option}: these images are in no cache, so no {option} are stored with them: say \
                 where they are with `files`"
            ),
        ));
    }
    let (manifest, _) = CacheManifest::read(&folder.join(CACHE_MANIFEST))?;
    if manifest.samples != images.len() {
        return Err(Error::option(
            option,
            format!(
                "{option}: the index has {} of the {} samples of this cache: give the folder of \
                 the cache",
                images.len(),
                manifest.samples
            ),
        ));
    }
    Ok(manifest)
}

fn none_in(folder: &Path, option: &'static str) -> Error {
    Error::dataset(
        folder,
        format!(
            "this cache has no {option}: build it again with `cache build --{}`, or leave them out",
            option.replace("rasters", "raster")
        ),
    )
}

/// The objects of `images`, which are those of a cache.
///
/// # Errors
/// Samples of no cache; a cache without objects; files that are damaged.
pub(crate) fn open_objects(images: &Index) -> Result<CachedObjects> {
    let manifest = manifest_of(images, "objects")?;
    let folder = images.root();
    let Some(entry) = manifest.objects else {
        return Err(none_in(folder, "objects"));
    };
    let wrong = |what: &str| see_verify(folder, format!("its {CACHE_OBJECTS} {what}"));
    let path = folder.join(CACHE_OBJECTS);
    let most = memory::available_bytes().map_or(u64::MAX, |bytes| bytes / 2);
    let bytes = match whole_file::read(&path, most) {
        Err(_) if path.symlink_metadata().is_err() => return Err(wrong("is missing")),
        read => read?,
    };
    if entry.table != Some(HexHash128::of(&bytes)) {
        return Err(wrong("is damaged, or belongs to another cache"));
    }
    let table = ObjectTable::of_file(&bytes, images.len()).map_err(|what| wrong(&what))?;
    if *table.form() != entry.form {
        return Err(wrong("has other categories than its manifest"));
    }
    Ok(CachedObjects {
        table,
        rule: entry.rule,
    })
}

/// The masks of `images`, which are those of a cache.
///
/// # Errors
/// Samples of no cache; a cache without masks; files that are damaged.
pub(crate) fn open_masks(images: &Index) -> Result<CachedRasters> {
    let manifest = manifest_of(images, "masks")?;
    let Some(rule) = manifest.masks.as_ref().map(|entry| entry.rule.clone()) else {
        return Err(none_in(images.root(), "masks"));
    };
    open_file(images, &manifest, (CACHE_MASKS, rule))
}

/// The rasters of `images` with this name. `images` are those of a cache.
///
/// # Errors
/// As [`open_masks`]. The error names the rasters that the cache has.
pub(crate) fn open_rasters(images: &Index, name: &str) -> Result<CachedRasters> {
    let manifest = manifest_of(images, "rasters")?;
    let rule = raster_rule(images.root(), &manifest.rasters, name)?;
    open_file(images, &manifest, (&raster_file(name), rule))
}

/// The fields of the rule of the rasters with this name in the cache in `folder`.
///
/// # Errors
/// A manifest that cannot be read; a cache without these rasters.
pub(crate) fn read_raster_rule(folder: &Path, name: &str) -> Result<Value> {
    let (manifest, _) = CacheManifest::read(&folder.join(CACHE_MANIFEST))?;
    raster_rule(folder, &manifest.rasters, name)
}

fn raster_rule(folder: &Path, rasters: &[RasterEntry], name: &str) -> Result<Value> {
    if let Some(entry) = rasters.iter().find(|entry| entry.name == name) {
        return Ok(Value::Object(entry.rule.clone()));
    }
    let names: Vec<&str> = rasters.iter().map(|entry| &*entry.name).collect();
    Err(match names[..] {
        [] => none_in(folder, "rasters"),
        _ => Error::dataset(
            folder,
            format!(
                "this cache has no raster '{name}'. It has: {}",
                names.join(", ")
            ),
        ),
    })
}

/// The rasters in the file `name` beside the shards.
fn open_file(
    images: &Index,
    manifest: &CacheManifest,
    (name, rule): (&str, Value),
) -> Result<CachedRasters> {
    let folder = images.root();
    let index = load_file(folder, name, Some(manifest))?;
    let in_shard = |id: u64, of: &Index| of.part(id).map(|part| part.shard);
    if (0..images.len()).any(|id| in_shard(id, images) != in_shard(id, &index)) {
        let what = format!("its {name} has rasters in other shards than their images");
        return Err(see_verify(folder, what));
    }
    let stamps: Vec<_> = (0..images.shards())
        .map(|number| {
            images
                .layout
                .stamp(images.sealed.bytes(), number)
                .unwrap_or_default()
        })
        .collect();
    Ok(CachedRasters {
        index: index.rebased(folder, &stamps)?,
        rule,
    })
}
