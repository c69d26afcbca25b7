//! How the objects of a sample become those of a batch.
//!
//! Pure. The consumer checks the rule, and workers apply it to each row.

use serde::{Deserialize, Serialize};

use crate::data::objects::{ObjectForm, ObjectTable};
use crate::error::{Error, Result};
use crate::recipe::{LabelFilter, Size};
use crate::targets::masks::MaskScale;
use crate::targets::{
    AlbumentationsRules, Detectron2Rules, KeypointSwap, TargetRules, TargetStyle, UltralyticsRules,
};

/// Which objects are kept if a picture has more than [`ObjectRule::max_objects`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectOverflow {
    /// Those that the annotation names first.
    #[default]
    First,
    /// Those with the largest boxes in the output, in the order of the annotation.
    Largest,
    /// None: the sample is an error.
    Error,
}

/// The size of instance masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstanceMasks {
    /// That of the row.
    Full,
    /// Both sides of the row divided by 4, rounded up.
    Quarter,
}

/// The numbers of labels in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelNumbers {
    /// The place of the category in the list of categories, from 0 without gaps.
    Contiguous,
    /// The category's number in the annotation, such as 1 to 90 in COCO.
    Ids,
}

/// How objects move with their picture, and which are dropped. The default is torchvision's v2
/// transforms with `SanitizeBoundingBoxes` at the end.
///
/// A number that is not given is the style's own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectRule {
    /// The library whose rules objects follow.
    pub style: TargetStyle,
    /// The least width and height of a box in pixels, from 0, after it is clamped to the picture.
    /// torchvision 1, albumentations 0, ultralytics 2 where pictures are cut or warped, detectron2
    /// 0.00001. With `hf` no box is dropped by its size.
    pub min_size: Option<f64>,
    /// The least area of a box in square pixels, from 0. torchvision 1, albumentations 0. Not with
    /// the other styles.
    pub min_area: Option<f64>,
    /// The least share of a box that is left, 0 to 1. albumentations 0, ultralytics 0.1, or 0.01
    /// with polygons, where pictures are cut or warped. Not with the other styles.
    pub min_visibility: Option<f64>,
    /// Most objects of a picture. Default: no limit.
    pub max_objects: Option<u32>,
    /// Which objects are kept if a picture has more.
    pub overflow: ObjectOverflow,
    /// For each keypoint the one that takes its place in a mirrored picture, in styles detectron2
    /// and ultralytics. Default: as the annotation says, or by names such as `left_eye` and
    /// `right_eye`.
    pub keypoint_swap: Option<Vec<usize>>,
    /// The numbers of labels. Default: `ids` in style torchvision and for lists, else contiguous.
    pub labels: Option<LabelNumbers>,
    /// Instance masks, drawn from polygons or run lengths: the size of those in a batch. Default:
    /// none. In styles torchvision, albumentations and hf they are drawn at the picture's size, and
    /// then go through its steps. In detectron2 and ultralytics polygons move, and are drawn last,
    /// unless the recipe joins samples.
    pub masks: Option<InstanceMasks>,
    /// Whether a picture may have another size than its annotation states. Coordinates are then
    /// taken as they are.
    pub any_size: bool,
}

/// torchvision's defaults of `SanitizeBoundingBoxes`.
const SANITIZED: f64 = 1.0;

impl ObjectRule {
    /// # Errors
    /// A number outside of its range, or without meaning in this style.
    pub(crate) fn check(&self) -> Result<()> {
        let style = self.style;
        let refused = |field: &str, what: String| {
            Err(Error::option(
                "objects",
                format!("objects: `{field}` {what}"),
            ))
        };
        let numbers = [
            ("min_size", self.min_size, f64::INFINITY),
            ("min_area", self.min_area, f64::INFINITY),
            ("min_visibility", self.min_visibility, 1.0),
        ];
        for (field, value, most) in numbers {
            let Some(value) = value else { continue };
            if !(0.0..=most).contains(&value) || !value.is_finite() {
                let range = match most {
                    1.0 => "0 to 1",
                    _ => "0 or more",
                };
                return refused(field, format!("is {value}: use {range}"));
            }
            let has_meaning = match style {
                TargetStyle::Torchvision => field != "min_visibility",
                TargetStyle::Albumentations => true,
                TargetStyle::Detectron2 => field == "min_size",
                TargetStyle::Ultralytics => field != "min_area",
                TargetStyle::Hf => false,
            };
            if !has_meaning {
                let name = style.name();
                return refused(
                    field,
                    format!("has no meaning in style {name}: remove it, or use another style"),
                );
            }
        }
        if self.keypoint_swap.is_some() && !self.exchanges_keypoints() {
            let name = style.name();
            return refused(
                "keypoint_swap",
                format!("has no meaning in style {name}, which exchanges no keypoints: remove it"),
            );
        }
        if self.max_objects == Some(0) {
            return refused("max_objects", "is 0: use at least 1".into());
        }
        Ok(())
    }

    /// Checks that objects of this form can follow the rule.
    ///
    /// # Errors
    /// A table of partners for another number of keypoints; masks of objects without outlines.
    pub(crate) fn check_form(&self, form: &ObjectForm) -> Result<()> {
        if self.masks.is_some() && !form.shapes {
            return Err(Error::option(
                "objects",
                "objects: `masks` are drawn from polygons or run lengths, and these objects have \
                 none: remove `masks`",
            ));
        }
        let refused = |what: String| Err(Error::option("objects", format!("objects: {what}")));
        let count = form.keypoints;
        match self.swap_of(form) {
            Some(swap) if swap.len() != count => refused(format!(
                "`keypoint_swap` has {} numbers, and objects have {count} keypoints: give one \
                 number for each",
                swap.len()
            )),
            Some(swap) => match KeypointSwap::new(swap.to_vec()) {
                Ok(_) => Ok(()),
                Err(fault) => refused(format!("`keypoint_{}` {}", fault.field, fault.reason)),
            },
            None if count > 0 && self.exchanges_keypoints() => refused(format!(
                "style {} exchanges keypoints in a mirrored picture, and it is not known which: \
                 give `keypoint_swap`, for each of {count} keypoints the one that takes its place",
                self.style.name()
            )),
            None => Ok(()),
        }
    }

    /// For each keypoint the one that takes its place in a mirrored picture. None if it is not known.
    pub(crate) fn swap_of<'a>(&'a self, form: &'a ObjectForm) -> Option<&'a [usize]> {
        let stated = Some(&form.keypoint_swap[..]).filter(|swap| !swap.is_empty());
        self.keypoint_swap.as_deref().or(stated)
    }

    /// Whether the style exchanges keypoints at all.
    fn exchanges_keypoints(&self) -> bool {
        match self.style {
            TargetStyle::Detectron2 | TargetStyle::Ultralytics => true,
            TargetStyle::Torchvision | TargetStyle::Albumentations | TargetStyle::Hf => false,
        }
    }

    /// The rules of the style with these numbers.
    pub(crate) fn rules(&self, form: &ObjectForm) -> TargetRules {
        let usual = self.style.rules();
        match usual {
            TargetRules::Albumentations(rules) => {
                let least = self.min_size.unwrap_or(rules.min_width);
                TargetRules::Albumentations(AlbumentationsRules {
                    clip: true,
                    min_width: least,
                    min_height: least,
                    min_area: self.min_area.unwrap_or(rules.min_area),
                    min_visibility: self.min_visibility.unwrap_or(rules.min_visibility),
                    ..rules
                })
            }
            TargetRules::Ultralytics(rules) => {
                let rules = match form.shapes {
                    true => UltralyticsRules::with_polygons(),
                    false => rules,
                };
                TargetRules::Ultralytics(UltralyticsRules {
                    min_side: self.min_size.unwrap_or(rules.min_side),
                    min_area_ratio: self.min_visibility.unwrap_or(rules.min_area_ratio),
                    ..rules
                })
            }
            TargetRules::Detectron2(rules) => TargetRules::Detectron2(Detectron2Rules {
                box_threshold: self.min_size.unwrap_or(rules.box_threshold),
                ..rules
            }),
            other @ (TargetRules::Torchvision(_) | TargetRules::Hf) => other,
        }
    }

    /// The least side and area of torchvision's sanitizing. None if nothing is dropped.
    pub(crate) fn sanitizing(&self) -> Option<(f64, f64)> {
        let least = (
            self.min_size.unwrap_or(SANITIZED),
            self.min_area.unwrap_or(SANITIZED),
        );
        let drops = self.style == TargetStyle::Torchvision && least != (0.0, 0.0);
        drops.then_some(least)
    }

    /// The numbers of the labels of files: torchvision keeps those of the file.
    pub(crate) fn usual_labels(&self) -> LabelNumbers {
        match self.style {
            TargetStyle::Torchvision => LabelNumbers::Ids,
            _ => LabelNumbers::Contiguous,
        }
    }

    /// The size of the instance masks of a row of this size. None without masks.
    pub(crate) fn mask_size(&self, row: Size) -> Option<Size> {
        self.mask_scale().map(|scale| scale.size(row))
    }

    pub(crate) fn mask_scale(&self) -> Option<MaskScale> {
        self.masks.map(|masks| match masks {
            InstanceMasks::Full => MaskScale::Full,
            InstanceMasks::Quarter => MaskScale::Quarter,
        })
    }

    /// Which label a resized pixel of a mask takes, as in the style's library.
    pub(crate) fn mask_filter(&self) -> LabelFilter {
        match self.style {
            TargetStyle::Hf => LabelFilter::Center,
            _ => LabelFilter::Floor,
        }
    }

    /// Whether masks are drawn at the picture's size, and then go through its steps.
    pub(crate) fn draws_at_source(&self) -> bool {
        match self.style {
            TargetStyle::Torchvision | TargetStyle::Albumentations | TargetStyle::Hf => true,
            TargetStyle::Detectron2 | TargetStyle::Ultralytics => false,
        }
    }

    /// The most objects that a row of a sample of the table can have. `of_partners`: objects of
    /// samples that are joined with it.
    pub(crate) fn room(&self, table: &ObjectTable, id: u64, of_partners: usize) -> usize {
        let most = self.max_objects.map_or(usize::MAX, |most| most as usize);
        table.count(id).saturating_add(of_partners).min(most)
    }

    /// Fingerprint of this rule and of a table with this hash, as hexadecimal digits.
    pub(crate) fn fingerprint(&self, table: u128) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        let text = format!("{table:032x} {text}");
        format!("{:032x}", twox_hash::XxHash3_128::oneshot(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_meaning_are_refused() {
        let refused = |rule: ObjectRule| rule.check().unwrap_err().to_string();
        let base = ObjectRule::default;
        let e = refused(ObjectRule {
            min_visibility: Some(0.1),
            ..base()
        });
        assert!(e.contains("has no meaning in style torchvision"), "{e}");
        let e = refused(ObjectRule {
            min_size: Some(f64::NAN),
            ..base()
        });
        assert!(e.contains("`min_size` is NaN: use 0 or more"), "{e}");
        let e = refused(ObjectRule {
            style: TargetStyle::Albumentations,
            min_visibility: Some(1.5),
            ..base()
        });
        assert!(e.contains("use 0 to 1"), "{e}");
        let e = refused(ObjectRule {
            style: TargetStyle::Hf,
            min_size: Some(1.0),
            ..base()
        });
        assert!(e.contains("style hf"), "{e}");
        let e = refused(ObjectRule {
            max_objects: Some(0),
            ..base()
        });
        assert!(e.contains("at least 1"), "{e}");
        for style in TargetStyle::ALL {
            assert!(ObjectRule { style, ..base() }.check().is_ok());
        }
    }

    #[test]
    fn given_numbers_replace_the_style_s_own() {
        let form = ObjectForm::default();
        let rule = ObjectRule {
            style: TargetStyle::Ultralytics,
            min_size: Some(7.0),
            ..ObjectRule::default()
        };
        let TargetRules::Ultralytics(rules) = rule.rules(&form) else {
            panic!("another style");
        };
        assert_eq!((rules.min_side, rules.min_area_ratio), (7.0, 0.1));
        let polygons = ObjectForm {
            shapes: true,
            ..form
        };
        let TargetRules::Ultralytics(rules) = rule.rules(&polygons) else {
            panic!("another style");
        };
        assert_eq!(rules.min_area_ratio, 0.01);
        assert_eq!(ObjectRule::default().sanitizing(), Some((1.0, 1.0)));
        let keeps = ObjectRule {
            min_size: Some(0.0),
            min_area: Some(0.0),
            ..ObjectRule::default()
        };
        assert_eq!(keeps.sanitizing(), None);
        assert_eq!(rule.sanitizing(), None);
    }
}
