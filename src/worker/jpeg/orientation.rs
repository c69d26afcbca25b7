//! The eight EXIF orientations: how the picture on the screen relates to the
//! picture in the file.
//!
//! Pure arithmetic, in whichever process reads headers. Moves no pixels:
//! decoding happens in stored coordinates, and whoever writes the row turns it.

use super::region::Region;

/// EXIF tag 0x0112. "Stored" is the picture as the file holds it, "oriented" as
/// it is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Orientation {
    #[default]
    Normal = 1,
    MirrorX = 2,
    Rotate180 = 3,
    MirrorY = 4,
    Transpose = 5,
    /// Turn the stored picture by 90 degrees clockwise.
    Rotate90 = 6,
    Transverse = 7,
    /// Turn the stored picture by 90 degrees counter-clockwise.
    Rotate270 = 8,
}

impl Orientation {
    pub(crate) const ALL: [Self; 8] = [
        Self::Normal,
        Self::MirrorX,
        Self::Rotate180,
        Self::MirrorY,
        Self::Transpose,
        Self::Rotate90,
        Self::Transverse,
        Self::Rotate270,
    ];

    /// The orientation behind the tag's value; anything but 1 to 8 is none.
    pub(crate) fn from_tag(value: u32) -> Option<Self> {
        let at = usize::try_from(value).ok()?.checked_sub(1)?;
        Self::ALL.get(at).copied()
    }

    /// Oriented rows are stored columns.
    pub(crate) fn swaps_axes(self) -> bool {
        self as u8 >= Self::Transpose as u8
    }

    /// Stored columns run from right to left in the oriented picture
    /// (top to bottom or bottom to top when the axes are swapped).
    pub(crate) fn flips_stored_x(self) -> bool {
        matches!(
            self,
            Self::MirrorX | Self::Rotate180 | Self::Transverse | Self::Rotate270
        )
    }

    /// Stored rows run backwards in the oriented picture.
    pub(crate) fn flips_stored_y(self) -> bool {
        matches!(
            self,
            Self::Rotate180 | Self::MirrorY | Self::Rotate90 | Self::Transverse
        )
    }

    /// The oriented size of a stored size, and the other way round.
    pub(crate) fn apply_to_size(self, (w, h): (u32, u32)) -> (u32, u32) {
        if self.swaps_axes() { (h, w) } else { (w, h) }
    }

    /// Where a box of the oriented picture lies in the stored picture, whose
    /// size is `stored`. The box must lie inside the picture.
    pub(crate) fn to_stored(self, oriented: Region, stored: (u32, u32)) -> Region {
        let box_ = if self.swaps_axes() {
            oriented.transposed()
        } else {
            oriented
        };
        self.flipped(box_, stored)
    }

    /// Where a box of the stored picture lies in the oriented picture; the
    /// inverse of [`Self::to_stored`]. `stored` is again the stored size.
    pub(crate) fn to_oriented(self, in_file: Region, stored: (u32, u32)) -> Region {
        let box_ = self.flipped(in_file, stored);
        if self.swaps_axes() {
            box_.transposed()
        } else {
            box_
        }
    }

    fn flipped(self, mut r: Region, (w, h): (u32, u32)) -> Region {
        if self.flips_stored_x() {
            r.x = w - r.x - r.w;
        }
        if self.flips_stored_y() {
            r.y = h - r.y - r.h;
        }
        r
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stored picture "ABC/DEF" as each orientation shows it (what Pillow's
    /// `exif_transpose` gives).
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
        for (orientation, shown) in Orientation::ALL.into_iter().zip(SHOWN) {
            for (v, row) in shown.iter().enumerate() {
                for (u, letter) in row.bytes().enumerate() {
                    let at = Region::new(u as u32, v as u32, 1, 1);
                    let s = orientation.to_stored(at, (3, 2));
                    let got = stored[s.y as usize][s.x as usize];
                    assert_eq!(got, letter, "{orientation:?} at {u},{v}");
                }
            }
        }
    }

    #[test]
    fn boxes_round_trip() {
        let stored = (7, 5);
        for orientation in Orientation::ALL {
            let (ow, oh) = orientation.apply_to_size(stored);
            for x in 0..ow {
                for y in 0..oh {
                    for w in 1..=ow - x {
                        for h in 1..=oh - y {
                            let oriented = Region::new(x, y, w, h);
                            let there = orientation.to_stored(oriented, stored);
                            assert!(there.fits_in(stored));
                            assert_eq!(orientation.to_oriented(there, stored), oriented);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn tag_values() {
        assert_eq!(Orientation::from_tag(6), Some(Orientation::Rotate90));
        for bad in [0, 9, 0x0600, u32::MAX] {
            assert_eq!(Orientation::from_tag(bad), None);
        }
        for o in Orientation::ALL {
            assert_eq!(Orientation::from_tag(o as u32), Some(o));
        }
    }
}
