//! What the rasters of images are: which numbers their files have, and how they come in a batch.
//!
//! Pure. The consumer checks the rules, and workers apply them. A raster is an image-like file that
//! belongs to an image and moves with it: a mask, depths, a flow, another image.

use half::f16;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::data::shard::manifest::is_raster_name;
use crate::error::{Error, Result};
use crate::jobs::mask_rule::MaskRule;
use crate::jobs::raster_section::{RasterSection, RasterType};
use crate::jobs::rule_fields::{changed_fields, fields_of};
use crate::recipe::{DataType, LabelFilter, PairSteps, RasterMoves, SampleProgram};

/// A number that may be NaN. JSON has no NaN, so it is the text `nan` there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RasterNumber(pub f32);

impl Serialize for RasterNumber {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0.is_finite() {
            true => to.serialize_f32(self.0),
            false => to.serialize_str("nan"),
        }
    }
}

impl<'de> Deserialize<'de> for RasterNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        use serde::de::Error as _;
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f32),
            Name(String),
        }
        match Form::deserialize(from)? {
            Form::Number(number) if number.is_finite() => Ok(Self(number)),
            Form::Name(name) if name.eq_ignore_ascii_case("nan") => Ok(Self(f32::NAN)),
            Form::Number(number) => Err(D::Error::custom(format!(
                "{number} is out of range: give a finite number of float32, or nan"
            ))),
            Form::Name(name) => Err(D::Error::custom(format!(
                "'{name}' is no number: give a number, or nan"
            ))),
        }
    }
}

/// Which value of a raster a moved pixel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RasterFilter {
    /// Of one pixel, as [`LabelFilter::Floor`].
    Floor,
    /// Of one pixel, as [`LabelFilter::Center`].
    Center,
    /// Of one pixel, as [`LabelFilter::Pillow`].
    Pillow,
    /// The mean of the four pixels around its place, by distance. If one of them is missing, the
    /// value of the nearest. Without antialiasing, as OpenCV's `INTER_LINEAR`.
    Bilinear,
}

impl RasterFilter {
    /// How pixels are chosen. Of `Bilinear`: which pixels are inside of the image.
    pub(crate) fn of_places(self) -> LabelFilter {
        match self {
            Self::Floor => LabelFilter::Floor,
            Self::Center | Self::Bilinear => LabelFilter::Center,
            Self::Pillow => LabelFilter::Pillow,
        }
    }
}

/// The element type of a raster of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RasterFloat {
    #[default]
    Float32,
    Float16,
}

impl RasterFloat {
    fn data_type(self) -> DataType {
        match self {
            Self::Float32 => DataType::F32,
            Self::Float16 => DataType::F16,
        }
    }
}

/// Depths, or other numbers of which a pixel has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberRule {
    /// The numbers of files are divided by it: 256 for KITTI, 1000 for millimetres as metres.
    pub divide: f32,
    /// The number of files that means "not measured", before the division. NaN and infinite numbers
    /// always do. A missing value becomes `fill`.
    pub missing: Option<RasterNumber>,
    /// The number of missing values, of padding, and of what a rotation uncovers.
    pub fill: RasterNumber,
    pub filter: RasterFilter,
    pub dtype: RasterFloat,
}

impl NumberRule {
    /// Depths: 0 is missing, and filters never mix two values.
    #[must_use]
    pub fn depth() -> Self {
        Self {
            divide: 1.0,
            missing: Some(RasterNumber(0.0)),
            fill: RasterNumber(0.0),
            filter: RasterFilter::Floor,
            dtype: RasterFloat::Float32,
        }
    }

    /// Alpha of matting, or masks of inpainting: 0 to 255 becomes 0 to 1, and filters mix.
    #[must_use]
    pub fn alpha() -> Self {
        Self {
            divide: 255.0,
            missing: None,
            filter: RasterFilter::Bilinear,
            ..Self::depth()
        }
    }
}

/// Optical flow: how far each pixel moves to the right and down, in pixels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowRule {
    /// A third plane: 1 where the flow is known, else 0.
    pub valid: bool,
    /// The number where the flow is not known. Default: NaN, or 0 with `valid`.
    pub fill: Option<RasterNumber>,
    pub filter: RasterFilter,
    pub dtype: RasterFloat,
}

impl Default for FlowRule {
    fn default() -> Self {
        Self {
            valid: false,
            fill: None,
            filter: RasterFilter::Floor,
            dtype: RasterFloat::Float32,
        }
    }
}

/// Which steps change the colours of a paired image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PairColors {
    /// Those of the image, with the same random numbers.
    #[default]
    Same,
    /// None: only moves, normalization and casts.
    None,
}

/// Another image: the right one of a stereo pair, a clean or a larger one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PairRule {
    pub colors: PairColors,
    /// How many times larger it is than the image.
    pub scale: u32,
    /// A flip from left to right exchanges the two images.
    pub swap: bool,
}

impl Default for PairRule {
    fn default() -> Self {
        Self {
            colors: PairColors::Same,
            scale: 1,
            swap: false,
        }
    }
}

/// The largest [`PairRule::scale`].
const MOST_SCALE: u32 = 16;

/// What a raster is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RasterRule {
    /// Labels of classes.
    Mask(MaskRule),
    Numbers(NumberRule),
    Flow(FlowRule),
    Image(PairRule),
}

/// The words for kinds of rasters.
pub(crate) const RASTER_KINDS: [&str; 5] = ["depth", "alpha", "flow", "image", "mask"];

impl RasterRule {
    /// The rule with this word, without options.
    #[must_use]
    pub fn of_kind(kind: &str) -> Option<Self> {
        Some(match kind {
            "depth" => Self::Numbers(NumberRule::depth()),
            "alpha" => Self::Numbers(NumberRule::alpha()),
            "flow" => Self::Flow(FlowRule::default()),
            "image" => Self::Image(PairRule::default()),
            "mask" => Self::Mask(MaskRule::default()),
            _ => return None,
        })
    }

    /// The rule with this word and these fields.
    ///
    /// # Errors
    /// An unknown word; a field that the kind does not have, or with a wrong value.
    pub(crate) fn read(
        kind: &str,
        fields: Map<String, Value>,
    ) -> std::result::Result<Self, String> {
        let Some(usual) = Self::of_kind(kind) else {
            let known = RASTER_KINDS.join(", ");
            return Err(format!("kind is '{kind}', and kinds are {known}"));
        };
        let with_usual = |usual: serde_json::Result<Value>| {
            let mut all = usual.map_err(|e| e.to_string())?;
            if let Some(all) = all.as_object_mut() {
                all.extend(fields.clone());
            }
            Ok::<_, String>(all)
        };
        macro_rules! read {
            ($kind:ident, $usual:expr) => {
                serde_json::from_value(with_usual(serde_json::to_value($usual))?).map(Self::$kind)
            };
        }
        match &usual {
            Self::Mask(usual) => read!(Mask, usual),
            Self::Numbers(usual) => read!(Numbers, usual),
            Self::Flow(usual) => read!(Flow, usual),
            Self::Image(usual) => read!(Image, usual),
        }
        .map_err(|e| format!("kind {kind}: {e}"))
    }

    /// The word of its kind, as the field `kind`, and the fields that differ from those of the kind.
    pub(crate) fn described(&self) -> Map<String, Value> {
        let kind = match self {
            Self::Mask(_) => "mask",
            Self::Numbers(rule) if rule.missing.is_none() => "alpha",
            Self::Numbers(_) => "depth",
            Self::Flow(_) => "flow",
            Self::Image(_) => "image",
        };
        let fields = |rule: &Self| match rule {
            Self::Mask(rule) => fields_of(rule),
            Self::Numbers(rule) => fields_of(rule),
            Self::Flow(rule) => fields_of(rule),
            Self::Image(rule) => fields_of(rule),
        };
        let usual = Self::of_kind(kind).map_or_else(Map::new, |usual| fields(&usual));
        let mut all = changed_fields(fields(self), &usual);
        all.insert("kind".into(), kind.into());
        all
    }

    /// The rule that [`RasterRule::described`] describes, with the fields `given` in place of its
    /// own.
    ///
    /// # Errors
    /// As [`RasterRule::read`].
    pub(crate) fn of_description(
        described: &Map<String, Value>,
        given: &Map<String, Value>,
    ) -> std::result::Result<Self, String> {
        let mut fields = described.clone();
        let kind = fields.remove("kind");
        fields.extend(given.clone());
        Self::read(
            kind.as_ref().and_then(Value::as_str).unwrap_or_default(),
            fields,
        )
    }

    /// Checks all numbers of the rule.
    ///
    /// # Errors
    /// A number out of range. The text names it.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        match self {
            Self::Mask(rule) => rule.check().map_err(|e| e.to_string()),
            Self::Numbers(rule) if !rule.divide.is_finite() || rule.divide == 0.0 => Err(format!(
                "`divide` is {}: use a number other than 0, such as 256 or 1000",
                rule.divide
            )),
            Self::Numbers(rule) => fits(rule.fill, rule.dtype),
            Self::Flow(rule) => rule.fill.map_or(Ok(()), |fill| fits(fill, rule.dtype)),
            Self::Image(PairRule { scale, .. }) if !(1..=MOST_SCALE).contains(scale) => {
                Err(format!("`scale` is {scale}: use 1 to {MOST_SCALE}"))
            }
            Self::Image(rule)
                if rule.swap && (rule.scale > 1 || rule.colors == PairColors::None) =>
            {
                Err(
                    "`swap` exchanges an image with its pair, so both must be made alike: use \
                     scale 1 and colors 'same'"
                        .into(),
                )
            }
            Self::Image(_) => Ok(()),
        }
    }

    /// What the moves of the images must be.
    pub(crate) fn moves(&self) -> RasterMoves {
        match self {
            Self::Flow(_) => RasterMoves::Affine,
            Self::Numbers(rule) if rule.filter == RasterFilter::Bilinear => RasterMoves::Affine,
            Self::Numbers(_) | Self::Mask(_) | Self::Image(_) => RasterMoves::Any,
        }
    }

    /// The section of a batch that has these rasters. `program`: that of the image.
    pub(crate) fn section(&self, program: &SampleProgram) -> RasterSection {
        let format = program.output_format;
        let (planes, dtype, scale) = match self {
            Self::Mask(rule) => (None, RasterType::Labels(rule.element()), 1),
            Self::Numbers(rule) => (Some(1), RasterType::Numbers(rule.dtype.data_type()), 1),
            Self::Flow(rule) => (
                Some(2 + usize::from(rule.valid)),
                RasterType::Numbers(rule.dtype.data_type()),
                1,
            ),
            Self::Image(rule) => (
                Some(format.channels()),
                RasterType::Numbers(format.dtype),
                rule.scale,
            ),
        };
        RasterSection {
            planes,
            dtype,
            scale,
            is_image: matches!(self, Self::Image(_)),
        }
    }

    /// Fills `bytes`, a raster without a sample.
    pub(crate) fn fill_empty(&self, bytes: &mut [u8]) {
        let (fill, valid, dtype) = match self {
            Self::Mask(rule) => return rule.fill_empty(bytes),
            Self::Image(_) => return bytes.fill(0),
            Self::Numbers(rule) => (rule.fill.0, false, rule.dtype),
            Self::Flow(rule) => (rule.fill(), rule.valid, rule.dtype),
        };
        let (numbers, known) = match valid {
            true => bytes.split_at_mut(bytes.len() / 3 * 2),
            false => (bytes, &mut [][..]),
        };
        known.fill(0);
        write_all(dtype, numbers, std::iter::repeat(fill));
    }
}

impl FlowRule {
    /// The number where the flow is not known.
    pub(crate) fn fill(&self) -> f32 {
        let usual = if self.valid { 0.0 } else { f32::NAN };
        self.fill.map_or(usual, |fill| fill.0)
    }
}

impl PairRule {
    /// How the steps of an image become those of its pair.
    pub(crate) fn steps(&self) -> PairSteps {
        PairSteps {
            colors: self.colors == PairColors::Same,
            scale: self.scale,
        }
    }
}

fn fits(fill: RasterNumber, dtype: RasterFloat) -> std::result::Result<(), String> {
    if fill.0.is_infinite() {
        return Err("`fill` is infinite: use a number, or nan".into());
    }
    let is_finite = match dtype {
        RasterFloat::Float32 => true,
        RasterFloat::Float16 => f16::from_f32(fill.0).is_finite(),
    };
    match is_finite || fill.0.is_nan() {
        true => Ok(()),
        false => Err(format!(
            "`fill` is {}, which float16 does not hold: use float32",
            fill.0
        )),
    }
}

/// Bytes of an element.
pub(crate) fn bytes_of(dtype: RasterFloat) -> usize {
    dtype.data_type().size()
}

/// Writes one number for each element of `to`.
pub(crate) fn write_all(dtype: RasterFloat, to: &mut [u8], numbers: impl Iterator<Item = f32>) {
    match dtype {
        RasterFloat::Float32 => {
            for (to, number) in to.as_chunks_mut().0.iter_mut().zip(numbers) {
                *to = number.to_ne_bytes();
            }
        }
        RasterFloat::Float16 => {
            for (to, number) in to.as_chunks_mut().0.iter_mut().zip(numbers) {
                *to = f16::from_f32(number).to_ne_bytes();
            }
        }
    }
}

/// A raster of a run: its name and its rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NamedRaster {
    pub(crate) name: String,
    pub(crate) rule: RasterRule,
}

/// The name of the rasters of the option `masks`.
pub(crate) const MASKS: &str = "masks";

/// An error of a raster with this name.
pub(crate) fn raster_error(name: &str, what: &str) -> Error {
    Error::option("rasters", format!("rasters: {name}: {what}"))
}

/// Checks the names of rasters.
///
/// # Errors
/// A name that is no word, occurs twice, or belongs to the option `masks`.
pub(crate) fn check_raster_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
    for (number, name) in names.clone().enumerate() {
        if !is_raster_name(name) {
            return Err(raster_error(
                name,
                "a name has letters, digits and _ only, 64 at most, such as right or depth_2",
            ));
        }
        if name == MASKS {
            return Err(raster_error(
                name,
                "this name belongs to the option `masks`: use another name",
            ));
        }
        if names.clone().take(number).any(|other| other == name) {
            return Err(raster_error(
                name,
                "two rasters have this name: use two names",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
