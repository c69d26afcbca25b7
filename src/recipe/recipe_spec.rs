//! A recipe as a user writes it.

use serde::{Deserialize, Serialize};

use super::mixing::Mixing;
use super::op::{Cast, Decode, Layout, Op};
use super::tensor::{DataType, MemoryLayout};
use super::values::{BackgroundColor, DecodeMode, OrientationMode, TruncationPolicy};

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
}

impl Recipe {
    /// A recipe without operations.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reorder: None,
            ops: Vec::new(),
            mixing: None,
        }
    }

    /// The same recipe with one more operation at the end.
    pub fn then(mut self, op: impl Into<Op>) -> Self {
        self.ops.push(op.into());
        self
    }

    /// The same recipe with another choice of moves.
    pub fn with_reorder(mut self, to: ReorderMode) -> Self {
        self.reorder = Some(to);
        self
    }

    /// The same recipe with batches of another element type. Other casts stay. `u8` also removes
    /// `normalize`, which makes no levels.
    pub fn with_dtype(mut self, to: DataType) -> Self {
        let last = self.ops.iter().rposition(|op| !matches!(op, Op::Layout(_)));
        if let Some(last) = last.filter(|i| matches!(self.ops[*i], Op::Cast(_))) {
            self.ops.remove(last);
        }
        if to == DataType::U8 {
            self.ops.retain(|op| !matches!(op, Op::Normalize(_)));
        }
        self.then(Cast { dtype: to })
    }

    /// The same recipe with another axis order of batches.
    pub fn with_layout(mut self, to: MemoryLayout) -> Self {
        self.ops.retain(|op| !matches!(op, Op::Layout(_)));
        self.then(Layout { layout: to })
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

    fn change_decode(mut self, change: impl FnOnce(&mut Decode)) -> Self {
        let mut decode = self.decode();
        change(&mut decode);
        self.ops.retain(|op| !matches!(op, Op::Decode(_)));
        self.ops.insert(0, decode.into());
        self
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
    /// Saved states hold the hash. So the text keeps the first names of two types.
    fn hashed_text(&self) -> String {
        let text = format!("{:?} {:?} {:?}", self.reorder, self.ops, self.mixing);
        text.replace("BackgroundColor(", "Background(")
            .replace("MixChoice {", "Choice {")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{MixChoice, MixOp, RandomCrop, Size};

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
    }
}
