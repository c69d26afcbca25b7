//! The eight EXIF orientations: the relation of the displayed image to the stored one; and the
//! choice to apply them.
//!
//! Pure arithmetic, in every process that reads headers. It moves no pixels. Images are decoded in
//! stored coordinates, and the code that writes the row turns them.

use serde::{Deserialize, Serialize};

use super::file_format::FileFormat;

/// Whether EXIF orientations are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrientationMode {
    /// Apply the EXIF orientation.
    #[default]
    Exif,
    /// Keep the stored orientation, as Pillow does when it opens a file. Pillow turns only TIFF,
    /// and so does this mode.
    Stored,
}

/// EXIF tag 0x0112. "Stored" is the image in the file, "oriented" the image as displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum ExifOrientation {
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

impl ExifOrientation {
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

    /// The orientation to apply to a file of this format in a mode.
    pub(crate) fn in_mode(self, upright: OrientationMode, format: FileFormat) -> Self {
        match upright {
            OrientationMode::Exif => self,
            // As Pillow, torchvision and OpenCV, whose TIFF decoders turn the image.
            OrientationMode::Stored if format == FileFormat::Tiff => self,
            OrientationMode::Stored => Self::Normal,
        }
    }

    /// The orientation for a value of the tag; `None` for values other than 1 to 8.
    pub(crate) fn from_tag(value: u32) -> Option<Self> {
        let at = usize::try_from(value).ok()?.checked_sub(1)?;
        Self::ALL.get(at).copied()
    }

    /// Maximum bytes to read of an EXIF block: the tag is in its first directory.
    pub(crate) const EXIF_HEAD: usize = 64 << 10;

    /// The orientation in the first directory of a TIFF block. `None` if there is no tag, or the
    /// block is broken, which is never a fault. A tag with a value other than 1 to 8 turns nothing.
    pub(crate) fn from_exif(tiff: &[u8]) -> Option<Self> {
        const TAG: u16 = 0x0112;
        let little = match tiff.get(..4)? {
            b"II*\0" => true,
            b"MM\0*" => false,
            _ => return None,
        };
        let u16_at = |at: usize| -> Option<u16> {
            let b = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
            Some(if little {
                u16::from_le_bytes(b)
            } else {
                u16::from_be_bytes(b)
            })
        };
        let u32_at = |at: usize| -> Option<u32> {
            let b = tiff.get(at..at.checked_add(4)?)?.try_into().ok()?;
            Some(if little {
                u32::from_le_bytes(b)
            } else {
                u32::from_be_bytes(b)
            })
        };
        let directory = usize::try_from(u32_at(4)?).ok()?;
        let entries = usize::from(u16_at(directory)?);
        for i in 0..entries {
            let entry = directory.checked_add(2 + 12 * i)?;
            if u16_at(entry)? != TAG {
                continue;
            }
            let value_at = entry.checked_add(8)?;
            let count = u32_at(entry.checked_add(4)?)?;
            let value = match (count, u16_at(entry.checked_add(2)?)?) {
                (1, 1) => u32::from(*tiff.get(value_at)?),
                (1, 3) => u32::from(u16_at(value_at)?),
                (1, 4) => u32_at(value_at)?,
                _ => 0,
            };
            return Some(Self::from_tag(value).unwrap_or_default());
        }
        None
    }

    /// Oriented rows are stored columns.
    pub(crate) fn swaps_axes(self) -> bool {
        self as u8 >= Self::Transpose as u8
    }

    /// Stored columns run from right to left in the oriented image (if the axes are swapped, from
    /// bottom to top).
    pub(crate) fn flips_stored_x(self) -> bool {
        matches!(
            self,
            Self::MirrorX | Self::Rotate180 | Self::Transverse | Self::Rotate270
        )
    }

    /// Stored rows run backwards in the oriented image.
    pub(crate) fn flips_stored_y(self) -> bool {
        matches!(
            self,
            Self::Rotate180 | Self::MirrorY | Self::Rotate90 | Self::Transverse
        )
    }

    /// The oriented size of a stored size, and the reverse.
    pub(crate) fn apply_to_size(self, (w, h): (u32, u32)) -> (u32, u32) {
        if self.swaps_axes() { (h, w) } else { (w, h) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Image.open` of Pillow 13, loaded: it turns TIFF and no other format.
    #[test]
    fn as_stored_only_a_tiff_is_turned() {
        let turned = ExifOrientation::Rotate90;
        for format in [FileFormat::Jpeg, FileFormat::Png, FileFormat::WebP] {
            assert_eq!(turned.in_mode(OrientationMode::Exif, format), turned);
            assert_eq!(
                turned.in_mode(OrientationMode::Stored, format),
                ExifOrientation::Normal
            );
        }
        assert_eq!(
            turned.in_mode(OrientationMode::Stored, FileFormat::Tiff),
            turned
        );
    }

    #[test]
    fn tag_values() {
        assert_eq!(
            ExifOrientation::from_tag(6),
            Some(ExifOrientation::Rotate90)
        );
        for bad in [0, 9, 0x0600, u32::MAX] {
            assert_eq!(ExifOrientation::from_tag(bad), None);
        }
        for o in ExifOrientation::ALL {
            assert_eq!(ExifOrientation::from_tag(o as u32), Some(o));
        }
    }
}
