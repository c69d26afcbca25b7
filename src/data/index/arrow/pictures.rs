//! Finds the images of one column: as ranges of the file, or as paths.
//!
//! Runs in the consumer, on untrusted bytes. Reads offsets and paths, and no image.

use crate::data::arrow::{ArrowBytes, ArrowColumn, ArrowFile};
use crate::data::index::arrow::columns::ArrowColumns;
use crate::data::index::names::shown;

/// The images of one file, one per row.
#[derive(Debug)]
pub(super) enum ArrowPictures {
    /// The first byte in the file, and the length: 0 for a row without an image.
    Places(Vec<(u64, u64)>),
    Paths(Vec<Vec<u8>>),
}

impl ArrowPictures {
    pub(super) fn read(file: &ArrowFile, columns: &ArrowColumns) -> Result<Self, String> {
        let name = shown(columns.picture_name.as_bytes());
        let mut bytes = ArrowBytes::in_order(file);
        let column = |path: &Option<Vec<usize>>| {
            let path = path.as_ref().map(|path| ArrowColumn::find(file, path));
            path.transpose()
        };
        let paths = column(&columns.picture.path)?;
        let mut places = Vec::new();
        let mut images: u64 = 0;
        if let Some(pictures) = column(&columns.picture.bytes)? {
            for row in 0..file.rows {
                let place = pictures.place(&mut bytes, row)?;
                images += u64::from(place.is_some());
                places.push(place.unwrap_or_default());
            }
            if images > 0 {
                return match paths {
                    None => Ok(Self::Places(places)),
                    Some(paths) => {
                        check_alone(&mut bytes, &places, &paths, &name)?;
                        Ok(Self::Places(places))
                    }
                };
            }
        }
        let Some(paths) = paths else {
            return Err(format!(
                "has no image in column '{name}', because every row is null: name another with \
                 `image_column`"
            ));
        };
        drop(places);
        let mut all = Vec::new();
        for row in 0..file.rows {
            let path = paths.text(&mut bytes, row)?.filter(|path| !path.is_empty());
            all.push(path.ok_or_else(|| {
                format!("row {row}: column '{name}' has neither bytes nor a path: remove the row")
            })?);
        }
        Ok(Self::Paths(all))
    }
}

/// Checks that a row without bytes has no path either: samples are all in the file, or all files.
fn check_alone(
    bytes: &mut ArrowBytes,
    places: &[(u64, u64)],
    paths: &ArrowColumn,
    name: &str,
) -> Result<(), String> {
    for (row, _) in (0..).zip(places).filter(|(_, place)| **place == (0, 0)) {
        if paths.text(bytes, row)?.is_some_and(|path| !path.is_empty()) {
            return Err(format!(
                "row {row}: column '{name}' has a path and no bytes, and other rows have bytes: \
                 write all images as bytes (Python: dataset.cast_column with datasets.Image, then \
                 save_to_disk), or all as paths"
            ));
        }
    }
    Ok(())
}
