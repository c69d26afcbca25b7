//! The objects and masks that a cache keeps beside its images.
//!
//! Runs in the consumer. Objects are one table of all samples of the source. Masks are files, which
//! workers read. Never in here: how annotations and patterns are read.

use std::sync::Arc;

use serde::Serialize;

use crate::cache::shard_ledger::SourceSample;
use crate::data::index::Index;
use crate::data::objects::{
    BoxForm, ObjectForm, ObjectShape, ObjectTable, ObjectTableWriter, StatedObjects,
};
use crate::data::shard::manifest::{HexHash128, MasksEntry, ObjectsEntry, TargetMembers};
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::encode::encoding::CacheResize;
use crate::jobs::encode::resized_objects::resize_objects;
use crate::jobs::encode::spec::EncodedMasks;
use crate::jobs::mask_rule::MaskRule;
use crate::jobs::object_rule::ObjectRule;

/// The targets that a cache keeps.
#[derive(Debug, Default)]
pub(super) struct CacheTargets {
    pub(super) objects: Option<KeptObjects>,
    pub(super) masks: Option<KeptMasks>,
    /// Extensions of members of tars that have them.
    pub(super) fields: Vec<String>,
}

/// The objects of all samples of the source.
#[derive(Debug)]
pub(super) struct KeptObjects {
    pub(super) table: Arc<ObjectTable>,
    /// Fields of the rule that a run has if it gives none.
    pub(super) rule: serde_json::Value,
    /// Whether an image may have another size than its annotation states.
    pub(super) any_size: bool,
}

/// The masks of all samples of the source.
#[derive(Debug)]
pub(super) struct KeptMasks {
    pub(super) index: Index,
    /// Fields of the rule that a run has if it gives none.
    pub(super) rule: serde_json::Value,
    pub(super) form: EncodedMasks,
}

/// Extensions of the files of masks that stay as they are. Readers of tars find the format of others
/// by their first bytes.
const MASK_FORMATS: [&str; 4] = ["png", "tif", "tiff", "npy"];

impl CacheTargets {
    /// Whether this member of tar shards has targets.
    pub(super) fn keeps_field(&self, extension: &str) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|field| {
            field
                .trim_start_matches('.')
                .eq_ignore_ascii_case(extension)
        })
    }

    /// Which targets each sample has.
    pub(super) fn members(&self) -> TargetMembers {
        TargetMembers {
            objects: self.objects.is_some(),
            masks: self.masks.is_some(),
        }
    }

    /// The entries of the cache's manifest, before the build has ended.
    pub(super) fn entries(&self) -> (Option<ObjectsEntry>, Option<MasksEntry>) {
        let objects = self.objects.as_ref().map(|objects| ObjectsEntry {
            source: HexHash128(objects.table.hash()),
            rule: objects.rule.clone(),
            form: objects.table.form().clone(),
            table: None,
        });
        let masks = self.masks.as_ref().map(|masks| MasksEntry {
            rule: masks.rule.clone(),
            index: None,
        });
        (objects, masks)
    }

    /// The most bytes of their entries in the cache's manifest, which is indented.
    pub(super) fn names_bytes(&self) -> u64 {
        let (objects, masks) = self.entries();
        let bytes = |text: serde_json::Result<Vec<u8>>| text.map_or(0, |text| text.len() as u64);
        bytes(serde_json::to_vec_pretty(&objects)) * 2
            + bytes(serde_json::to_vec_pretty(&masks)) * 2
    }

    /// Rejects targets that cannot be kept with these options.
    ///
    /// # Errors
    /// Boxes of samples in their images; masks that are not in files.
    pub(super) fn check(&self, images: &Index) -> Result<()> {
        let members = self.members();
        let (true, option) = (
            images.has_boxes() && !members.is_none(),
            if members.objects { "objects" } else { "masks" },
        ) else {
            return match &self.masks {
                Some(masks) => masks.index.check_in_files("a cache with masks"),
                None => Ok(()),
            };
        };
        Err(Error::option(
            option,
            format!(
                "{option}: the samples are boxes in their images (`boxes`), and a cache keeps no \
                 {option} of such samples: remove `boxes`"
            ),
        ))
    }

    /// The extension of the mask of sample `id` of the source, without its dot.
    pub(super) fn mask_extension(&self, id: u64, resize: Option<CacheResize>) -> Option<String> {
        let masks = self.masks.as_ref()?;
        let of_file = || {
            let extension = masks.index.relative_path(id).extension()?.to_str()?;
            let extension = extension.to_ascii_lowercase();
            let is_known = MASK_FORMATS.contains(&extension.as_str());
            is_known.then_some(extension)
        };
        let extension = match resize {
            Some(_) => Some("png".to_owned()),
            None => of_file(),
        };
        Some(extension.unwrap_or_default())
    }

    /// The JSON of the objects of sample `id` of the source, whose image has this height and width.
    /// None without objects.
    ///
    /// # Errors
    /// An image of another size than its annotation states.
    pub(super) fn objects_text(
        &self,
        id: u64,
        size: (u32, u32),
        resize: Option<CacheResize>,
    ) -> Result<Option<Vec<u8>>, SampleFault> {
        let Some(objects) = &self.objects else {
            return Ok(None);
        };
        let sample = objects.sample(id, resize.map(|resize| (size, resize.output(size))))?;
        objects_json(&sample, objects.table.form())
            .map(Some)
            .map_err(|e| FaultKind::Unknown.fault(format!("its objects as JSON: {e}")))
    }
}

impl KeptMasks {
    pub(super) fn new(index: Index, rule: &MaskRule) -> Self {
        Self {
            index,
            rule: fields_of(rule),
            form: EncodedMasks {
                form: rule.form,
                filter: rule.filter,
            },
        }
    }
}

/// The fields of a rule that differ from their defaults.
fn fields_of<R: Serialize + Default>(rule: &R) -> serde_json::Value {
    let fields = |rule: &R| match serde_json::to_value(rule) {
        Ok(serde_json::Value::Object(fields)) => fields,
        // Rules are structs of numbers and texts.
        _ => serde_json::Map::new(),
    };
    let (mut own, usual) = (fields(rule), fields(&R::default()));
    own.retain(|name, value| usual.get(name) != Some(value));
    serde_json::Value::Object(own)
}

impl KeptObjects {
    /// `rule`: that of the build. Each run says whether it makes instance masks.
    pub(super) fn new(table: Arc<ObjectTable>, rule: &ObjectRule) -> Self {
        Self {
            table,
            rule: fields_of(&ObjectRule {
                masks: None,
                ..rule.clone()
            }),
            any_size: rule.any_size,
        }
    }

    /// The table of the samples of a cache, in its order.
    ///
    /// # Errors
    /// A sample whose objects do not fit its image, which was written all the same.
    pub(super) fn select(
        &self,
        sources: &[SourceSample],
        resize: Option<CacheResize>,
    ) -> Result<ObjectTable> {
        let mut writer = ObjectTableWriter::new(self.table.form().clone())?;
        for (source, size) in sources {
            let resized = size.zip(resize).map(|(size, to)| (size, to.output(size)));
            let sample = self.sample(*source, resized);
            let sample = sample.map_err(|fault| {
                Error::protocol(format!("the objects of sample {source}: {}", fault.reason))
            })?;
            writer.push(&sample)?;
        }
        writer.finish()
    }

    /// The objects of sample `id` of the source, as its image is in the cache. `resized`: height and
    /// width before and after, if images are resized.
    ///
    /// # Errors
    /// An image of another size than its annotation states.
    pub(super) fn sample(
        &self,
        id: u64,
        resized: Option<((u32, u32), (u32, u32))>,
    ) -> Result<StatedObjects, SampleFault> {
        let damaged = || FaultKind::Unknown.fault("the table of objects is damaged");
        let mut sample = self.table.stated(id).ok_or_else(damaged)?;
        let Some((from, to)) = resized else {
            return Ok(sample);
        };
        if let Some((h, w)) = sample.size.filter(|size| *size != from && !self.any_size) {
            return Err(FaultKind::Unsupported.fault(format!(
                "its annotation states {w} x {h} pixels, and the image has {} x {}: use the images \
                 that were annotated, or set `any_size` to take coordinates as they are",
                from.1, from.0
            )));
        }
        resize_objects(&mut sample, self.table.form(), from, to)?;
        Ok(sample)
    }
}

/// The member of the objects of a sample.
#[derive(Serialize)]
struct ObjectsJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    image_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    annotations: Vec<ObjectJson<'a>>,
}

#[derive(Serialize)]
struct ObjectJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    category_id: i64,
    bbox: [f64; 4],
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<f64>,
    iscrowd: u8,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    keypoints: &'a [[f32; 3]],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    rotated: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    segmentation: Option<ShapeJson<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ShapeJson<'a> {
    Rings(Vec<Vec<f64>>),
    Runs { size: (u32, u32), counts: &'a [u32] },
    RunText { size: (u32, u32), counts: &'a str },
}

/// The objects of a sample as COCO writes annotations: left, top, width and height, and the numbers
/// of categories. Coordinates that are shares of the sides stay so.
pub(super) fn objects_json(
    sample: &StatedObjects,
    form: &ObjectForm,
) -> Result<Vec<u8>, serde_json::Error> {
    let known = |n: i64| (n != -1).then_some(n);
    let category = |label: u32| form.categories.get(label as usize).map_or(-1, |of| of.id);
    let objects = sample.objects.iter().map(|object| ObjectJson {
        id: known(object.id),
        category_id: category(object.label),
        bbox: match form.boxes {
            BoxForm::Xywh => object.numbers,
            other => {
                let [left, top, right, bottom] = other.corners(object.numbers);
                [left, top, right - left, bottom - top]
            }
        },
        area: form.area.then_some(object.area),
        iscrowd: u8::from(object.crowd),
        keypoints: &object.keypoints,
        rotated: &object.rotated,
        segmentation: match &object.shape {
            ObjectShape::None => None,
            ObjectShape::Polygons(rings) => {
                let flat = rings.iter().map(|ring| ring.as_flattened().to_vec());
                Some(ShapeJson::Rings(flat.collect()))
            }
            ObjectShape::Runs { size, counts } => Some(ShapeJson::Runs {
                size: *size,
                counts,
            }),
            // The text has bytes 48 to 111 only, or its mask cannot be drawn.
            ObjectShape::RunText { size, text } => Some(ShapeJson::RunText {
                size: *size,
                counts: str::from_utf8(text).unwrap_or_default(),
            }),
        },
    });
    serde_json::to_vec(&ObjectsJson {
        image_id: known(sample.image_id),
        height: sample.size.map(|(height, _)| height),
        width: sample.size.map(|(_, width)| width),
        annotations: objects.collect(),
    })
}
