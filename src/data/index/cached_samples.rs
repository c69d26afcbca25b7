//! The index of a cache, made during the build: samples in its shards, with the labels and classes
//! of the source.
//!
//! Runs in the consumer.

use std::path::Path;

use crate::data::index::binary_form::{IndexContent, IndexLabels};
use crate::data::index::{Index, Label};
use crate::data::shard::manifest::ShardManifest;
use crate::error::Result;

/// The samples of a cache that are written so far, in their order.
#[derive(Debug, Clone)]
pub(crate) struct CachedSamples {
    content: IndexContent,
    /// The number of the raster that its members are, and the count of rasters. None: images.
    raster: Option<(usize, usize)>,
}

impl CachedSamples {
    /// An empty list for a cache of `source`.
    pub(crate) fn new(source: &Index) -> Self {
        let labels = match source.label(0) {
            Label::None => IndexLabels::None,
            Label::Class(_) => IndexLabels::Class(Vec::new()),
            Label::Vector(_) => IndexLabels::Vector {
                width: source.label_width(),
                values: Vec::new(),
            },
        };
        let mut content = IndexContent::default();
        content.labels = labels;
        content.classes = source.classes().clone();
        Self {
            content,
            raster: None,
        }
    }

    /// The same for rasters of this number, of `count` for each sample: each in place of its image.
    pub(crate) fn of_raster(source: &Index, number: usize, count: usize) -> Self {
        Self {
            raster: Some((number, count)),
            ..Self::new(source)
        }
    }

    /// Adds the images (or the rasters) of a shard of this name in the folder of the cache. They are
    /// samples of `source`.
    pub(crate) fn push_shard(&mut self, source: &Index, name: &str, shard: &ShardManifest) {
        self.begin_shard(name);
        for sample in &shard.samples {
            let member = match self.raster {
                Some((number, count)) => sample.raster(number, count),
                None => sample.members.first(),
            };
            if let Some(m) = member {
                self.push(source, sample.source, &m.name, m.data_at, m.size);
            }
        }
    }

    /// Starts the shard of this name in the folder of the cache.
    fn begin_shard(&mut self, name: &str) {
        self.content.begin_shard(name.as_bytes());
    }

    /// Adds the image of sample `id` of `source`: the member `name`, with `bytes` bytes at offset
    /// `at` of the shard.
    fn push(&mut self, source: &Index, id: u64, name: &str, at: u64, bytes: u64) {
        self.content.push_part(name.as_bytes(), at, bytes);
        match (&mut self.content.labels, source.label(id)) {
            (IndexLabels::Class(all), Label::Class(class)) => all.push(class),
            (IndexLabels::Vector { values, .. }, Label::Vector(v)) => values.extend(v.iter()),
            // All samples of an index have the same kind of label.
            _ => {}
        }
    }

    /// Seals the index, with the root `/`. `rebased` later sets the folder of the shards.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn seal(self) -> Result<Index> {
        Index::seal(Path::new("/"), self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::{ListLabels, ListOptions};
    use crate::sys::regular_file::FileStamp;

    #[test]
    fn labels_follow_their_samples_into_the_shards() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        std::fs::write(&list, "a.jpg 1\nb.jpg 2\nc.jpg 3\n").unwrap();
        let (source, _) = Index::list(&list, &ListOptions::default()).unwrap();
        let mut samples = CachedSamples::new(&source);
        samples.begin_shard("shard-000000.tar");
        samples.push(&source, 2, "0_c.jpg", 512, 7);
        samples.begin_shard("shard-000001.tar");
        samples.push(&source, 0, "1_a.jpg", 1024, 9);
        let index = samples
            .seal()
            .unwrap()
            .rebased(Path::new("/cache"), &[FileStamp::default(); 2])
            .unwrap();
        assert_eq!(index.len(), 2);
        assert_eq!(index.label(0), Label::Class(3));
        assert_eq!(index.label(1), Label::Class(1));
        assert_eq!(index.file(1), Path::new("/cache/shard-000001.tar"));
        assert_eq!(index.part(1).unwrap().range(), 1024..1033);

        std::fs::write(&list, "a.jpg 1 2\nb.jpg 3 4\n").unwrap();
        let options = ListOptions {
            labels: ListLabels::Vector,
            ..ListOptions::default()
        };
        let (source, _) = Index::list(&list, &options).unwrap();
        let mut samples = CachedSamples::new(&source);
        samples.begin_shard("s");
        samples.push(&source, 1, "0_b.jpg", 512, 7);
        let index = samples.seal().unwrap();
        let Label::Vector(v) = index.label(0) else {
            panic!("{:?}", index.label(0));
        };
        assert_eq!(v.iter().collect::<Vec<_>>(), [3.0, 4.0]);
    }
}
