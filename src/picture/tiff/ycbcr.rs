//! Converts luma and chroma to red, green and blue, as libtiff does.
//!
//! Pure, in fixed point of 16 bits.

use super::directory::{TiffDirectory, tag};
use super::fault::{corrupt, unsupported};
use crate::error::SampleFault;
use crate::picture::reader::PictureReader;

/// The definition of a picture's luma and chroma.
pub(super) struct YCbCr {
    /// Pixels for each value of chroma, across and down.
    pub(super) subsampling: (u16, u16),
    /// The file states how chroma is subsampled.
    pub(super) is_said: bool,
    luma: [f32; 3],
    /// Black and white of luma and of both chromas.
    range: [f32; 6],
}

impl YCbCr {
    pub(super) fn read(
        directory: &TiffDirectory,
        file: &mut PictureReader<'_>,
    ) -> Result<Self, SampleFault> {
        let said = directory.numbers(file, tag::SUBSAMPLING)?;
        let subsampling = match said.as_deref() {
            None => (2, 2),
            Some(&[h @ (1 | 2 | 4), v @ (1 | 2 | 4)]) => (h as u16, v as u16),
            Some(other) => return Err(unsupported(format!("chroma subsampled by {other:?}"))),
        };
        let luma = directory.fractions(file, tag::COEFFICIENTS);
        let range = directory.fractions(file, tag::BLACK_WHITE);
        let is_sane = |values: &[f32]| values.iter().all(|v| v.is_finite());
        Ok(Self {
            subsampling,
            is_said: said.is_some(),
            luma: luma
                .filter(|luma| is_sane(luma))
                .and_then(|luma| <[f32; 3]>::try_from(luma).ok())
                .filter(|luma| luma[1] != 0.0)
                .unwrap_or([0.299, 0.587, 0.114]),
            range: range
                .filter(|range| is_sane(range))
                .and_then(|range| <[f32; 6]>::try_from(range).ok())
                .unwrap_or([0.0, 255.0, 128.0, 255.0, 128.0, 255.0]),
        })
    }

    /// The contribution of each level of a sample.
    pub(super) fn tables(&self) -> Result<YCbCrTables, SampleFault> {
        let [red, green, blue] = self.luma;
        let fixed = |v: f32| (v * 65536.0 + 0.5) as i32;
        let (d1, d3) = (2.0 - 2.0 * red, 2.0 - 2.0 * blue);
        let (d2, d4) = (d1 * red / green, d3 * blue / green);
        let (d1, d2, d3, d4) = (fixed(d1), -fixed(d2), fixed(d3), -fixed(d4));
        if [d1, d2, d3, d4].iter().any(|d| d.abs() > 1 << 20) {
            return Err(corrupt(format!("luma of {:?}", self.luma)));
        }
        let value = |code: i32, black: f32, white: f32, range: f32| {
            let span = if white == black { 1.0 } else { white - black };
            let v = (code as f32 - black) * range / span;
            v.clamp(-1024.0, 1024.0) as i32
        };
        let [y0, y1, b0, b1, r0, r1] = self.range;
        let mut tables = YCbCrTables::default();
        for i in 0..256usize {
            let code = i as i32;
            let cr = value(code - 128, r0 - 128.0, r1 - 128.0, 127.0);
            let cb = value(code - 128, b0 - 128.0, b1 - 128.0, 127.0);
            tables.red[i] = (d1 * cr + 32768) >> 16;
            tables.blue[i] = (d3 * cb + 32768) >> 16;
            tables.green_of_red[i] = d2 * cr;
            tables.green_of_blue[i] = d4 * cb + 32768;
            tables.luma[i] = value(code, y0, y1, 255.0);
        }
        Ok(tables)
    }
}

pub(super) struct YCbCrTables {
    red: [i32; 256],
    blue: [i32; 256],
    green_of_red: [i32; 256],
    green_of_blue: [i32; 256],
    luma: [i32; 256],
}

impl Default for YCbCrTables {
    fn default() -> Self {
        Self {
            red: [0; 256],
            blue: [0; 256],
            green_of_red: [0; 256],
            green_of_blue: [0; 256],
            luma: [0; 256],
        }
    }
}

impl YCbCrTables {
    pub(super) fn rgb(&self, y: u8, cb: u8, cr: u8) -> [u8; 3] {
        let (cb, cr) = (usize::from(cb), usize::from(cr));
        let y = self.luma[usize::from(y)];
        let green = (self.green_of_blue[cb] + self.green_of_red[cr]) >> 16;
        [y + self.red[cr], y + green, y + self.blue[cb]].map(|v| v.clamp(0, 255) as u8)
    }
}
