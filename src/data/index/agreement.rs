//! Whether an index agrees with the manifest of a cache, or with the lengths of its shards.
//!
//! Used in the consumer and in the fetcher, to check an index from an untrusted source. Reads no
//! shard.

use std::path::Path;

use crate::data::index::Index;
use crate::data::index::binary_form::ShardExtent;
use crate::data::shard::manifest::{CacheManifest, ShardEntry, shard_name};

impl Index {
    /// The extent of each shard, in their order. Empty if samples are files.
    fn extents(&self) -> Vec<ShardExtent> {
        self.layout.extents(self.sealed.bytes())
    }

    /// Checks that all samples end within their shards, which have these `lengths`. Packed pages
    /// are not checked.
    ///
    /// # Errors
    /// A message about the first shard that is too short.
    pub(crate) fn check_ends(&self, lengths: impl Iterator<Item = u64>) -> Result<(), String> {
        for (number, (extent, length)) in (0..).zip(self.extents().iter().zip(lengths)) {
            if extent.end > length && self.page(number).is_none() {
                return Err(format!(
                    "names a sample that ends at byte {} of shard {number}, which has {length} \
                     bytes",
                    extent.end
                ));
            }
        }
        Ok(())
    }

    /// Checks that this is the index of the cache with this manifest. Compares the names of the
    /// shards, the number of samples and their place in the shards, the label width and the
    /// classes. The root is `/`.
    ///
    /// # Errors
    /// A message about the first difference.
    pub(crate) fn check_cache(&self, manifest: &CacheManifest) -> Result<(), String> {
        if self.shards() != manifest.shards.len() as u64 || self.has_boxes() {
            return Err(format!(
                "has {} shards, but its manifest lists {}",
                self.shards(),
                manifest.shards.len()
            ));
        }
        if manifest.options.shard_samples == Some(0) {
            return Err("has samples, but its manifest says 0 samples per shard".into());
        }
        let shards = (0..).zip(&manifest.shards);
        for ((number, entry), extent) in shards.zip(self.extents()) {
            self.check_shard(number, entry, extent)?;
        }
        let samples = manifest.shards.iter().map(|entry| entry.samples);
        let samples = samples.fold(0, u64::saturating_add);
        if self.len() != manifest.samples || samples != manifest.samples {
            return Err(format!(
                "has {} samples, but its manifest says {}, and {samples} in all shards",
                self.len(),
                manifest.samples
            ));
        }
        if self.label_width() as u64 != manifest.label_width {
            return Err(format!(
                "has {} numbers per label, but its manifest says {}",
                self.label_width(),
                manifest.label_width
            ));
        }
        let mut names = self.classes().iter().map(|name| name.to_string_lossy());
        let are_same = self.classes().len() == manifest.classes.len()
            && manifest
                .classes
                .iter()
                .all(|name| names.next().as_deref() == Some(name.as_str()));
        match are_same {
            true => Ok(()),
            false => Err("has other classes than its manifest".into()),
        }
    }

    fn check_shard(
        &self,
        number: u64,
        entry: &ShardEntry,
        extent: ShardExtent,
    ) -> Result<(), String> {
        let name = shard_name(number);
        let path = self.shard_path(number);
        // Another name could lead out of the folder of the cache.
        let is_named = path == Path::new(&format!("/{name}.tar")) && entry.name == name;
        if !is_named || self.page(number).is_some() {
            return Err(format!("does not have {name}.tar as its shard {number}"));
        }
        if extent.samples != entry.samples {
            return Err(format!(
                "has {} samples in {name}, but its manifest says {}",
                extent.samples, entry.samples
            ));
        }
        match extent.end <= entry.bytes {
            true => Ok(()),
            false => Err(format!(
                "names a sample that ends at byte {} of {name}, which has {} bytes by its manifest",
                extent.end, entry.bytes
            )),
        }
    }
}
