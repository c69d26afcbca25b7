//! The types of parameters. Each reads the full form that it writes, and torchvision's short forms.

use std::fmt;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::suggestion::suggest_fix;

pub use crate::picture::{BackgroundColor, OrientationMode, TruncationPolicy};

/// How JPEG files are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecodeMode {
    /// Every pixel of the crop at full size.
    Full,
    /// At 1/2, 1/4 or 1/8 scale, if the antialiased resize after it shrinks both axes at least that
    /// much. Faster. Changes values a little.
    Scaled,
}

impl DecodeMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Scaled => "scaled",
        }
    }
}

/// The channels of a decoded image, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColorOrder {
    #[default]
    Rgb,
    /// As in OpenCV.
    Bgr,
    /// One channel: (19595 R + 38470 G + 7471 B + 32768) / 65536, as Pillow's `L`.
    Grey,
}

/// How values between pixels are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename = "interpolation", rename_all = "lowercase")]
pub enum InterpolationMode {
    /// The pixel whose area holds the centre of the output pixel (Pillow's
    /// `NEAREST`, torchvision's `NEAREST_EXACT`).
    Nearest,
    /// One pixel by the rule of a library. Only label images have it, and only their resizes: other
    /// moves take [`Self::Nearest`].
    #[serde(skip)]
    Labels(LabelFilter),
    /// Linear, with a triangle kernel.
    #[default]
    Bilinear,
    /// Cubic convolution: a = -0.5 with antialias, as Pillow; a = -0.75 without, as
    /// PyTorch and OpenCV.
    Bicubic,
    /// A windowed sinc with three lobes.
    Lanczos,
    /// The mean over the area of the output pixel (OpenCV's `INTER_AREA` when shrinking).
    Area,
    /// The resize of Pillow 13, byte by byte. Only steps of `cover_crop` have it.
    #[doc(hidden)]
    #[serde(skip)]
    Pillow(LibraryFilter),
    /// The resize with antialias that torchvision makes of tensors of bytes, byte by byte. Only
    /// steps of `patches` and `tiles` have it.
    #[doc(hidden)]
    #[serde(skip)]
    Torchvision(LibraryFilter),
}

/// Filters that libraries compute in their own ways. Not part of the API, so that recipes cannot
/// name a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LibraryFilter {
    Bilinear,
    Bicubic,
    Lanczos,
}

/// As it stands in recipes: without the rules of libraries.
impl Serialize for InterpolationMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (variant, name) = self.variant();
        serializer.serialize_unit_variant("interpolation", variant, name)
    }
}

impl LibraryFilter {
    /// The filter without the rules of a library.
    pub(super) fn interpolation(self) -> InterpolationMode {
        match self {
            Self::Bilinear => InterpolationMode::Bilinear,
            Self::Bicubic => InterpolationMode::Bicubic,
            Self::Lanczos => InterpolationMode::Lanczos,
        }
    }
}

impl InterpolationMode {
    /// The same, as Pillow resizes.
    pub(crate) fn of_pillow(self) -> Self {
        self.library_filter().map_or(self, Self::Pillow)
    }

    /// The same, as torchvision resizes a tensor.
    pub(crate) fn of_torchvision(self) -> Self {
        self.library_filter().map_or(self, Self::Torchvision)
    }

    fn library_filter(self) -> Option<LibraryFilter> {
        match self {
            Self::Bilinear => Some(LibraryFilter::Bilinear),
            Self::Bicubic => Some(LibraryFilter::Bicubic),
            Self::Lanczos => Some(LibraryFilter::Lanczos),
            _ => None,
        }
    }

    pub(crate) fn nearest() -> Self {
        Self::Nearest
    }

    pub fn name(self) -> &'static str {
        self.variant().1
    }

    /// The number of the variant that is deserialized, and its name in recipes.
    fn variant(self) -> (u32, &'static str) {
        match self {
            Self::Nearest | Self::Labels(_) => (0, "nearest"),
            Self::Bilinear => (1, "bilinear"),
            Self::Bicubic => (2, "bicubic"),
            Self::Lanczos => (3, "lanczos"),
            Self::Area => (4, "area"),
            Self::Pillow(filter) | Self::Torchvision(filter) => filter.interpolation().variant(),
        }
    }
}

/// Which label a resized pixel of a label image takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelFilter {
    /// The pixel at the start of its area, computed in `f32`: PyTorch's `nearest`, which
    /// torchvision takes for masks. As OpenCV's `INTER_NEAREST` and albumentations, except where
    /// rounding decides.
    #[default]
    Floor,
    /// The pixel whose area holds its centre, computed in `f32`: PyTorch's `nearest-exact`, which
    /// Hugging Face's fast processors take.
    Center,
    /// The pixel whose area holds its centre, by sums in `f64`: Pillow's `NEAREST`.
    Pillow,
}

/// How a fractional length is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LengthRounding {
    /// Truncated.
    Down,
    /// To the nearest whole number, ties to even.
    Nearest,
    /// To the next whole number.
    Up,
    /// As in the image processors of Hugging Face's DETR: truncated, and where the longer side is
    /// limited, the shorter one is rounded to the nearest. Only in a resize.
    Detr,
}

/// How an aspect ratio is drawn from its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AspectDistribution {
    /// Its logarithm is uniform, as in torchvision.
    Log,
    /// It is uniform itself.
    Uniform,
}

impl AspectDistribution {
    pub(crate) fn uniform() -> Self {
        Self::Uniform
    }
}

/// How transparent pixels are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlphaMode {
    /// Composited on the background.
    #[default]
    Composite,
    /// Alpha is dropped. Colours stay as stored.
    Drop,
}

/// Which library's arithmetic a colour jitter uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JitterStyle {
    /// torchvision's, on tensors.
    #[default]
    Tensor,
    /// Pillow's `ImageEnhance`, and hue in whole levels.
    Pillow,
}

/// Which library's arithmetic a rotation uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RotationStyle {
    /// torchvision's, on tensors: around the centre.
    #[default]
    Tensor,
    /// `warpAffine` of OpenCV 4 around (width / 2, height / 2), half a pixel right of and below the
    /// centre. Precision: 1/32 pixel. On `u8` levels equal bit by bit.
    Opencv,
}

/// Which library's arithmetic an affine transform uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AffineStyle {
    /// `Image.transform` of Pillow: the colour outside is not mixed with the edge.
    #[default]
    Pillow,
    /// Bilinear `warpAffine` of OpenCV 5, within 1 level: the colour outside is mixed with the edge.
    Opencv,
}

/// The target of [`ConvertColor`](super::ConvertColor). The source is always sRGB or grey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColorSpace {
    /// CIE L*a*b* 1976 of sRGB (IEC 61966-2-1): L 0 to 100, a and b about -128 to 127.
    Lab,
    /// Hue in degrees, [0, 360); saturation and value 0 to 1.
    Hsv,
    /// As in JPEG (BT.601, full range): Y 0 to 255; Cb and Cr 0 to 255, centred at 128.
    Ycbcr,
}

impl ColorSpace {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Hsv => "hsv",
            Self::Ycbcr => "ycbcr",
        }
    }
}

/// The white point of [`ColorSpace::Lab`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhitePoint {
    /// sRGB's own: X 0.95047, Y 1, Z 1.08883.
    #[default]
    D65,
    /// X 0.96422, Y 1, Z 0.82521, by Bradford's adaptation.
    D50,
}

/// The pixels of a border.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PaddingMode {
    #[default]
    Constant,
    /// Repeats the last pixel.
    Edge,
    /// Mirrors the image, without repeating the last pixel.
    Reflect,
}

/// Height and width in pixels. In a file also one number for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    pub height: u32,
    pub width: u32,
}

impl From<u32> for Size {
    fn from(side: u32) -> Self {
        Self {
            height: side,
            width: side,
        }
    }
}

impl From<(u32, u32)> for Size {
    fn from((height, width): (u32, u32)) -> Self {
        Self { height, width }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.width, self.height)
    }
}

/// The target size of a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResizeTo {
    /// A number: the length of the shorter side.
    Shorter(u32),
    /// `[height, width]`.
    Exact(Size),
}

/// Lowest and highest value of a uniform draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span(pub f64, pub f64);

/// Pixels to add at each side. In a file also one number, `[left and right, top and bottom]` or
/// `[left, top, right, bottom]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Padding {
    pub left: u32,
    pub top: u32,
    pub right: u32,
    pub bottom: u32,
}

impl From<u32> for Padding {
    fn from(n: u32) -> Self {
        Self {
            left: n,
            top: n,
            right: n,
            bottom: n,
        }
    }
}

/// Ranges of the shear angles of rows and columns, in degrees. In a file also a number d (rows -d
/// to d) or `[low, high]` (rows only).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shear {
    pub x: Span,
    pub y: Span,
}

/// No shear.
impl Default for Shear {
    fn default() -> Self {
        let none = Span(0.0, 0.0);
        Self { x: none, y: none }
    }
}

/// One value per channel. In a file also one value for all three.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerChannel(pub [f32; 3]);

/// 0.
impl Default for PerChannel {
    fn default() -> Self {
        Self([0.0; 3])
    }
}

impl From<f32> for PerChannel {
    fn from(v: f32) -> Self {
        Self([v; 3])
    }
}

impl From<[f32; 3]> for PerChannel {
    fn from(v: [f32; 3]) -> Self {
        Self(v)
    }
}

/// The content of an erased box, as a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EraseFill {
    /// One colour.
    Value(PerChannel),
    /// Drawn for each element: normal with mean 0 and deviation 1 after `normalize`, uniform levels
    /// before it. In a file `random`.
    Random,
}

impl Default for EraseFill {
    fn default() -> Self {
        Self::Value(PerChannel::default())
    }
}

/// The number of operations in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainDepth {
    /// 1 to 8.
    Fixed(u32),
    /// Drawn for each chain: 1, 2 or 3. In a file `random`.
    Random,
}

impl From<u32> for ChainDepth {
    fn from(depth: u32) -> Self {
        Self::Fixed(depth)
    }
}

/// A number, a list of numbers, or a word.
enum Short {
    Number(f64),
    List(Vec<f64>),
    Word(String),
}

struct ShortVisitor(&'static str);

impl<'de> Visitor<'de> for ShortVisitor {
    type Value = Short;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_i64<E>(self, v: i64) -> Result<Short, E> {
        Ok(Short::Number(v as f64))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Short, E> {
        Ok(Short::Number(v as f64))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Short, E> {
        Ok(Short::Number(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Short, E> {
        Ok(Short::Word(v.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Short, A::Error> {
        let mut list = Vec::new();
        while let Some(v) = seq.next_element()? {
            list.push(v);
        }
        Ok(Short::List(list))
    }
}

/// Reads a short form. `expected` completes the message "expected ...".
fn short<'de, D, T>(
    d: D,
    expected: &'static str,
    read: impl FnOnce(&Short) -> Option<T>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    let value = d.deserialize_any(ShortVisitor(expected))?;
    read(&value).ok_or_else(|| {
        let found = match value {
            Short::Number(v) => format!("the number {v}"),
            Short::List(v) => {
                let list: Vec<String> = v.iter().map(f64::to_string).collect();
                format!("[{}]", list.join(", "))
            }
            Short::Word(v) => format!("the text '{v}'{}", suggest_fix(expected, &v)),
        };
        D::Error::custom(format_args!("expected {expected}, found {found}"))
    })
}

/// Implements `Deserialize` with [`short`].
macro_rules! read_short {
    ($name:ident, $expected:expr, $read:expr) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                short(d, $expected, $read)
            }
        }
    };
}

/// A whole number of pixels.
fn pixels(v: f64) -> Option<u32> {
    (v.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&v)).then_some(v as u32)
}

fn size(list: &[f64]) -> Option<Size> {
    match *list {
        [h, w] => Some(Size {
            height: pixels(h)?,
            width: pixels(w)?,
        }),
        _ => None,
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        [self.height, self.width].serialize(s)
    }
}

read_short!(
    Size,
    "a number of pixels or [height, width]",
    |value| match value {
        Short::Number(n) => Some(Size::from(pixels(*n)?)),
        Short::List(l) => size(l),
        Short::Word(_) => None,
    }
);

impl Serialize for ResizeTo {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Shorter(n) => n.serialize(s),
            Self::Exact(size) => size.serialize(s),
        }
    }
}

read_short!(
    ResizeTo,
    "a number of pixels (of the shorter side) or [height, width]",
    |value| match value {
        Short::Number(n) => pixels(*n).map(ResizeTo::Shorter),
        Short::List(l) => size(l).map(ResizeTo::Exact),
        Short::Word(_) => None,
    }
);

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        [self.0, self.1].serialize(s)
    }
}

impl<'de> Deserialize<'de> for Span {
    /// `[low, high]`. A single number is both.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::read(d, "a number or [low, high]", |n| Self(n, n))
    }
}

impl Span {
    fn read<'de, D: Deserializer<'de>>(
        d: D,
        expected: &'static str,
        one: fn(f64) -> Self,
    ) -> Result<Self, D::Error> {
        short(d, expected, |value| match value {
            Short::Number(n) => Some(one(*n)),
            Short::List(l) => match **l {
                [low, high] => Some(Self(low, high)),
                _ => None,
            },
            Short::Word(_) => None,
        })
    }

    /// A number d means -d to d.
    pub(crate) fn around_zero<'de, D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::read(
            d,
            "a number d (for -d to d) or [low, high]",
            Self::about_zero,
        )
    }

    fn about_zero(n: f64) -> Self {
        // Avoids -0, which would print as -0.
        Self(if n == 0.0 { 0.0 } else { -n }, n)
    }

    /// A number b means max(0, 1 - b) to 1 + b.
    pub(crate) fn around_one<'de, D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::read(d, "a number b (for 1 - b to 1 + b) or [low, high]", |n| {
            // A negative b or NaN is kept, so that the check rejects it.
            if n >= 0.0 {
                Self((1.0 - n).max(0.0), 1.0 + n)
            } else {
                Self(n, n)
            }
        })
    }
}

impl Serialize for Shear {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        [self.x.0, self.x.1, self.y.0, self.y.1].serialize(s)
    }
}

read_short!(
    Shear,
    "a number d (for -d to d), [low, high] or [low, high, low, high]",
    |value| {
        let (x, y) = match value {
            Short::Number(n) => (Span::about_zero(*n), Shear::default().y),
            Short::List(l) => match **l {
                [low, high] => (Span(low, high), Shear::default().y),
                [low, high, y_low, y_high] => (Span(low, high), Span(y_low, y_high)),
                _ => return None,
            },
            Short::Word(_) => return None,
        };
        Some(Shear { x, y })
    }
);

/// One number for both axes, or `[along the width, along the height]`.
pub(crate) fn two<'de, D: Deserializer<'de>>(d: D) -> Result<[f64; 2], D::Error> {
    short(d, "a number or [x, y]", |value| match value {
        Short::Number(n) => Some([*n; 2]),
        Short::List(l) => match **l {
            [n] => Some([n; 2]),
            [x, y] => Some([x, y]),
            _ => None,
        },
        Short::Word(_) => None,
    })
}

impl Serialize for Padding {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        [self.left, self.top, self.right, self.bottom].serialize(s)
    }
}

read_short!(
    Padding,
    "a number of pixels, [left and right, top and bottom] or [left, top, \
                        right, bottom]",
    |value| {
        let list = match value {
            Short::Number(n) => &[*n][..],
            Short::List(l) => l,
            Short::Word(_) => return None,
        };
        let (left, top, right, bottom) = match *list {
            [n] => (n, n, n, n),
            [x, y] => (x, y, x, y),
            [l, t, r, b] => (l, t, r, b),
            _ => return None,
        };
        Some(Padding {
            left: pixels(left)?,
            top: pixels(top)?,
            right: pixels(right)?,
            bottom: pixels(bottom)?,
        })
    }
);

impl PerChannel {
    const EXPECTED: &'static str = "a number or a list of 1 or 3 numbers";

    fn read(value: &Short) -> Option<Self> {
        match value {
            Short::Number(n) => Some(Self([*n as f32; 3])),
            Short::List(l) => match **l {
                [v] => Some(Self([v as f32; 3])),
                [r, g, b] => Some(Self([r as f32, g as f32, b as f32])),
                _ => None,
            },
            Short::Word(_) => None,
        }
    }
}

impl Serialize for PerChannel {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // Writes the shortest digits that give the same f32.
        let [a, b, c] = self.0;
        if a.to_bits() == b.to_bits() && b.to_bits() == c.to_bits() {
            a.serialize(s)
        } else {
            self.0.serialize(s)
        }
    }
}

read_short!(PerChannel, PerChannel::EXPECTED, PerChannel::read);

impl Serialize for EraseFill {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(v) => v.serialize(s),
            Self::Random => "random".serialize(s),
        }
    }
}

read_short!(
    EraseFill,
    "'random', a number or a list of 1 or 3 numbers",
    |value| match value {
        Short::Word(w) if w == "random" => Some(EraseFill::Random),
        value => PerChannel::read(value).map(EraseFill::Value),
    }
);

impl Serialize for ChainDepth {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(depth) => depth.serialize(s),
            Self::Random => "random".serialize(s),
        }
    }
}

read_short!(
    ChainDepth,
    "'random' or a whole number",
    |value| match value {
        Short::Word(w) if w == "random" => Some(ChainDepth::Random),
        Short::Number(v) => pixels(*v).map(ChainDepth::Fixed),
        _ => None,
    }
);
