//! Finds the images of one column: as ranges of the file or of its compressed buffers, or as paths.
//!
//! Runs in the consumer, on untrusted bytes. Reads offsets and paths, and no image.

use std::collections::HashMap;

use crate::data::arrow::{ArrowBytes, ArrowColumn, ArrowFile};
use crate::data::index::arrow::columns::ArrowColumns;
use crate::data::index::names::shown;
use crate::data::packed_page::{MOST_PAGE, MOST_WINDOW, PackedPage, PageCodec};

/// The place of one image.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ArrowPlace {
    /// The number of its packed buffer. `None` if it is a range of the file.
    pub(super) page: Option<u32>,
    /// Its first byte in the file, or in the unpacked buffer.
    pub(super) at: u64,
    /// Its length. 0 for a row without an image.
    pub(super) bytes: u64,
}

/// The places of the images of one file.
#[derive(Debug, Default)]
pub(super) struct ArrowPlaces {
    pub(super) rows: Vec<ArrowPlace>,
    /// The packed buffers that hold images.
    pub(super) pages: Vec<PackedPage>,
    /// The numbers of the packed buffers, by their offset and length in the file.
    known: HashMap<(u64, u64), u32>,
}

impl ArrowPlaces {
    /// The number of a packed buffer, which is added if it is not known.
    fn number(&mut self, page: PackedPage) -> Result<u32, String> {
        let key = (page.at, page.packed);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        check_page(&page)?;
        let number = u32::try_from(self.pages.len());
        let number = number.map_err(|_| "has too many buffers".to_owned())?;
        self.pages.push(page);
        self.known.insert(key, number);
        Ok(number)
    }
}

/// Checks that a worker can unpack a buffer.
fn check_page(page: &PackedPage) -> Result<(), String> {
    let most = match page.codec {
        PageCodec::Zstd => MOST_WINDOW,
        _ => MOST_PAGE,
    };
    match page.packed.max(page.unpacked) > most {
        false => Ok(()),
        true => Err(format!(
            "has a compressed buffer of images of more than {} MiB at byte {}, which each worker \
             would unpack: write it with smaller record batches (pyarrow.feather.write_feather has \
             chunksize), or without compression",
            most >> 20,
            page.at
        )),
    }
}

/// The images of one file, one per row.
#[derive(Debug)]
pub(super) enum ArrowPictures {
    Places(ArrowPlaces),
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
        let mut places = ArrowPlaces::default();
        let mut images: u64 = 0;
        // The first row with a path and no bytes. Empty bytes are bytes, as for `datasets`.
        let mut alone = None;
        if let Some(pictures) = column(&columns.picture.bytes)? {
            // `RowBudget` has compared their number with the memory.
            let rows = usize::try_from(file.rows).unwrap_or(0);
            let _ = places.rows.try_reserve_exact(rows);
            for row in 0..file.rows {
                let place = pictures.place(&mut bytes, row)?;
                images += u64::from(place.is_some());
                if let (None, None, Some(paths)) = (&place, alone, &paths) {
                    let path = paths.text(&mut bytes, row)?;
                    alone = path.filter(|path| !path.is_empty()).map(|_| row);
                }
                let place = match place {
                    Some((place, bytes)) => ArrowPlace {
                        page: place.page.map(|page| places.number(page)).transpose()?,
                        at: place.at,
                        bytes,
                    },
                    // In the buffer of the row before it, so that no other one is opened for it.
                    None => ArrowPlace {
                        page: places.rows.last().and_then(|place| place.page),
                        ..ArrowPlace::default()
                    },
                };
                places.rows.push(place);
            }
            if images > 0 {
                return match alone {
                    None => Ok(Self::Places(places)),
                    // Samples are all in the file, or all files.
                    Some(row) => Err(format!(
                        "row {row}: column '{name}' has a path and no bytes, and other rows have \
                         bytes: write all images as bytes (Python: dataset.cast_column with \
                         datasets.Image, then save_to_disk), or all as paths"
                    )),
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
