//! Which part of a JPEG has to be decoded so that a wanted part comes out
//! exactly as it would in a decode of the whole.
//!
//! Pure arithmetic on header fields. Holds the knowledge about libjpeg-turbo's
//! upsampling; calls nothing of it.
//!
//! **Columns.** A crop must begin on a multiple of the (scaled) iMCU width.
//! "Fancy" chroma upsampling (4:2:2, 4:2:0) blends each chroma sample with its
//! left and right neighbour, and treats the first and the last column of what
//! is decoded as a picture's border. So the first column that is decoded is
//! wrong unless it is the picture's first, and the last one is wrong when the
//! decoded width is even (with an odd width the blend that lacks its neighbour
//! falls outside). One column more on the left, and one on the right only when
//! the width would be even, make every wanted pixel exact. With a single chroma
//! sample the library changes to another, plainer filter, so a decode with
//! blending is at least three columns wide.
//!
//! **Rows** need no margin: the library decodes the neighbouring rows of blocks
//! itself when blending needs them.
//!
//! There is no blending, and so no margin, for grey, 4:4:4 and 4:1:1, at 1/8,
//! and for 4:2:0 at 1/2 and 1/4, whose chroma comes out of a larger inverse DCT
//! instead.

use super::header::JpegHeader;

/// A decode at 1, 1/2, 1/4 or 1/8 of the size: the scales at which the inverse
/// DCT is faster than at full size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Full,
    Half,
    Quarter,
    Eighth,
}

impl Scale {
    pub(crate) const ALL: [Self; 4] = [Self::Full, Self::Half, Self::Quarter, Self::Eighth];

    pub(crate) fn denominator(self) -> u32 {
        match self {
            Self::Full => 1,
            Self::Half => 2,
            Self::Quarter => 4,
            Self::Eighth => 8,
        }
    }

    /// The scale with this denominator; full for any other number.
    pub(crate) fn of_denominator(denominator: u32) -> Self {
        Self::ALL
            .into_iter()
            .find(|s| s.denominator() == denominator)
            .unwrap_or(Self::Full)
    }

    /// The size of a picture of `size` (width, height) at this scale.
    pub(crate) fn of_size(self, (width, height): (u32, u32)) -> (u32, u32) {
        let d = self.denominator();
        (width.div_ceil(d), height.div_ceil(d))
    }

    /// The side of a luma block after the inverse DCT.
    fn block(self) -> u32 {
        8 / self.denominator()
    }
}

/// A box of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) w: u32,
    pub(crate) h: u32,
}

impl Region {
    pub(crate) fn new(x: u32, y: u32, w: u32, h: u32) -> Self {
        Self { x, y, w, h }
    }

    pub(crate) fn whole((w, h): (u32, u32)) -> Self {
        Self::new(0, 0, w, h)
    }

    /// Not empty, and inside a picture of this size.
    pub(crate) fn fits_in(self, (w, h): (u32, u32)) -> bool {
        let inside = |at: u32, len: u32, size: u32| {
            len > 0 && at.checked_add(len).is_some_and(|end| end <= size)
        };
        inside(self.x, self.w, w) && inside(self.y, self.h, h)
    }
}

/// What a decode left in the scratch buffer: rows of `stride` bytes of RGB,
/// top to bottom, that show this region of the scaled picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) w: u32,
    pub(crate) h: u32,
    pub(crate) stride: usize,
}

/// The size of the picture when decoded at this scale, in stored orientation.
pub(crate) fn scaled_size(header: &JpegHeader, scale: Scale) -> (u32, u32) {
    scale.of_size((header.width, header.height))
}

/// The smallest region that can be decoded and whose pixels inside `want` are
/// those of the whole. `want` must lie inside the scaled picture.
pub(crate) fn cover(header: &JpegHeader, scale: Scale, want: Region) -> Region {
    let (width, _) = scaled_size(header, scale);
    let align = imcu_width(header, scale);
    let blends = blends_columns(header, scale);
    let margin = u32::from(blends && want.x > 0);
    let mut x = (want.x - margin) / align * align;
    let mut end = want.x + want.w;
    if blends {
        end = end.max(width.min(x + MIN_BLENDED));
        if (end - x).is_multiple_of(2) && end < width {
            end += 1;
        }
        while end - x < MIN_BLENDED && x > 0 {
            x -= align.min(x);
        }
    }
    Region::new(x, want.y, end - x, want.h)
}

/// Two chroma samples: with one the library falls back to replication.
const MIN_BLENDED: u32 = 3;

/// The multiple on which a cropped decode must begin.
fn imcu_width(header: &JpegHeader, scale: Scale) -> u32 {
    if header.components == 1 {
        scale.block()
    } else {
        scale.block() * u32::from(header.max_sampling().0)
    }
}

/// Whether any component is upsampled by a filter that looks left and right
/// (`jinit_upsampler` in jdsample.c).
fn blends_columns(header: &JpegHeader, scale: Scale) -> bool {
    let block = scale.block();
    if block < 2 || header.components == 1 {
        return false;
    }
    let (max_h, max_v) = header.max_sampling();
    let (max_h, max_v) = (u32::from(max_h), u32::from(max_v));
    header.sampling().iter().any(|&(h, v)| {
        let (h, v) = (u32::from(h), u32::from(v));
        // Chroma is enlarged by the inverse DCT where that is possible
        // (`jpeg_calc_output_dimensions` in jdmaster.c).
        let mut size = block;
        while size < 8
            && (max_h * block).is_multiple_of(h * size * 2)
            && (max_v * block).is_multiple_of(v * size * 2)
        {
            size *= 2;
        }
        let (h, v) = (h * size / block, v * size / block);
        h * 2 == max_h && (v == max_v || v * 2 == max_v)
    })
}
