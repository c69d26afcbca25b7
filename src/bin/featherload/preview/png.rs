//! A picture as a PNG file.

use std::io::Cursor;

use featherload::{Error, Result};
use image::{ImageFormat, RgbImage};

pub fn png(picture: &RgbImage) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    let written = picture.write_to(&mut bytes, ImageFormat::Png);
    written.map_err(|e| Error::io("write a PNG", std::io::Error::other(e)))?;
    Ok(bytes.into_inner())
}
