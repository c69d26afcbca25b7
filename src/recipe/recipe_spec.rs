//! A recipe as a user writes it.

use serde::{Deserialize, Serialize};

use super::buckets::BucketRule;
use super::defaults::is_default;
use super::mixing::Mixing;
use super::op::{Cast, CoverCrop, Decode, Layout, Op};
use super::operation::Operation;
use super::tensor::{DataType, MemoryLayout};
use super::values::{BackgroundColor, DecodeMode, OrientationMode, TruncationPolicy};
use crate::error::{Error, Result};

/// Which operations the planner may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReorderMode {
    /// None: each operation runs separately, on whole images, as written.
    Off,
    /// Only moves that change no bit of any batch.
    #[default]
    Exact,
    /// Also moves that change values. `featherload plan` prints which and why.
    Fast,
}

impl ReorderMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Exact => "exact",
            Self::Fast => "fast",
        }
    }
}

/// The operations on each sample, in the written order.
///
/// ```
/// use featherload::recipe::{CenterCrop, Normalize, Recipe, Resize};
///
/// let recipe = Recipe::new("eval")
///     .then(Resize::shorter(256))
///     .then(CenterCrop::new(224))
///     .then(Normalize::imagenet());
/// # let _ = recipe;
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    pub name: String,
    /// None: `exact`, and JPEG files may be decoded at a smaller scale.
    pub reorder: Option<ReorderMode>,
    pub ops: Vec<Op>,
    /// Operations on whole batches. The consumer runs them.
    pub mixing: Option<Mixing>,
    /// Several crops of each image, instead of `ops`. Empty: a sample is one image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crops: Vec<RecipeCrop>,
}

impl Recipe {
    /// A recipe without operations.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reorder: None,
            ops: Vec::new(),
            mixing: None,
            crops: Vec::new(),
        }
    }

    /// The same recipe with `count` crops of each image by `recipe`, after those that it has. All
    /// crops of an image come from one read and one decode. Each has its own random numbers.
    ///
    /// ```
    /// use featherload::recipe::{RandomHorizontalFlip, RandomResizedCrop, Recipe};
    ///
    /// let crop = |size| {
    ///     Recipe::new("crop")
    ///         .then(RandomResizedCrop::new(size))
    ///         .then(RandomHorizontalFlip::default())
    /// };
    /// let dino = Recipe::new("dino").with_crop(crop(224), 2).with_crop(crop(96), 8);
    /// # let _ = dino;
    /// ```
    pub fn with_crop(mut self, recipe: Recipe, count: u32) -> Self {
        self.crops.push(RecipeCrop {
            recipe,
            count,
            shared: 0,
        });
        self
    }

    /// As [`with_crop`](Self::with_crop), but the first `shared` operations have the random numbers
    /// of the first crop. See [`RecipeCrop::shared`].
    ///
    /// ```
    /// use featherload::recipe::{RandomHorizontalFlip, RandomResizedCrop, Recipe, TimmAugment};
    ///
    /// let clean = Recipe::new("clean")
    ///     .then(RandomResizedCrop::new(224))
    ///     .then(RandomHorizontalFlip::default());
    /// let mixed = clean.clone().then(TimmAugment::new("augmix-m5-w4-d2"));
    /// let splits = Recipe::new("splits").with_crop(clean, 1).with_shared_crop(mixed, 2, 2);
    /// # let _ = splits;
    /// ```
    pub fn with_shared_crop(mut self, recipe: Recipe, count: u32, shared: u32) -> Self {
        self.crops.push(RecipeCrop {
            recipe,
            count,
            shared,
        });
        self
    }

    /// The same recipe with one more operation at the end.
    pub fn then(mut self, op: impl Into<Op>) -> Self {
        self.ops.push(op.into());
        self
    }

    /// The same recipe with another choice of moves.
    pub fn with_reorder(self, to: ReorderMode) -> Self {
        self.change_each(|recipe| recipe.reorder = Some(to))
    }

    /// The same recipe with batches of another element type. Other casts stay. `u8` also removes
    /// `normalize`, which makes no levels.
    pub fn with_dtype(self, to: DataType) -> Self {
        self.change_each(|Recipe { ops, .. }| {
            let last = ops.iter().rposition(|op| !matches!(op, Op::Layout(_)));
            if let Some(last) = last.filter(|i| matches!(ops[*i], Op::Cast(_))) {
                ops.remove(last);
            }
            if to == DataType::U8 {
                ops.retain(|op| !matches!(op, Op::Normalize(_)));
            }
            ops.push(Cast { dtype: to }.into());
        })
    }

    /// The same recipe with another axis order of batches.
    pub fn with_layout(self, to: MemoryLayout) -> Self {
        self.change_each(|recipe| {
            recipe.ops.retain(|op| !matches!(op, Op::Layout(_)));
            recipe.ops.push(Layout { layout: to }.into());
        })
    }

    /// The same recipe with another decode mode.
    pub fn with_decode(self, to: DecodeMode) -> Self {
        self.change_decode(|decode| decode.mode = Some(to))
    }

    /// The same recipe with another background colour for transparent images.
    pub fn with_background(self, to: BackgroundColor) -> Self {
        self.change_decode(|decode| decode.background = to)
    }

    /// The same recipe, with or without applying the EXIF orientation.
    pub fn with_orientation(self, to: OrientationMode) -> Self {
        self.change_decode(|decode| decode.orientation = to)
    }

    /// The same recipe, keeping or rejecting truncated JPEG and PNG files.
    pub fn with_truncated(self, to: TruncationPolicy) -> Self {
        self.change_decode(|decode| decode.truncated = to)
    }

    fn change_decode(self, change: impl Fn(&mut Decode)) -> Self {
        self.change_each(|recipe| {
            let mut decode = recipe.decode();
            change(&mut decode);
            recipe.ops.retain(|op| !matches!(op, Op::Decode(_)));
            recipe.ops.insert(0, decode.into());
        })
    }

    /// The same recipe with this rule in its [`CoverCrop`], so that images are resized as the rule
    /// has it. Without one the recipe stays as it is.
    ///
    /// # Errors
    /// The operation has another rule. Another operation changes the size: the bucket follows from
    /// the image's own size, and the row has that of the bucket.
    pub(crate) fn with_buckets(mut self, rule: BucketRule) -> Result<Self> {
        let sizers = self.ops.iter().enumerate();
        let sizers: Vec<_> = sizers.filter(|(_, op)| op.sets_size()).collect();
        let is_cover = |op: &Op| matches!(op, Op::CoverCrop(_));
        let Some((at, _)) = sizers.iter().find(|(_, op)| is_cover(op)) else {
            return Ok(self);
        };
        let (at, refused) = (*at, |what: String| Err(Error::option("recipe", what)));
        if let Some((other, op)) = sizers.iter().find(|(other, _)| *other != at) {
            let (order, name) = (if *other < at { "after" } else { "before" }, op.name());
            return refused(format!(
                "cover_crop comes {order} {name}, which changes the size of images, and buckets set \
                 all sizes: remove {name}, or use another sampler"
            ));
        }
        if let Op::CoverCrop(CoverCrop { buckets, .. }) = &mut self.ops[at] {
            if let Some(other) = buckets.filter(|own| *own != rule) {
                return refused(format!(
                    "cover_crop has the buckets of {other}, and the sampler those of {rule}: remove \
                     `buckets` from the recipe"
                ));
            }
            *buckets = Some(rule);
        }
        Ok(self)
    }

    /// Whether an operation has buckets.
    pub(crate) fn has_buckets(&self) -> bool {
        let has = |op: &Op| matches!(op, Op::CoverCrop(crop) if crop.buckets.is_some());
        self.all_ops().any(has)
    }

    /// The same recipe after this change of its operations, or of those of each crop.
    fn change_each(mut self, change: impl Fn(&mut Self)) -> Self {
        match &mut self.crops[..] {
            [] => change(&mut self),
            crops => crops.iter_mut().for_each(|crop| change(&mut crop.recipe)),
        }
        self
    }

    /// Whether rows are made of images of several samples: by `mosaic`, `mix_samples`,
    /// `cut_samples` or `copy_paste`.
    pub fn joins_samples(&self) -> bool {
        self.ops.iter().any(|op| op.joint().is_some())
    }

    /// All operations on images: of the recipe, and of its crops.
    pub fn all_ops(&self) -> impl Iterator<Item = &Op> {
        let of_crops = self.crops.iter().flat_map(|crop| &crop.recipe.ops);
        self.ops.iter().chain(of_crops)
    }

    /// The same recipe with other operations on batches.
    pub fn with_mixing(mut self, mixing: Mixing) -> Self {
        self.mixing = Some(mixing);
        self
    }

    /// The `decode` operation, or its default if the recipe has none.
    pub(crate) fn decode(&self) -> Decode {
        self.ops
            .iter()
            .find_map(|op| match op {
                Op::Decode(decode) => Some(*decode),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// A fingerprint of the recipe without its name. Equal recipes give equal batches.
    pub fn hash(&self) -> u64 {
        twox_hash::XxHash3_128::oneshot(self.hashed_text().as_bytes()) as u64
    }

    /// The text that is hashed. Debug prints enough digits to distinguish floats, and names every
    /// field, so different recipes have different texts.
    ///
    /// Saved states hold the hash. So the text keeps the first names of two types, and leaves out a
    /// field that came later if it has its default.
    fn hashed_text(&self) -> String {
        let mut text = format!("{:?} {:?} {:?}", self.reorder, self.ops, self.mixing);
        for RecipeCrop {
            recipe,
            count,
            shared,
        } in &self.crops
        {
            text.push_str(&format!(" {count} of {}", recipe.hashed_text()));
            if *shared > 0 {
                text.push_str(&format!(" sharing {shared}"));
            }
        }
        let text = text.replace("BackgroundColor(", "Background(");
        let text = text.replace("MixChoice {", "Choice {");
        let crop = "RandomResizedCrop {";
        let mut parts = text.split(crop);
        let mut kept = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            // Other crops have had a field of this name from the beginning.
            let (own, rest) = part.split_at(part.find("antialias").unwrap_or_default());
            kept.push_str(crop);
            kept.push_str(&own.replace("interpolation_or: None, ", ""));
            kept.push_str(rest);
        }
        kept
    }
}

/// One entry of [`Recipe::crops`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "CropText", into = "CropText")]
pub struct RecipeCrop {
    /// The operations of the crop. It has neither crops nor `mixing` of its own.
    pub recipe: Recipe,
    /// The number of such crops of each image, each with its own random numbers.
    pub count: u32,
    /// The number of first operations that have the random numbers of the first crop. They are
    /// those of the first crop, so their result is the same. `decode`, `normalize`, `cast` and
    /// `layout` do not count.
    pub shared: u32,
}

impl RecipeCrop {
    /// The operations that count for `shared`, with their indices.
    pub(crate) fn counted_ops(&self) -> impl Iterator<Item = (usize, &Op)> {
        let all = self.recipe.ops.iter().enumerate();
        all.filter(|(_, op)| {
            !matches!(
                op,
                Op::Decode(_) | Op::Normalize(_) | Op::Cast(_) | Op::Layout(_)
            )
        })
    }
}

/// The form in recipe files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CropText {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(default = "one")]
    count: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    shared: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reorder: Option<ReorderMode>,
    ops: Vec<Op>,
}

fn one() -> u32 {
    1
}

impl From<CropText> for RecipeCrop {
    fn from(text: CropText) -> Self {
        Self {
            recipe: Recipe {
                reorder: text.reorder,
                ops: text.ops,
                ..Recipe::new(text.name)
            },
            count: text.count,
            shared: text.shared,
        }
    }
}

/// A recipe that can run loses nothing: other fields of a crop are refused before.
impl From<RecipeCrop> for CropText {
    fn from(crop: RecipeCrop) -> Self {
        Self {
            name: crop.recipe.name,
            count: crop.count,
            shared: crop.shared,
            reorder: crop.recipe.reorder,
            ops: crop.recipe.ops,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{
        BoundedResizedCrop, InterpolationMode, MixChoice, MixOp, RandomCrop, RandomResizedCrop,
        Size,
    };

    /// Renaming a type, a field or a variant must not change hashes in saved states.
    #[test]
    fn the_hashed_text_is_stable() {
        let recipe = Recipe::new("any")
            .with_decode(DecodeMode::Full)
            .then(RandomCrop::new(Size::from(8)))
            .with_mixing(Mixing::new(2).then(MixOp::OneOf(vec![MixChoice {
                p: 0.5,
                op: MixOp::Mixup { alpha: 1.0 },
            }])));
        assert_eq!(
            recipe.hashed_text(),
            "None [Decode(Decode { color: Rgb, mode: Some(Full), background: Background([255, 255, \
             255]), orientation: Exif, alpha: Composite, truncated: Refuse }), \
             RandomCrop(RandomCrop { size: Size { height: 8, width: 8 }, padding: Padding { left: \
             0, top: 0, right: 0, bottom: 0 }, pad_if_needed: false, fill: PerChannel([0.0, 0.0, \
             0.0]), padding_mode: Constant })] Some(Mixing { num_classes: 2, ops: [OneOf([Choice \
             { p: 0.5, op: Mixup { alpha: 1.0 } }])] })"
        );
        let mut crop = RandomResizedCrop::new(Size::from(8));
        let text = |crop: &RandomResizedCrop| Recipe::new("any").then(*crop).hashed_text();
        assert_eq!(
            text(&crop),
            "None [RandomResizedCrop(RandomResizedCrop { size: Size { height: 8, width: 8 }, \
             scale: Span(0.08, 1.0), ratio: Span(0.75, 1.3333333333333333), interpolation: \
             Bilinear, antialias: true })] None"
        );
        let recipe = Recipe::new("any").then(BoundedResizedCrop::new(Size::from(8)));
        assert!(recipe.hashed_text().contains("interpolation_or: None"));
        // A field that came later counts if it has another value than its default.
        crop.interpolation_or = Some(InterpolationMode::Bicubic);
        assert!(text(&crop).contains("interpolation_or: Some(Bicubic)"));
    }
}
