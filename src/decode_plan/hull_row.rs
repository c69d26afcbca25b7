//! The row that a worker writes for a device which makes several crops of a sample: the decoded
//! hull, and for each crop its window in it, the coefficients of its resize, and its steps.
//!
//! ```text
//! header of each crop | tables of each crop | RGB: the hull, or each crop after its resize
//!                                           from a multiple of 64
//! ```
//!
//! A worker writes it and the consumer reads it. Workers decode untrusted files and may write
//! anything. So the consumer checks every number of a header before it uses it.

use bytemuck::{Pod, Zeroable};

use crate::decode_plan::crop_geometry::CropGeometry;
use crate::recipe::{HullCropRoom, HullRule, MAX_BLUR_RADIUS, MAX_LEVEL_STEPS, PixelPlacement};

/// Flag: the stored pixels are mirrored left to right.
pub(crate) const HULL_FLIP_X: u32 = 1;
/// Flag: the stored pixels are mirrored top to bottom.
pub(crate) const HULL_FLIP_Y: u32 = 2;
/// Flag: rows become columns, before any mirroring.
pub(crate) const HULL_TRANSPOSE: u32 = 4;
/// Flag: the resize begins with its pass down.
pub(crate) const HULL_DOWN_FIRST: u32 = 8;

/// Weights of a Gaussian blur on each axis, at the beginning of a crop's tables.
pub(crate) const HULL_BLUR_WEIGHTS: usize = MAX_BLUR_RADIUS as usize + 1;
/// Their bytes.
pub(crate) const HULL_WEIGHT_BYTES: usize = 2 * HULL_BLUR_WEIGHTS * size_of::<f32>();

/// Passes of a resize read at most this many times the lines of their result.
const MOST_LINES: u64 = 4;
/// Sections begin at multiples of this.
const HULL_ALIGNMENT: usize = 64;
/// The most fractional bits of coefficients.
const MOST_PRECISION: u32 = 22;
/// The most pixels at each side of a box: a little more than the largest radius of a recipe.
const MOST_BOX: u32 = 4096;

/// A step on the bytes of a crop: its number in the kernel, and three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct LevelStep {
    pub(crate) kind: u32,
    pub(crate) numbers: [u32; 3],
}

/// The kinds of steps, with their numbers in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum LevelKind {
    Brightness = 1,
    Contrast,
    Saturation,
    Hue,
    Grayscale,
    Luma,
    PillowBrightness,
    PillowContrast,
    PillowColor,
    PillowHue,
    Solarize,
    Posterize,
    BoxBlur,
    BoxBlurDown,
    GaussianBlur,
    Permute,
}

impl LevelKind {
    pub(crate) const ALL: [Self; 16] = [
        Self::Brightness,
        Self::Contrast,
        Self::Saturation,
        Self::Hue,
        Self::Grayscale,
        Self::Luma,
        Self::PillowBrightness,
        Self::PillowContrast,
        Self::PillowColor,
        Self::PillowHue,
        Self::Solarize,
        Self::Posterize,
        Self::BoxBlur,
        Self::BoxBlurDown,
        Self::GaussianBlur,
        Self::Permute,
    ];

    pub(crate) fn step(self, numbers: [u32; 3]) -> LevelStep {
        LevelStep {
            kind: self as u32,
            numbers,
        }
    }

    /// A step of floats.
    pub(crate) fn step_of(self, numbers: [f32; 2]) -> LevelStep {
        let [a, b] = numbers.map(f32::to_bits);
        self.step([a, b, 0])
    }
}

impl LevelStep {
    /// Whether the kernel has the step, and its numbers end every loop. `has_float_sums`: whether
    /// the kernel has memory for floats.
    fn is_known(&self, has_float_sums: bool) -> bool {
        let [a, b, c] = self.numbers;
        let finite = |bits: u32| f32::from_bits(bits).is_finite();
        let kind = LevelKind::ALL.into_iter().find(|k| *k as u32 == self.kind);
        match kind {
            None => false,
            Some(
                LevelKind::Brightness
                | LevelKind::Contrast
                | LevelKind::Saturation
                | LevelKind::Hue
                | LevelKind::PillowBrightness
                | LevelKind::PillowContrast
                | LevelKind::PillowColor,
            ) => finite(a) && finite(b),
            Some(LevelKind::BoxBlur | LevelKind::BoxBlurDown) => a <= MOST_BOX,
            Some(LevelKind::GaussianBlur) => {
                has_float_sums && a <= MAX_BLUR_RADIUS && b <= MAX_BLUR_RADIUS
            }
            Some(LevelKind::Permute) => a < 3 && b < 3 && c < 3,
            Some(
                LevelKind::Grayscale
                | LevelKind::Luma
                | LevelKind::PillowHue
                | LevelKind::Solarize
                | LevelKind::Posterize,
            ) => true,
        }
    }
}

/// The header of one crop, in native byte order.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct HullCropHeader {
    /// First byte of its window, from the first byte of the row's pixels.
    pub(crate) pixels: u32,
    /// Bytes from a line to the next.
    pub(crate) line: u32,
    /// Size of the window.
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Size of the crop, in stored orientation.
    pub(crate) out_width: u32,
    pub(crate) out_height: u32,
    /// Coefficients of each output pixel, padded with zeros.
    pub(crate) across_taps: u32,
    pub(crate) down_taps: u32,
    /// Fractional bits of the coefficients.
    pub(crate) across_precision: u32,
    pub(crate) down_precision: u32,
    /// Orientation of the pixels, and the order of the passes.
    pub(crate) flags: u32,
    /// Number of used entries of `step`.
    pub(crate) steps: u32,
    pub(crate) geometry: CropGeometry,
    pub(crate) reserved: [u32; 12],
    pub(crate) step: [LevelStep; MAX_LEVEL_STEPS],
}

/// Bytes of a crop's header.
pub(crate) const HULL_HEADER: usize = size_of::<HullCropHeader>();

impl HullRule {
    /// Number of crops of a sample.
    pub(crate) fn count(&self) -> usize {
        self.crops.len()
    }

    /// First byte of a crop's header in the row.
    pub(crate) fn header_at(&self, crop: usize) -> usize {
        crop * HULL_HEADER
    }

    /// First byte of a crop's geometry in the row.
    pub(crate) fn geometry_at(&self, crop: usize) -> usize {
        self.header_at(crop) + std::mem::offset_of!(HullCropHeader, geometry)
    }

    /// First byte of a crop's tables in the row.
    pub(crate) fn tables_at(&self, crop: usize) -> usize {
        let before = self.crops[..crop].iter().map(HullCropRoom::table_bytes);
        self.count() * HULL_HEADER + before.sum::<usize>()
    }

    /// First byte of the pixels in the row.
    pub(crate) fn pixels_at(&self) -> usize {
        self.tables_at(self.count())
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        (self.pixels_at() + self.pixels).next_multiple_of(HULL_ALIGNMENT)
    }

    /// Bytes of memory between the passes of a resize or a blur, for any crop.
    pub(crate) fn between_bytes(&self) -> usize {
        let sums = |crop: &HullCropRoom| match self.has_float_sums {
            true => size_of::<f32>() * crop.rgb_bytes(),
            false => 0,
        };
        let of = |crop: &HullCropRoom| (crop.most_between() as usize).max(sums(crop));
        let most = self.crops.iter().map(of).max().unwrap_or(0);
        most.next_multiple_of(HULL_ALIGNMENT)
    }

    /// The most bytes of the tables that a worker keeps while it writes a row: those of one crop, on
    /// both axes, as exact and as fixed-point numbers.
    pub(crate) fn worker_bytes(&self) -> u64 {
        let axis = |crop: &HullCropRoom| {
            let outputs = u64::from(crop.height.max(crop.width));
            let weights = outputs * crop.most_window() as u64;
            // Starts and sizes of both; weights, and one more row of them; coefficients, twice.
            16 * outputs + 8 * (weights + crop.most_window() as u64) + 8 * weights
        };
        2 * self.crops.iter().map(axis).max().unwrap_or(0)
    }

    /// Bytes of the largest crop in RGB.
    pub(crate) fn made_bytes(&self) -> usize {
        let most = self.crops.iter().map(HullCropRoom::rgb_bytes).max();
        most.unwrap_or(0).next_multiple_of(HULL_ALIGNMENT)
    }
}

impl HullCropRoom {
    /// Bytes of its tables, a multiple of 64.
    pub(crate) fn table_bytes(&self) -> usize {
        let outputs = self.height as usize + self.width as usize;
        let axes = outputs * (size_of::<u32>() + size_of::<i32>() * self.taps as usize);
        (HULL_WEIGHT_BYTES + axes).next_multiple_of(HULL_ALIGNMENT)
    }

    /// The most weights of an output pixel for which tables are made. Most of them are trimmed.
    pub(crate) fn most_window(&self) -> usize {
        2 * self.taps as usize + 16
    }

    /// The most bytes between two passes.
    fn most_between(&self) -> u64 {
        let (h, w) = (u64::from(self.height), u64::from(self.width));
        let most = |lines: u64, across: u64| 3 * across * (MOST_LINES * lines + 16);
        most(h, w).max(most(w, h))
    }
}

impl HullCropHeader {
    pub(crate) fn placement(&self) -> PixelPlacement {
        PixelPlacement {
            flip_x: self.flags & HULL_FLIP_X != 0,
            flip_y: self.flags & HULL_FLIP_Y != 0,
            transpose: self.flags & HULL_TRANSPOSE != 0,
        }
    }

    pub(crate) fn flags_of(placement: PixelPlacement) -> u32 {
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        flag(placement.flip_x, HULL_FLIP_X)
            | flag(placement.flip_y, HULL_FLIP_Y)
            | flag(placement.transpose, HULL_TRANSPOSE)
    }

    /// Whether the coefficients and what lies between the passes have room.
    pub(crate) fn fits(&self, room: &HullCropRoom) -> bool {
        let between = match self.flags & HULL_DOWN_FIRST {
            0 => u64::from(self.out_width) * u64::from(self.height),
            _ => u64::from(self.out_height) * u64::from(self.width),
        };
        self.across_taps <= room.taps
            && self.down_taps <= room.taps
            && between.saturating_mul(3) <= room.most_between()
    }

    /// Offset after the last byte of its window, in the row's pixels.
    pub(crate) fn pixels_end(&self) -> u64 {
        let lines = u64::from(self.height).saturating_sub(1) * u64::from(self.line);
        u64::from(self.pixels) + lines + 3 * u64::from(self.width)
    }

    /// Reads and checks the header of crop number `crop` of a row. All data that it describes lie
    /// in the row.
    ///
    /// # Errors
    /// The first wrong field of a malformed header.
    pub(crate) fn read(headers: &[u8], rule: &HullRule, crop: usize) -> Result<Self, String> {
        let at = rule.header_at(crop);
        let bytes = headers.get(at..at + HULL_HEADER);
        let header: Self = bytemuck::pod_read_unaligned(bytes.ok_or("the row has no header")?);
        let room = rule.crops.get(crop).ok_or("the row has no such crop")?;
        let fault = |what: &str| Err(format!("crop {crop}: {what}"));
        let sizes = [
            header.width,
            header.height,
            header.across_taps,
            header.down_taps,
        ];
        if sizes.contains(&0) || !header.fits(room) {
            return fault("its tables or its passes have no room");
        }
        if header.across_precision.max(header.down_precision) > MOST_PRECISION {
            return fault("its coefficients have too many fractional bits");
        }
        let inside = u64::from(header.line) >= 3 * u64::from(header.width)
            && header.pixels_end() <= rule.pixels as u64;
        if !inside {
            return fault("its window is outside of the row");
        }
        let (out_width, out_height) = (header.out_width as usize, header.out_height as usize);
        let shown = header.placement().output_size(out_width, out_height);
        let known_flags = header.flags < 2 * HULL_DOWN_FIRST;
        if !known_flags || shown != (room.width as usize, room.height as usize) {
            return fault("its pixels do not have the size of the crop");
        }
        let steps = header.step.get(..header.steps as usize);
        let known = |step: &LevelStep| step.is_known(rule.has_float_sums);
        if !steps.is_some_and(|steps| steps.iter().all(known)) {
            return fault("its steps are too many, or include an unknown one");
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> HullRule {
        HullRule {
            crops: vec![
                HullCropRoom {
                    height: 9,
                    width: 9,
                    taps: 4,
                },
                HullCropRoom {
                    height: 4,
                    width: 6,
                    taps: 10,
                },
            ],
            pixels: 3 * 20 * 30,
            has_float_sums: false,
        }
    }

    fn header() -> HullCropHeader {
        HullCropHeader {
            pixels: 3 * 30 * 2,
            line: 3 * 30,
            width: 10,
            height: 8,
            out_width: 4,
            out_height: 6,
            across_taps: 3,
            down_taps: 10,
            across_precision: 14,
            down_precision: 22,
            flags: HULL_TRANSPOSE | HULL_FLIP_X,
            steps: 1,
            ..HullCropHeader::default()
        }
    }

    fn read(change: impl Fn(&mut HullCropHeader)) -> Result<HullCropHeader, String> {
        let mut header = header();
        header.step[0] = LevelKind::Hue.step_of([0.25, 0.0]);
        change(&mut header);
        let headers = [HullCropHeader::default(), header];
        HullCropHeader::read(bytemuck::cast_slice(&headers), &rule(), 1)
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_doubted() {
        assert_eq!(read(|_| ()).unwrap().pixels, 180);
        type Change = fn(&mut HullCropHeader);
        let wrong: [(&str, Change); 20] = [
            ("no room", |h| h.width = 0),
            ("no room", |h| h.height = 0),
            ("no room", |h| h.across_taps = 0),
            ("no room", |h| h.down_taps = 11),
            ("no room", |h| h.height = 4000),
            ("no room", |h| {
                (h.flags, h.width) = (h.flags | HULL_DOWN_FIRST, 4000);
            }),
            ("fractional", |h| h.across_precision = 23),
            ("fractional", |h| h.down_precision = u32::MAX),
            ("outside", |h| h.line = 29),
            ("outside", |h| h.pixels = u32::MAX),
            ("outside", |h| h.pixels = 3 * 30 * 12 + 61),
            ("outside", |h| h.line = u32::MAX),
            ("size", |h| h.flags = 0),
            ("size", |h| h.flags |= 16),
            ("size", |h| h.out_width = 5),
            ("steps", |h| h.steps = 17),
            ("steps", |h| h.step[0].kind = 0),
            ("steps", |h| h.step[0].kind = 17),
            ("steps", |h| {
                h.step[0] = LevelKind::PillowColor.step_of([f32::NAN, 0.0]);
            }),
            ("steps", |h| {
                h.step[0] = LevelKind::GaussianBlur.step([1, 1, 0]);
            }),
        ];
        for (why, change) in wrong {
            let said = read(change).unwrap_err();
            assert!(said.contains(why), "{why}: {said}");
        }
        assert!(HullCropHeader::read(&[0; 100], &rule(), 0).is_err());
        let last = |h: &mut HullCropHeader| h.pixels = 3 * 30 * 12 + 60;
        assert!(read(last).is_ok());
    }

    #[test]
    fn sections_of_a_row_are_apart() {
        let rule = rule();
        assert_eq!(rule.tables_at(0), 2 * HULL_HEADER);
        let first = rule.crops[0].table_bytes();
        assert!(first >= HULL_WEIGHT_BYTES + 18 * 12 && first.is_multiple_of(64));
        assert_eq!(rule.tables_at(1), 2 * HULL_HEADER + first);
        assert_eq!(
            rule.pixels_at(),
            rule.tables_at(1) + rule.crops[1].table_bytes()
        );
        assert!(rule.row_bytes() >= rule.pixels_at() + rule.pixels);
        assert!(rule.between_bytes() >= 3 * 9 * 9 && rule.made_bytes() >= 3 * 9 * 9);
        let floats = HullRule {
            has_float_sums: true,
            ..rule
        };
        assert!(floats.between_bytes() >= 4 * floats.made_bytes() - 4 * 64);
    }
}
