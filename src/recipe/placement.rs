//! The sum of EXIF orientation, flips and quarter turns, without moving pixels.

use super::geometry::PixelRect;
use super::values::Padding;
use crate::picture::ExifOrientation;

/// Where each pixel of the upright image is stored.
///
/// Pixel `(y, x)` of the upright image is the stored pixel `(sy, sx)`:
///
/// ```text
/// (sy, sx) = transpose ? (x, y) : (y, x)
/// sx = flip_x ? width  - 1 - sx : sx          width and height of the stored image
/// sy = flip_y ? height - 1 - sy : sy
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PixelPlacement {
    pub flip_x: bool,
    pub flip_y: bool,
    pub transpose: bool,
}

impl PixelPlacement {
    /// The same, then mirrored left to right.
    pub fn mirrored(self) -> Self {
        self.flipped(self.transpose)
    }

    /// The same, then mirrored top to bottom.
    pub fn upside_down(self) -> Self {
        self.flipped(!self.transpose)
    }

    /// Reverses the order of the stored rows, or the order within them.
    fn flipped(self, rows: bool) -> Self {
        if rows {
            Self {
                flip_y: !self.flip_y,
                ..self
            }
        } else {
            Self {
                flip_x: !self.flip_x,
                ..self
            }
        }
    }

    /// The same, then turned counter-clockwise by this number of quarters.
    pub fn turned(self, quarters: u8) -> Self {
        (0..quarters % 4).fold(self, |p, _| {
            // A quarter turn: rows become columns, then the first row the last.
            Self {
                transpose: !p.transpose,
                ..p
            }
            .upside_down()
        })
    }

    /// Width and height of the upright image for a stored width and height, and the inverse.
    pub fn output_size(self, width: usize, height: usize) -> (usize, usize) {
        if self.transpose {
            (height, width)
        } else {
            (width, height)
        }
    }

    /// The padding of the stored image that equals this padding of the upright image.
    pub(crate) fn padding_to_stored(self, p: Padding) -> Padding {
        let mut s = if self.transpose {
            Padding {
                left: p.top,
                top: p.left,
                right: p.bottom,
                bottom: p.right,
            }
        } else {
            p
        };
        if self.flip_x {
            (s.left, s.right) = (s.right, s.left);
        }
        if self.flip_y {
            (s.top, s.bottom) = (s.bottom, s.top);
        }
        s
    }

    /// The stored box for a box of the upright image. `stored`: width and height of the stored
    /// image.
    pub(crate) fn to_stored(self, rect: PixelRect, stored: (u32, u32)) -> PixelRect {
        let mut r = if self.transpose {
            PixelRect {
                left: rect.top,
                top: rect.left,
                width: rect.height,
                height: rect.width,
            }
        } else {
            rect
        };
        if self.flip_x {
            r.left = stored.0 - r.left - r.width;
        }
        if self.flip_y {
            r.top = stored.1 - r.top - r.height;
        }
        r
    }
}

impl ExifOrientation {
    /// The placement that this orientation describes.
    pub(crate) fn placement(self) -> PixelPlacement {
        PixelPlacement {
            flip_x: self.flips_stored_x(),
            flip_y: self.flips_stored_y(),
            transpose: self.swaps_axes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The upright image that a placement makes of 3 x 2 stored pixels.
    fn shown(p: PixelPlacement) -> Vec<String> {
        let stored = [b"ABC", b"DEF"];
        let (w, h) = p.output_size(3, 2);
        let at = |x: usize, y: usize| {
            let rect = PixelRect {
                left: x as u32,
                top: y as u32,
                width: 1,
                height: 1,
            };
            let r = p.to_stored(rect, (3, 2));
            char::from(stored[r.top as usize][r.left as usize])
        };
        (0..h).map(|y| (0..w).map(|x| at(x, y)).collect()).collect()
    }

    #[test]
    fn flips_and_turns_add_up() {
        let p = PixelPlacement::default();
        assert_eq!(shown(p), ["ABC", "DEF"]);
        assert_eq!(shown(p.mirrored()), ["CBA", "FED"]);
        assert_eq!(shown(p.upside_down()), ["DEF", "ABC"]);
        // Counter-clockwise: the last column becomes the first row.
        assert_eq!(shown(p.turned(1)), ["CF", "BE", "AD"]);
        assert_eq!(shown(p.turned(2)), ["FED", "CBA"]);
        assert_eq!(shown(p.turned(3)), ["DA", "EB", "FC"]);
        assert_eq!(shown(p.turned(1).mirrored()), ["FC", "EB", "DA"]);
        assert_eq!(shown(p.mirrored().turned(1)), ["AD", "BE", "CF"]);
        assert_eq!(shown(p.turned(1).upside_down()), ["AD", "BE", "CF"]);
        assert_eq!(p.turned(1).turned(3), p);
    }

    /// The upright image of the stored "ABC/DEF" for each orientation, as Pillow's `exif_transpose`
    /// returns it.
    const SHOWN: [&[&str]; 8] = [
        &["ABC", "DEF"],
        &["CBA", "FED"],
        &["FED", "CBA"],
        &["DEF", "ABC"],
        &["AD", "BE", "CF"],
        &["DA", "EB", "FC"],
        &["FC", "EB", "DA"],
        &["CF", "BE", "AD"],
    ];

    #[test]
    fn every_orientation_shows_what_exif_says() {
        let stored = [b"ABC", b"DEF"];
        for (orientation, shown) in ExifOrientation::ALL.into_iter().zip(SHOWN) {
            for (v, row) in shown.iter().enumerate() {
                for (u, letter) in row.bytes().enumerate() {
                    let at = PixelRect {
                        left: u as u32,
                        top: v as u32,
                        width: 1,
                        height: 1,
                    };
                    let s = orientation.placement().to_stored(at, (3, 2));
                    let got = stored[s.top as usize][s.left as usize];
                    assert_eq!(got, letter, "{orientation:?} at {u},{v}");
                }
            }
        }
    }
}
