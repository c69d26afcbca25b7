//! The row that a worker writes for a device. It holds a decoded crop, from which the device makes
//! a row of the batch.
//!
//! ```text
//! header 128 bytes | weights across, weights down | RGB, tight
//!                                                 from a multiple of 64
//! ```
//!
//! If the device decodes the sample, the coded crop replaces the pixels. The JPEG kernels then make
//! the row (`picture/jpeg/decode/gpu_rows`).
//!
//! A worker writes it and the consumer reads it. Workers decode untrusted files and may write
//! anything. So the consumer checks every number of a header before it uses it.

use bytemuck::{Pod, Zeroable};

use crate::recipe::{ColorSpace, CropRowBytes, PixelPlacement, Step, WhitePoint};

/// The largest number of colour steps of a row.
pub(crate) const MAX_CROP_STEPS: usize = crate::recipe::MAX_COLOR_STEPS;

/// Flag: the stored pixels are mirrored left to right.
pub(crate) const FLIP_X: u32 = 1;
/// Flag: the stored pixels are mirrored top to bottom.
pub(crate) const FLIP_Y: u32 = 2;
/// Flag: rows become columns, before any mirroring.
pub(crate) const TRANSPOSE: u32 = 4;

/// Kind of the step that uses the mean grey of the row before it.
const CONTRAST: u32 = 9;

/// A colour step: its number in the kernel ([`CropStep::of`]), and its amount.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct CropStep {
    pub(crate) kind: u32,
    pub(crate) amount: f32,
}

impl CropStep {
    /// The colour step for `step`. `None` if the device has no such step.
    pub(crate) fn of(step: &Step) -> Option<Self> {
        let (kind, amount) = match *step {
            Step::Brightness(factor) => (1, factor),
            Step::Saturation(factor) => (2, factor),
            Step::Hue(by) => (3, by),
            Step::Grayscale => (4, 0.0),
            Step::Convert(ColorSpace::Lab, WhitePoint::D65) => (5, 0.0),
            Step::Convert(ColorSpace::Lab, WhitePoint::D50) => (6, 0.0),
            Step::Convert(ColorSpace::Hsv, _) => (7, 0.0),
            Step::Convert(ColorSpace::Ycbcr, _) => (8, 0.0),
            Step::Contrast(factor) => (CONTRAST, factor),
            _ => return None,
        };
        Some(Self { kind, amount })
    }

    /// The same step for float pixels on the CPU.
    pub(crate) fn step(self) -> Option<Step> {
        Some(match self.kind {
            1 => Step::Brightness(self.amount),
            2 => Step::Saturation(self.amount),
            3 => Step::Hue(self.amount),
            4 => Step::Grayscale,
            5 => Step::Convert(ColorSpace::Lab, WhitePoint::D65),
            6 => Step::Convert(ColorSpace::Lab, WhitePoint::D50),
            7 => Step::Convert(ColorSpace::Hsv, WhitePoint::D65),
            8 => Step::Convert(ColorSpace::Ycbcr, WhitePoint::D65),
            CONTRAST => Step::Contrast(self.amount),
            _ => return None,
        })
    }

    /// True if the step needs the mean of the whole row. The device then reads the pixels twice.
    pub(crate) fn takes_mean(&self) -> bool {
        self.kind == CONTRAST
    }
}

/// The header of a crop's row, in native byte order.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct CropHeader {
    /// Width of the crop, in pixels.
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Weights of each output pixel, padded with zeros.
    pub(crate) across_taps: u32,
    pub(crate) down_taps: u32,
    /// Width of the row's pixels, in stored orientation.
    pub(crate) out_width: u32,
    pub(crate) out_height: u32,
    /// Orientation of the pixels: [`FLIP_X`], [`FLIP_Y`] and [`TRANSPOSE`].
    pub(crate) flags: u32,
    /// Number of used entries of `step`.
    pub(crate) steps: u32,
    pub(crate) step: [CropStep; MAX_CROP_STEPS],
    /// Bytes of the coded crop that replaces the pixels. 0 if the row holds pixels.
    pub(crate) coded: u32,
    pub(crate) reserved: [u32; 7],
}

/// What a row may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowContents {
    /// Only pixels.
    Pixels,
    /// Pixels or a coded crop.
    Coded,
}

/// Bytes before the weights.
pub(crate) const CROP_HEADER: usize = size_of::<CropHeader>();

/// Byte range of [`CropHeader::coded`] in the header.
pub(crate) const CROP_HEADER_CODED: std::ops::Range<usize> = {
    let at = std::mem::offset_of!(CropHeader, coded);
    at..at + size_of::<u32>()
};

impl CropRowBytes {
    /// First byte of the pixels in the row.
    pub(crate) fn pixels_at(self) -> usize {
        (CROP_HEADER + self.tables).next_multiple_of(64)
    }

    /// End of the pixels in the row, in bytes, when all room is used.
    pub(crate) fn pixels_end(self) -> usize {
        (self.pixels_at() + self.pixels).next_multiple_of(64)
    }

    /// Bytes of a row, a multiple of 64: the kernel reads whole vectors.
    pub(crate) fn row_bytes(self) -> usize {
        (self.pixels_at() + self.coded).next_multiple_of(64)
    }
}

impl CropHeader {
    /// Bytes of the weights of both axes.
    pub(crate) fn table_bytes(&self) -> u64 {
        let of = |pixels: u32, taps: u32| u64::from(pixels).saturating_mul(4 + 4 * u64::from(taps));
        let (across, down) = (
            of(self.out_width, self.across_taps),
            of(self.out_height, self.down_taps),
        );
        across.saturating_add(down)
    }

    /// Bytes of the pixels, or of the coded crop that replaces them.
    pub(crate) fn payload_bytes(&self) -> u64 {
        match self.coded {
            0 => (3 * u64::from(self.width)).saturating_mul(u64::from(self.height)),
            coded => u64::from(coded),
        }
    }

    /// True if the weights and the pixels or coded crop fit into `room`.
    pub(crate) fn fits(&self, room: CropRowBytes) -> bool {
        let held = match self.coded {
            0 => room.pixels,
            _ => room.coded,
        };
        self.table_bytes() <= room.tables as u64 && self.payload_bytes() <= held as u64
    }

    pub(crate) fn flags(placement: PixelPlacement) -> u32 {
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        flag(placement.flip_x, FLIP_X)
            | flag(placement.flip_y, FLIP_Y)
            | flag(placement.transpose, TRANSPOSE)
    }

    pub(crate) fn placement(&self) -> PixelPlacement {
        PixelPlacement {
            flip_x: self.flags & FLIP_X != 0,
            flip_y: self.flags & FLIP_Y != 0,
            transpose: self.flags & TRANSPOSE != 0,
        }
    }

    /// Reads and checks the header of a row with this room. All data that it describes lie in the
    /// row. Its output has this height and width.
    ///
    /// # Errors
    /// The first wrong field of a malformed header.
    pub(crate) fn read(
        row: &[u8],
        room: CropRowBytes,
        (height, width): (u32, u32),
        takes: RowContents,
    ) -> Result<Self, String> {
        let bytes = row.get(..CROP_HEADER).ok_or("the row has no header")?;
        let header: Self = bytemuck::pod_read_unaligned(bytes);
        let Self {
            out_width,
            out_height,
            ..
        } = header;
        let nothing = [
            header.width,
            header.height,
            header.across_taps,
            header.down_taps,
        ]
        .contains(&0);
        if nothing || !header.fits(room) {
            return Err(format!(
                "{} x {} pixels and {} bytes of weights do not fit into the row",
                header.height,
                header.width,
                header.table_bytes()
            ));
        }
        if header.coded != 0 && takes == RowContents::Pixels {
            return Err(format!(
                "the row has a coded crop of {} bytes, but workers decode in this run",
                header.coded
            ));
        }
        let shown = header
            .placement()
            .output_size(out_width as usize, out_height as usize);
        if shown != (width as usize, height as usize) || header.flags >= 2 * TRANSPOSE {
            return Err(format!(
                "{out_height} x {out_width} pixels with flags {} do not make a row of {height} x \
                 {width}",
                header.flags
            ));
        }
        let steps = header.step.get(..header.steps as usize);
        let known = |s: &CropStep| s.amount.is_finite() && s.step().is_some();
        let Some(steps) = steps.filter(|steps| steps.iter().all(known)) else {
            return Err(format!(
                "{} colour steps are too many, or include an unknown one",
                header.steps
            ));
        };
        let means = steps.iter().filter(|s| s.takes_mean()).count();
        if means > 1 {
            return Err(format!("{means} steps take a mean: at most one may"));
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> CropHeader {
        CropHeader {
            width: 10,
            height: 8,
            across_taps: 3,
            down_taps: 5,
            out_width: 6,
            out_height: 4,
            flags: TRANSPOSE,
            steps: 1,
            ..CropHeader::default()
        }
    }

    const ROOM: CropRowBytes = CropRowBytes {
        tables: 4 * (6 * 4 + 4 * 6),
        pixels: 3 * 10 * 8,
        coded: 3 * 10 * 8,
    };

    fn read(change: impl Fn(&mut CropHeader)) -> Result<CropHeader, String> {
        let mut header = header();
        header.step[0] = CropStep::of(&Step::Hue(0.25)).unwrap();
        change(&mut header);
        let row = bytemuck::bytes_of(&header);
        CropHeader::read(row, ROOM, (6, 4), RowContents::Pixels)
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_doubted() {
        assert_eq!(read(|_| ()).unwrap().step[0].step(), Some(Step::Hue(0.25)));
        type Change = fn(&mut CropHeader);
        let wrong: [(&str, Change); 15] = [
            ("do not fit", |h| h.width = 11),
            ("do not fit", |h| h.height = 9),
            ("do not fit", |h| h.width = 0),
            ("do not fit", |h| (h.width, h.height) = (u32::MAX, u32::MAX)),
            ("do not fit", |h| h.across_taps = 4),
            ("do not fit", |h| h.across_taps = 0),
            ("do not fit", |h| h.down_taps = 0),
            ("do not fit", |h| h.down_taps = u32::MAX),
            ("do not make a row", |h| h.flags = 0),
            ("do not make a row", |h| h.flags |= 8),
            ("do not make a row", |h| h.out_width = 5),
            ("unknown", |h| h.steps = 9),
            ("unknown", |h| h.step[0].kind = 999),
            ("2 steps take a mean", |h| {
                h.steps = 3;
                h.step[1..3].fill(CropStep::of(&Step::Contrast(2.0)).unwrap());
            }),
            ("unknown", |h| h.step[0].amount = f32::NAN),
        ];
        for (why, change) in wrong {
            let said = read(change).unwrap_err();
            assert!(said.contains(why), "{why}: {said}");
        }
        assert!(CropHeader::read(&[0; 100], ROOM, (6, 4), RowContents::Pixels).is_err());
    }

    #[test]
    fn a_coded_crop_is_read_where_a_device_takes_it() {
        let read = |takes, change: &dyn Fn(&mut CropHeader)| {
            let mut header = CropHeader {
                coded: 240,
                ..header()
            };
            change(&mut header);
            let mut row = vec![0; ROOM.row_bytes()];
            row[..CROP_HEADER].copy_from_slice(bytemuck::bytes_of(&header));
            let coded = row[CROP_HEADER_CODED].try_into().unwrap();
            assert_eq!(u32::from_ne_bytes(coded), header.coded);
            CropHeader::read(&row, ROOM, (6, 4), takes)
        };
        let no_step = |h: &mut CropHeader| h.steps = 0;
        assert_eq!(read(RowContents::Coded, &no_step).unwrap().coded, 240);
        let said = read(RowContents::Pixels, &no_step).unwrap_err();
        assert!(said.contains("workers decode"), "{said}");
        // A coded crop may have more pixels than the row has room for: the row never holds them.
        let large = |h: &mut CropHeader| (h.steps, h.width) = (0, 100);
        assert!(read(RowContents::Coded, &large).is_ok());
        type Change = fn(&mut CropHeader);
        let wrong: [(&str, Change); 4] = [
            ("do not fit", |h| h.coded = 241),
            ("do not fit", |h| h.coded = u32::MAX),
            ("do not fit", |h| h.width = 0),
            ("do not fit", |h| h.down_taps = 6),
        ];
        for (why, change) in wrong {
            let said = read(RowContents::Coded, &change).unwrap_err();
            assert!(said.contains(why), "{why}: {said}");
        }
    }

    #[test]
    fn steps_are_told_as_they_are() {
        let kinds: Vec<_> = (0..999)
            .filter_map(|kind| CropStep { kind, amount: 0.5 }.step())
            .collect();
        assert!(kinds.len() >= CONTRAST as usize);
        for (kind, step) in (1..).zip(&kinds) {
            assert_eq!(CropStep::of(step).unwrap().kind, kind);
        }
        assert_eq!(CropStep::of(&Step::Mirror), None);
    }
}
