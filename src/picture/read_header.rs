//! Reads the header of any image: format, size and orientation, without decoding a pixel.
//!
//! Used by surveys of data sets, in the consumer. It reads files and never maps them. The data path
//! reads the same headers with the same functions, from its map.

use std::io::{Read, SeekFrom};

use crate::error::{FaultKind, SampleFault, lost_picture};
use crate::picture::file_format;
use crate::picture::file_format::FileFormat;
use crate::picture::limits::PictureLimits;
use crate::picture::reader::unreadable;
use crate::picture::reader::{PictureFile, PictureReader, ReadBudget};
use crate::picture::{jpeg, raster};
use crate::sys::panics::catch_panic;

pub(crate) use crate::picture::picture_header::{DecodeCost, PictureHeader};

/// Reads the header of a file, and no more of the file than necessary. Rejects images over the
/// limits, whatever region is used, and files too short for their size.
pub(crate) fn read_header_within(
    file: &mut dyn PictureFile,
    limits: &PictureLimits,
) -> Result<PictureHeader, SampleFault> {
    let len = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let tail = read_at(
        file,
        len.saturating_sub(file_format::TAIL as u64),
        file_format::TAIL as u64,
    )?;
    let head = read_at(file, 0, file_format::HEAD as u64)?;
    let format = match FileFormat::sniff(&head, &tail) {
        Ok(format) => format,
        Err(unknown) => {
            let start = read_at(file, 0, lost_picture::MOST_BYTES as u64)?;
            return Err(lost_picture::fault_of(&start).unwrap_or(unknown));
        }
    };
    file.rewind().map_err(unreadable)?;
    // A decoder's panic may end a worker, but not the process that reads headers. No data of the
    // file are used after a panic.
    catch_panic(|| read_as(format, file, len, limits)).unwrap_or_else(|| {
        Err(FaultKind::Corrupt.fault(format!("{format}: its decoder panicked at the header")))
    })
}

fn read_as(
    format: FileFormat,
    file: &mut dyn PictureFile,
    len: u64,
    limits: &PictureLimits,
) -> Result<PictureHeader, SampleFault> {
    if format != FileFormat::Jpeg {
        return raster::read_header(format, file, len, limits);
    }
    let window = ReadBudget::for_header(format);
    let mut file = PictureReader::of_file(file, &window);
    let walked = jpeg::walk(&mut jpeg::InFile::new(&mut file, len));
    let header = window.check(format, walked)?;
    let stored = (header.width, header.height);
    limits.check_pixels(format.name(), stored)?;
    Ok(PictureHeader {
        format,
        stored_size: stored,
        orientation: header.orientation,
        cost: header.decoding(),
        pixel_box: None,
    })
}

fn read_at(file: &mut dyn PictureFile, at: u64, most: u64) -> Result<Vec<u8>, SampleFault> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{self, BufReader, Cursor, Seek, Write};

    use super::*;

    /// Counts the bytes read, and panics after `panic_after` bytes.
    struct Watched<F> {
        file: F,
        read: u64,
        panic_after: u64,
    }

    impl<F: Read> Read for Watched<F> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            assert!(self.read <= self.panic_after, "a decoder gave up");
            let n = self.file.read(to)?;
            self.read += n as u64;
            Ok(n)
        }
    }

    impl<F: Seek> Seek for Watched<F> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    fn watched<F: Read + Seek>(file: F, panic_after: u64) -> BufReader<Watched<F>> {
        let watched = Watched {
            file,
            read: 0,
            panic_after,
        };
        BufReader::with_capacity(4096, watched)
    }

    fn read_header(file: &mut dyn PictureFile) -> Result<PictureHeader, SampleFault> {
        read_header_within(file, &PictureLimits::default())
    }

    #[test]
    fn a_jpeg_that_is_all_header_is_not_read_as_a_whole() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"\xff\xd8").unwrap();
        file.set_len(400 << 20).unwrap();
        let mut file = watched(file, u64::MAX);
        let fault = read_header(&mut file).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Corrupt, "{fault}");
        assert!(file.get_ref().read < 2 << 20, "{}", file.get_ref().read);
    }

    #[test]
    fn long_segments_are_stepped_over() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"\xff\xd8").unwrap();
        for _ in 0..500 {
            file.write_all(b"\xff\xe2\xff\xff").unwrap();
            file.write_all(&[1; 0xfffd]).unwrap();
        }
        file.write_all(b"\xff\xc0\0\x0b\x08\0\x05\0\x07\x01\x01\x11\0")
            .unwrap();
        file.write_all(b"\xff\xda\0\x08\x01\x01\0\0\x3f\0").unwrap();
        let mut file = watched(file, u64::MAX);
        let header = read_header(&mut file).unwrap();
        assert_eq!(header.stored_size, (7, 5));
        // One buffer for each of 32 MB of segments.
        assert!(file.get_ref().read < 3 << 20, "{}", file.get_ref().read);
    }

    /// The beginning of a file, then zeros of a sparse file, or the same bytes again and again.
    fn endless() -> Vec<(&'static str, File)> {
        const BYTES: u64 = 64 << 20;
        let hole = |head: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(head).unwrap();
            file.set_len(BYTES).unwrap();
            file
        };
        let webp = b"RIFF\xf0\xff\xff\x03WEBPVP8X\x0a\0\0\0\0\0\0\0\x07\0\0\x07\0\0";
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x08\0\0\0\x08\x08\0\0\0\0\0\0\0\0";
        let ico = [
            b"\0\0\x01\0\x01\0\x08\x08\0\0\x01\0\x20\0\0\0\0\x04\x16\0\0\0",
            &png[..],
        ]
        .concat();
        let mut comments = tempfile::tempfile().unwrap();
        comments
            .write_all(b"GIF89a\x08\0\x08\0\0\0\0\x21\xfe")
            .unwrap();
        for _ in 0..BYTES >> 20 {
            comments.write_all(&[0xff; 1 << 20]).unwrap();
        }
        let mut exif = tempfile::tempfile().unwrap();
        exif.write_all(b"\xff\xd8").unwrap();
        for at in 0..BYTES >> 16 {
            exif.seek(SeekFrom::Start(2 + at * 0x1_0001)).unwrap();
            exif.write_all(b"\xff\xe1\xff\xff").unwrap();
        }
        vec![
            ("hdr", hole(b"#?RADIANCE\n")),
            ("hdr", hole(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n")),
            ("pam", hole(b"P7\n")),
            ("pam", hole(b"P7\nWIDTH 8\n")),
            ("pgm", hole(b"P5 #")),
            ("pgm", hole(b"P5 8 8 ")),
            ("webp", hole(webp)),
            ("png", hole(png)),
            ("ico", hole(&ico)),
            ("exr", hole(b"\x76\x2f\x31\x01\x02\0\0\0a")),
            ("tif", hole(b"II*\0\x08\0\0\0\xff\xff")),
            (
                "tif",
                hole(b"II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0"),
            ),
            ("gif", comments),
            ("jpg", exif),
        ]
    }

    #[test]
    fn no_header_is_read_without_a_limit() {
        // 16 MiB, and the checksum of each empty chunk of a PNG, which is skipped.
        let most = 25 << 20;
        let mut over = Vec::new();
        for (what, file) in endless() {
            let mut file = watched(file, u64::MAX);
            let found = read_header(&mut file);
            let read = file.get_ref().read;
            let said = found.map_err(|fault| fault.reason);
            let is_short = said.as_ref().is_err_and(|reason| reason.len() < 1000);
            if !is_short || read > most {
                over.push(format!(
                    "{what}: {read} bytes read, {:.300}",
                    format!("{said:?}")
                ));
            }
        }
        assert!(over.is_empty(), "{over:#?}");
    }

    /// Profiles, XMP and text before the size or the pixels. They are longer than the limit of
    /// their format, and are not read.
    #[test]
    fn metadata_that_is_stepped_over_has_no_limit() {
        const LONG: u32 = 40 << 20;
        let whole = |front: &[u8], behind: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(front).unwrap();
            file.seek(SeekFrom::Current(LONG.into())).unwrap();
            file.write_all(behind).unwrap();
            file.rewind().unwrap();
            file
        };
        let long = LONG.to_be_bytes();
        let png = whole(
            &[
                &b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x08\0\0\0\x08\x08\0\0\0\0\0\0\0\0"[..],
                &long,
                b"iTXt",
            ]
            .concat(),
            b"\0\0\0\0\0\0\0\x02IDAT\0\0\0\0\0\0\0\0\0\0IEND\0\0\0\0",
        );
        let long = LONG.to_le_bytes();
        let webp = whole(
            &[
                &b"RIFF\xf0\xff\xff\x03WEBPVP8X\x0a\0\0\0\x20\0\0\0\x07\0\0\x07\0\0"[..],
                b"ICCP",
                &long,
            ]
            .concat(),
            b"VP8L\x06\0\0\0\x2f\x07\xc0\x01\0\0",
        );
        for (name, file) in [("png", png), ("webp", webp)] {
            let mut file = watched(file, u64::MAX);
            let header = read_header(&mut file).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            assert_eq!(header.stored_size, (8, 8), "{name}");
            assert!(
                file.get_ref().read < 100_000,
                "{name}: {}",
                file.get_ref().read
            );
        }
    }

    #[test]
    fn a_panic_of_a_decoder_is_a_fault_of_the_file() {
        let gif = [&b"GIF89a\x01\0\x01\0\0\0\0"[..], &[0; 60_000]].concat();
        let jpeg = [&b"\xff\xd8"[..], &[0; 60_000]].concat();
        for (bytes, name) in [(gif, "GIF"), (jpeg, "JPEG")] {
            let mut file = watched(Cursor::new(bytes), 0);
            // After the bytes that identify the format.
            file.get_mut().panic_after = 4096;
            let found = read_header(&mut file);
            let Err(fault) = found else {
                panic!("{found:?}")
            };
            assert_eq!(fault.kind, FaultKind::Corrupt);
            assert!(fault.reason.contains(name), "{fault}");
            assert!(fault.reason.contains("panicked"), "{fault}");
        }
    }

    /// With the same numbers as a worker.
    #[test]
    fn what_is_over_a_limit_is_refused() {
        let farbfeld = |w: u32, h: u32, pixels: usize| {
            let mut bytes = b"farbfeld".to_vec();
            bytes.extend(w.to_be_bytes());
            bytes.extend(h.to_be_bytes());
            bytes.resize(16 + 8 * pixels, 0);
            bytes
        };
        let jpeg = b"\xff\xd8\xff\xc0\0\x0b\x08\0\x05\0\x07\x01\x01\x11\0\
                     \xff\xda\0\x08\x01\x01\0\0\x3f\0"
            .to_vec();
        let npy = |pixels: usize| {
            let mut bytes = crate::picture::npy::header((5, 7), 3).to_vec();
            bytes.resize(bytes.len() + 3 * pixels, 0);
            bytes
        };
        for bytes in [farbfeld(7, 5, 35), npy(35), jpeg] {
            let read = |max_pixels| {
                let limits = PictureLimits {
                    max_pixels,
                    ..PictureLimits::default()
                };
                read_header_within(&mut Cursor::new(&bytes), &limits)
            };
            assert_eq!(read(35).unwrap().stored_size, (7, 5));
            let fault = read(34).unwrap_err();
            assert_eq!(fault.kind, FaultKind::TooLarge);
            assert!(fault.reason.contains("max_pixels = 34"), "{fault}");
        }
        for (format, cut) in [
            (FileFormat::Farbfeld, farbfeld(7, 5, 32)),
            (FileFormat::Npy, npy(34)),
        ] {
            let fault = read_header(&mut Cursor::new(&cut)).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Truncated, "{fault}");
            assert_eq!(
                raster::RasterReader::open(format, &cut, &PictureLimits::default())
                    .err()
                    .unwrap(),
                fault
            );
        }
    }

    #[test]
    fn a_file_is_read_like_its_bytes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"P5 2 2 255\nabcd").unwrap();
        let mut file = BufReader::new(File::open(file.path()).unwrap());
        assert_eq!(read_header(&mut file).unwrap().stored_size, (2, 2));
    }
}
