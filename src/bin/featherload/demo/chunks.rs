//! PNG written by hand, for files that the encoder cannot write: interlaced images, and headers
//! that promise missing data.

use std::io;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// RGB, 8 bits a sample.
const DEPTH_AND_COLOUR: [u8; 2] = [8, 2];

/// Adam7: where each pass begins, and its steps, as (x, y, step x, step y).
const PASSES: [(usize, usize, usize, usize); 7] = [
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
];

/// An RGB picture in seven passes, each row without a filter.
pub(super) fn interlaced(size: (u32, u32), rgb: &[u8]) -> io::Result<Vec<u8>> {
    let (width, height) = (size.0 as usize, size.1 as usize);
    let mut stream = Vec::with_capacity(rgb.len() + 2 * height + 8);
    for (x0, y0, dx, dy) in PASSES {
        // A pass without columns has no rows either.
        if x0 >= width {
            continue;
        }
        for y in (y0..height).step_by(dy) {
            stream.push(0);
            for x in (x0..width).step_by(dx) {
                let at = (y * width + x) * 3;
                stream.extend_from_slice(&rgb[at..at + 3]);
            }
        }
    }
    Ok(file(header(size, true), &deflated(&stream)?))
}

/// A valid header that promises `size` pixels, with the data of only a few.
pub(super) fn far_too_large(size: (u32, u32)) -> io::Result<Vec<u8>> {
    Ok(file(header(size, false), &deflated(&[0; 1000])?))
}

/// The position of the first IDAT chunk's data.
pub(super) fn first_data(png: &[u8]) -> Option<std::ops::Range<usize>> {
    let mut at = SIGNATURE.len();
    loop {
        let length = u32::from_be_bytes(png.get(at..at + 4)?.try_into().ok()?) as usize;
        let data = at + 8..at + 8 + length;
        if png.get(at + 4..at + 8)? == b"IDAT" {
            return Some(data);
        }
        at = data.end + 4;
    }
}

/// Encodes `stream`, which begins with a 0, as zlib data. The encoder puts a 0 before each row, so
/// the stream is encoded as a grey image of one row.
fn deflated(stream: &[u8]) -> io::Result<Vec<u8>> {
    let row = stream.get(1..).unwrap_or_default();
    let width = u32::try_from(row.len()).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, 1);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(row)?;
    writer.finish()?;
    first_data(&bytes)
        .and_then(|range| bytes.get(range))
        .map(<[u8]>::to_vec)
        .ok_or_else(|| io::Error::other("the encoder wrote no data"))
}

fn header((width, height): (u32, u32), interlaced: bool) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend(DEPTH_AND_COLOUR);
    header.extend([0, 0, interlaced.into()]);
    header
}

fn file(header: Vec<u8>, data: &[u8]) -> Vec<u8> {
    let mut file = SIGNATURE.to_vec();
    for (name, content) in [
        (b"IHDR", header.as_slice()),
        (b"IDAT", data),
        (b"IEND", &[]),
    ] {
        let begin = file.len() + 4;
        file.extend((content.len() as u32).to_be_bytes());
        file.extend(name);
        file.extend(content);
        let mut crc = flate2::Crc::new();
        crc.update(&file[begin..]);
        file.extend(crc.sum().to_be_bytes());
    }
    file
}
