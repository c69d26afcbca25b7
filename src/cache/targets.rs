//! The objects, masks and other rasters that a cache keeps beside its images.
//!
//! Runs in the consumer. Objects are one table of all samples of the source. Rasters are files, which
//! workers read. Never in here: how annotations and patterns are read.

use std::sync::Arc;

use serde::Serialize;

use crate::cache::shard_ledger::SourceSample;
use crate::data::index::{ARRAY_EXTENSION, IMAGE_EXTENSIONS, Index};
use crate::data::objects::{
    BoxForm, ObjectForm, ObjectShape, ObjectTable, ObjectTableWriter, StatedObjects,
};
use crate::data::shard::manifest::{
    HexHash128, MASK_EXTENSION, MOST_RASTERS, MasksEntry, ObjectsEntry, RasterEntry, TargetMembers,
};
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::encode::encoding::{CacheEncoding, CacheResize};
use crate::jobs::encode::raster_form::RasterForm;
use crate::jobs::encode::resized_objects::resize_objects;
use crate::jobs::object_rule::ObjectRule;
use crate::jobs::raster_rule::{MASKS, RasterRule, raster_error};
use crate::jobs::rule_fields::{changed_fields, fields_of};
use crate::loader::OpenedRaster;

/// The targets that a cache keeps.
#[derive(Debug, Default)]
pub(super) struct CacheTargets {
    pub(super) objects: Option<KeptObjects>,
    /// Masks are the first.
    pub(super) rasters: Vec<OpenedRaster>,
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

/// The entries of targets in the manifest of a cache, before the build has ended.
#[derive(Debug, Serialize)]
pub(super) struct TargetEntries {
    pub(super) objects: Option<ObjectsEntry>,
    pub(super) masks: Option<MasksEntry>,
    pub(super) rasters: Vec<RasterEntry>,
}

/// How a cache stores images and rasters: the encoding, and the resize.
pub(super) type StoredAs = (CacheEncoding, Option<CacheResize>);

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
            masks: self.has_masks(),
            rasters: (self.rasters.len() - usize::from(self.has_masks())) as u32,
        }
    }

    fn has_masks(&self) -> bool {
        (self.rasters.first()).is_some_and(|raster| raster.named.name == MASKS)
    }

    /// The entries of the cache's manifest, before the build has ended.
    pub(super) fn entries(&self) -> TargetEntries {
        let objects = self.objects.as_ref().map(|objects| ObjectsEntry {
            source: HexHash128(objects.table.hash()),
            rule: objects.rule.clone(),
            form: objects.table.form().clone(),
            table: None,
        });
        let (mut masks, mut rasters) = (None, Vec::new());
        for OpenedRaster { named, files } in &self.rasters {
            match &named.rule {
                RasterRule::Mask(rule) if named.name == MASKS => {
                    let rule = given_fields(rule);
                    masks = Some(MasksEntry { rule, index: None });
                }
                rule => rasters.push(RasterEntry {
                    name: named.name.clone(),
                    rule: rule.described(),
                    source: HexHash128(match files.shards() {
                        0 => 0,
                        _ => files.hash(),
                    }),
                    index: None,
                }),
            }
        }
        TargetEntries {
            objects,
            masks,
            rasters,
        }
    }

    /// The most bytes of their entries in the cache's manifest, which is indented.
    pub(super) fn names_bytes(&self) -> u64 {
        let text = serde_json::to_vec_pretty(&self.entries());
        text.map_or(0, |text| text.len() as u64) * 2
    }

    /// Rejects targets that cannot be kept with these options.
    ///
    /// # Errors
    /// Boxes of samples in their images; rasters that are not in files; too many; names that are
    /// those of other members.
    pub(super) fn check(&self, images: &Index) -> Result<()> {
        let members = self.members();
        let option = match (members.objects, members.masks) {
            (true, _) => "objects",
            (false, true) => MASKS,
            (false, false) => "rasters",
        };
        if !images.has_boxes() || members.is_none() {
            return self.check_rasters();
        }
        Err(Error::option(
            option,
            format!(
                "{option}: the samples are boxes in their images (`boxes`), and a cache keeps no \
                 {option} of such samples: remove `boxes`"
            ),
        ))
    }

    fn check_rasters(&self) -> Result<()> {
        let refused = |name: &str, what: String| Err(raster_error(name, &what));
        if let Some(one) = self.rasters.get(MOST_RASTERS) {
            let what = format!("a cache keeps {MOST_RASTERS} rasters at most, with masks");
            return refused(&one.named.name, what);
        }
        let mut names: Vec<String> = Vec::new();
        for OpenedRaster { named, files } in &self.rasters {
            files.check_in_files(match &*named.name {
                MASKS => "a cache with masks",
                _ => "a cache with rasters",
            })?;
            // Readers of tars take extensions in any case.
            let extension = extension_of(&named.name).to_ascii_lowercase();
            let is_taken = IMAGE_EXTENSIONS.contains(&extension.as_str())
                || OTHER_EXTENSIONS.contains(&extension.as_str())
                || names.contains(&extension);
            if is_taken && named.name != MASKS {
                let what =
                    "samples of the cache have another member of this name: use another name";
                return refused(&named.name, what.to_owned());
            }
            names.push(extension);
        }
        Ok(())
    }

    /// The extensions of the members of the rasters of sample `id` of the source.
    pub(super) fn raster_extensions(&self, id: u64, stored: StoredAs) -> Vec<String> {
        let extension = |raster: &OpenedRaster| {
            let path = raster.files.relative_path(id);
            let form = RasterForm::of(&raster.named.rule, stored, path);
            let own = extension_of(&raster.named.name);
            match form.extension(path) {
                Some(format) => format!("{own}.{format}"),
                // Readers find the format by the first bytes.
                None => own.to_owned(),
            }
        };
        self.rasters.iter().map(extension).collect()
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

/// Extensions of members that are no images.
const OTHER_EXTENSIONS: [&str; 4] = [ARRAY_EXTENSION, "cls", "json", "objects"];

/// The extension of the members of the rasters with this name, without that of their format.
fn extension_of(name: &str) -> &str {
    match name {
        MASKS => MASK_EXTENSION,
        name => name,
    }
}

/// The fields of a rule that differ from their defaults.
fn given_fields<R: Serialize + Default>(rule: &R) -> serde_json::Value {
    let usual = fields_of(&R::default());
    serde_json::Value::Object(changed_fields(fields_of(rule), &usual))
}

impl KeptObjects {
    /// `rule`: that of the build. Each run says whether it makes instance masks.
    pub(super) fn new(table: Arc<ObjectTable>, rule: &ObjectRule) -> Self {
        Self {
            table,
            rule: given_fields(&ObjectRule {
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
