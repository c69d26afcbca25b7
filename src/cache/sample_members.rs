//! The names of the members of a sample, and the content of its label's member.
//!
//! Runs in the consumer.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cache::layout::sample_key;
use crate::cache::targets::CacheTargets;
use crate::data::index::{ARRAY_EXTENSION, IMAGE_EXTENSIONS, Index, Label};
use crate::data::shard::manifest::OBJECTS_EXTENSION;
use crate::error::{Error, Result, SampleFault};
use crate::jobs::encode::encoding::{CacheEncoding, CacheResize};
use crate::picture::FileFormat;

/// The members of all samples of a source.
#[derive(Debug)]
pub(super) struct SampleMembers<'a> {
    index: &'a Index,
    encode: CacheEncoding,
    /// Formats of files whose names do not state one, by id.
    formats: &'a BTreeMap<u64, FileFormat>,
    /// Whether any sample has a class.
    classed: bool,
    targets: &'a CacheTargets,
    resize: Option<CacheResize>,
}

/// The members of one sample.
#[derive(Debug)]
pub(super) struct MemberNames {
    pub(super) picture: String,
    /// Name and content of the label's member.
    pub(super) label: Option<(String, Vec<u8>)>,
    /// Name and content of the objects' member.
    pub(super) objects: Option<(String, Vec<u8>)>,
    /// By number.
    pub(super) rasters: Vec<String>,
}

/// The JSON of a label that is a vector.
#[derive(serde::Serialize)]
struct VectorLabel {
    label: Vec<f32>,
}

impl<'a> SampleMembers<'a> {
    pub(super) fn new(
        index: &'a Index,
        encode: CacheEncoding,
        formats: &'a BTreeMap<u64, FileFormat>,
        (targets, resize): (&'a CacheTargets, Option<CacheResize>),
    ) -> Self {
        // In a flat folder all classes are -1, which means no class.
        let has_class = |id| matches!(index.label(id), Label::Class(class) if class != -1);
        Self {
            index,
            encode,
            formats,
            classed: (0..index.len()).any(has_class),
            targets,
            resize,
        }
    }

    /// The members of the sample with id `source` in the source, and `id` in the cache. `size`:
    /// height and width of its upright image in the source.
    ///
    /// # Errors
    /// The fault of a sample whose objects do not fit its image.
    pub(super) fn of(
        &self,
        id: u64,
        source: u64,
        size: (u32, u32),
    ) -> Result<Result<MemberNames, SampleFault>> {
        let path = self.index.relative_path(source);
        let key = sample_key(id, path);
        let picture = match self.encode {
            CacheEncoding::Copy => format!("{key}.{}", self.extension(source, path)),
            CacheEncoding::Jpeg { .. } => format!("{key}.jpg"),
            CacheEncoding::Raw => format!("{key}.npy"),
        };
        let label = match self.index.label(source) {
            Label::Class(_) if !self.classed => None,
            label => label_member(label)?,
        };
        let label = label.map(|(extension, text)| (format!("{key}.{extension}"), text));
        let objects = match self.targets.objects_text(source, size, self.resize) {
            Ok(text) => text.map(|text| (format!("{key}.{OBJECTS_EXTENSION}"), text)),
            Err(fault) => return Ok(Err(fault)),
        };
        let stored = (self.encode, self.resize);
        let rasters = self.targets.raster_extensions(source, stored).into_iter();
        let rasters = rasters.map(|extension| format!("{key}.{extension}"));
        Ok(Ok(MemberNames {
            picture,
            label,
            objects,
            rasters: rasters.collect(),
        }))
    }

    /// The size of an image of this height and width in the source, as the shard's manifest has it.
    pub(super) fn stated_size(&self, size: (u32, u32)) -> Option<(u32, u32)> {
        self.resize
            .is_some()
            .then_some(size)
            .filter(|_| !self.targets.members().is_none())
    }

    /// The extension of a copied file: that of its name if readers of shards know it, else that of
    /// its format.
    fn extension(&self, source: u64, path: &Path) -> String {
        match (known_extension(path), self.formats.get(&source)) {
            (Some(known), _) => known,
            (None, Some(format)) => format.info().extension.to_owned(),
            // Its header cannot be read, so it gets no member.
            (None, None) => String::new(),
        }
    }
}

/// The member of a label: its extension and its bytes. `None` if there is no label.
///
/// # Errors
/// None for the numbers of an index.
pub(super) fn label_member(label: Label<'_>) -> Result<Option<(&'static str, Vec<u8>)>> {
    match label {
        Label::None => Ok(None),
        Label::Class(class) => Ok(Some(("cls", class.to_string().into_bytes()))),
        Label::Vector(v) => {
            let label = v.iter().collect();
            let text = serde_json::to_vec(&VectorLabel { label })
                .map_err(|e| Error::protocol(format!("a label as JSON: {e}")))?;
            Ok(Some(("json", text)))
        }
    }
}

/// The extension of a path in lower case, if it is an image's.
pub(super) fn known_extension(path: &Path) -> Option<String> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let known = IMAGE_EXTENSIONS.contains(&extension.as_str()) || extension == ARRAY_EXTENSION;
    known.then_some(extension)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::{ListLabels, ListOptions};

    fn members(
        list: &str,
        labels: ListLabels,
        encode: CacheEncoding,
    ) -> Vec<(String, Option<String>)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        std::fs::write(&path, list).unwrap();
        let options = ListOptions {
            labels,
            ..ListOptions::default()
        };
        let (index, _) = Index::list(&path, &options).unwrap();
        let formats = BTreeMap::from([(1, FileFormat::Png)]);
        let none = CacheTargets::default();
        let members = SampleMembers::new(&index, encode, &formats, (&none, None));
        let all = (0..index.len()).map(|n| {
            let names = members.of(n + 10, n, (1, 1)).unwrap().unwrap();
            let label = names.label.map(|(name, text)| {
                let text = String::from_utf8(text).unwrap();
                format!("{name}={text}")
            });
            (names.picture, label)
        });
        all.collect()
    }

    #[test]
    fn names_and_labels_follow_the_sample() {
        let got = members(
            "d/a.JPG 0\nb.odd 7\n",
            ListLabels::Scalar,
            CacheEncoding::Copy,
        );
        assert_eq!(got[0].0, "00000010_a.jpg");
        assert_eq!(got[0].1.as_deref(), Some("00000010_a.cls=0"));
        assert_eq!(got[1].0, "00000011_b.png");
        assert_eq!(got[1].1.as_deref(), Some("00000011_b.cls=7"));

        let got = members("a.png 0.5 -2\n", ListLabels::Vector, CacheEncoding::Raw);
        assert_eq!(got[0].0, "00000010_a.npy");
        let json = "00000010_a.json={\"label\":[0.5,-2.0]}";
        assert_eq!(got[0].1.as_deref(), Some(json));

        let jpeg = CacheEncoding::Jpeg { quality: 9 };
        let got = members("a.png\n", ListLabels::None, jpeg);
        assert_eq!(got[0], ("00000010_a.jpg".into(), None));
        // As in a flat folder. With other classes, -1 is a class.
        let got = members("a.png -1\n", ListLabels::Scalar, jpeg);
        assert_eq!(got[0].1, None);
        let got = members("a.png -1\nb.png 1\n", ListLabels::Scalar, jpeg);
        assert_eq!(got[0].1.as_deref(), Some("00000010_a.cls=-1"));
    }
}
