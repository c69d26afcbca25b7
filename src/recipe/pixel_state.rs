//! What is known of the pixels between two operations, for every image. The check of the next
//! operation reads it, and each operation updates it.

use super::patches::CutRule;
use super::ranges::{MAX_SIDE, finite};
use super::tensor::DataType;
use super::values::{ColorOrder, ColorSpace, Padding, Size};

/// The kind of numbers that the pixels hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// 0 to 255.
    Levels,
    /// As in `lab` or `hsv`.
    Color(ColorSpace),
    /// The result of `normalize`.
    Normalized,
}

/// What is known of the pixels between two operations, for every image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PixelState {
    pub(crate) values: ValueKind,
    /// True for red, green and blue, or values computed from them.
    pub(crate) is_rgb: bool,
    pub(crate) channels: u8,
    /// Blue is the first channel.
    pub(crate) bgr: bool,
    /// Stored in floats, whatever the values are.
    pub(crate) floats: bool,
    /// Height and width, if all images have the same size here.
    pub(crate) size: Option<(u32, u32)>,
    /// The smallest possible side. None: unknown.
    pub(crate) min_side: Option<u32>,
    /// An operation has changed the size of some images.
    pub(crate) resized: bool,
    /// Whether standardize has normalized the values.
    pub(crate) is_standardized: bool,
    /// If images become rows of patches or tiles.
    pub(crate) patches: Option<CutRule>,
}

/// The divisor of `normalize` for these values.
pub(crate) fn normalize_unit(values: ValueKind) -> f32 {
    match values {
        ValueKind::Levels => 255.0,
        ValueKind::Color(_) | ValueKind::Normalized => 1.0,
    }
}

impl PixelState {
    /// The state after decoding.
    pub(crate) fn after_decode(color: ColorOrder) -> Self {
        Self {
            values: ValueKind::Levels,
            is_rgb: true,
            channels: if color == ColorOrder::Grey { 1 } else { 3 },
            bgr: color == ColorOrder::Bgr,
            floats: false,
            size: None,
            min_side: None,
            resized: false,
            is_standardized: false,
            patches: None,
        }
    }

    /// Reorders a colour from the recipe's channel order to the order in memory.
    pub(crate) fn in_memory(&self, mut v: [f32; 3]) -> [f32; 3] {
        if self.bgr {
            v.reverse();
        }
        v
    }

    /// True if all three channels are equal.
    pub(crate) fn is_grey(&self) -> bool {
        self.channels == 1
    }

    /// Checks a colour: grey images need three equal values.
    pub(crate) fn check_color(&self, what: &str, v: [f32; 3]) -> Result<(), String> {
        finite(what, &v)?;
        if self.channels == 1 && !(v[0] == v[1] && v[1] == v[2]) {
            return Err(format!(
                "{what} has three values, and the images are grey: use one value"
            ));
        }
        Ok(())
    }

    /// Checks for RGB in bytes, which Pillow's arithmetic needs.
    pub(crate) fn check_rgb8(&self) -> Result<(), String> {
        let what = "works on 8-bit levels of red, green and blue";
        self.check_rgb_levels(what)?;
        let why = match (self.floats, self.channels, self.bgr) {
            (true, _, _) => "comes after a cast to floats: move it before the cast",
            (_, 1, _) => {
                "the images are grey: decode to rgb, and use num_output_channels: 3 in grayscale"
            }
            (_, _, true) => "blue is first: remove color: bgr of decode",
            _ => return Ok(()),
        };
        Err(format!("{what}, and {why}"))
    }

    /// Checks for levels in bytes, which Pillow's arithmetic on single channels needs.
    pub(crate) fn check_levels8(&self) -> Result<(), String> {
        let what = "works on 8-bit levels";
        self.check_rgb_levels(what)?;
        match self.floats {
            false => Ok(()),
            true => Err(format!(
                "{what}, and comes after a cast to floats: move it before the cast"
            )),
        }
    }

    pub(crate) fn check_rgb_levels(&self, what: &str) -> Result<(), String> {
        match (self.values, self.is_rgb) {
            (ValueKind::Levels, true) => Ok(()),
            (ValueKind::Normalized, _) => {
                let op = match self.is_standardized {
                    true => "standardize",
                    false => "normalize",
                };
                Err(format!("{what}, and comes after {op}: move it before {op}"))
            }
            _ => Err(format!(
                "{what}, and comes after convert_color: move it before convert_color"
            )),
        }
    }

    /// Applies a size change that grows with both sides.
    pub(crate) fn map_size(&mut self, of: impl Fn((u32, u32)) -> (u32, u32)) {
        let shorter = |(h, w): (u32, u32)| h.min(w);
        self.min_side = self.min_side.map(|side| shorter(of((side, side))));
        self.size = self.size.map(&of);
        self.min_side = self.size.map(shorter).or(self.min_side);
        self.resized = true;
    }

    pub(crate) fn set_size(&mut self, size: Size) {
        self.size = Some((size.height, size.width));
        self.min_side = Some(size.height.min(size.width));
        self.resized = true;
    }

    /// Images may have any size from here on.
    pub(crate) fn forget_size(&mut self) {
        self.size = None;
        self.min_side = None;
        self.resized = true;
    }

    pub(crate) fn add_padding(&mut self, p: Padding) -> Result<(), String> {
        let (x, y) = (p.left + p.right, p.top + p.bottom);
        self.size = self.size.map(|(h, w)| (h + y, w + x));
        let known = self.size.map(|(h, w)| h.min(w));
        self.min_side = known.or(self.min_side.map(|side| side + x.min(y)));
        match self.size {
            Some((h, w)) if h.max(w) > MAX_SIDE => Err(format!(
                "makes images of {w} x {h}, and a side has at most {MAX_SIDE} pixels: use less \
                 padding"
            )),
            _ => Ok(()),
        }
    }

    /// The smallest possible height and width. None: unknown.
    fn least(&self) -> Option<(u32, u32)> {
        self.size.or(self.min_side.map(|side| (side, side)))
    }

    /// Whether a crop of `size` fits into every image.
    pub(crate) fn always_fits(&self, size: Size) -> bool {
        self.least()
            .is_some_and(|(height, width)| size.height <= height && size.width <= width)
    }

    /// Checks that a crop of `size` fits, as far as the size is known.
    pub(crate) fn check_crop_fits(&self, size: Size, fix: &str) -> Result<(), String> {
        let Some((height, _)) = self.least().filter(|_| !self.always_fits(size)) else {
            // A too small image fails later, as a sample.
            return Ok(());
        };
        let what = match self.size {
            Some((h, w)) => format!("the image, which is {w} x {h} here"),
            None => format!("the shorter side of the image, which is {height} here"),
        };
        Err(format!("size {size} is larger than {what}: {fix}"))
    }
}

/// Checks that all pictures have one size and 8-bit levels, so that two of them can be joined.
pub(crate) fn check_one_size(known: &PixelState) -> Result<(), String> {
    known.check_rgb8()?;
    match known.size {
        Some(_) => Ok(()),
        None => Err(
            "needs pictures of one size: put a crop, a resize to [height, width], pad_to \
                     with a size or mosaic before it"
                .into(),
        ),
    }
}

impl ValueKind {
    /// Checks that this element type can hold the values.
    pub(crate) fn check_data_type(self, dtype: DataType) -> Result<(), String> {
        match (dtype, self) {
            (DataType::F16 | DataType::Bf16 | DataType::F32, _) | (DataType::U8, Self::Levels) => {
                Ok(())
            }
            (DataType::U8, Self::Normalized) => Err(format!(
                "u8 holds levels, and the pixels are normalized: remove normalize, or cast to \
                 one of {}",
                DataType::floats()
            )),
            (DataType::U8, Self::Color(space)) => Err(format!(
                "u8 cannot hold {}: cast to one of {}",
                space.name(),
                DataType::floats()
            )),
        }
    }
}
