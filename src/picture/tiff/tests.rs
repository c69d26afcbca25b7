//! Broken and hostile files. `tests/inputs/golden.rs` compares pixels with Pillow's.

use super::TiffPicture;
use crate::error::{FaultKind, SampleFault};
use crate::picture::FileFormat;
use crate::picture::PictureLimits;
use crate::picture::reader::{PictureReader, ReadBudget};

/// A tag: number, type, values.
type Tag = (u16, u16, Vec<u32>);

/// A file of one strip at its end, with these tags besides width, height and the strip's own.
fn tiff(size: (u32, u32), tags: &[Tag], strip: &[u8]) -> Vec<u8> {
    let mut tags = tags.to_vec();
    tags.extend([(256, 4, vec![size.0]), (257, 4, vec![size.1])]);
    tags.extend([(273, 4, vec![0]), (279, 4, vec![strip.len() as u32])]);
    tags.sort_by_key(|tag| tag.0);
    let mut values = Vec::new();
    let behind = 8 + 2 + 12 * tags.len() + 4;
    let long: usize = (tags.iter())
        .map(|(_, kind, v)| v.len() * if *kind == 3 { 2 } else { 4 })
        .filter(|&bytes| bytes > 4)
        .sum();
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend((tags.len() as u16).to_le_bytes());
    for (tag, kind, numbers) in &tags {
        let mut bytes: Vec<u8> = match kind {
            3 => numbers
                .iter()
                .flat_map(|&v| (v as u16).to_le_bytes())
                .collect(),
            _ => numbers.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        if *tag == 273 {
            bytes = ((behind + long) as u32).to_le_bytes().to_vec();
        }
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend((numbers.len() as u32).to_le_bytes());
        if bytes.len() > 4 {
            file.extend(((behind + values.len()) as u32).to_le_bytes());
            values.extend(bytes);
        } else {
            bytes.resize(4, 0);
            file.extend(bytes);
        }
    }
    file.extend([0; 4]);
    file.extend(values);
    file.extend(strip);
    file
}

fn decoded(bytes: &[u8]) -> Result<Vec<u8>, SampleFault> {
    let limits = PictureLimits::default();
    let window = ReadBudget::for_header(FileFormat::Tiff);
    let mut file = PictureReader::of(bytes, &window);
    let picture = TiffPicture::read(&mut file, bytes.len() as u64, &limits)?;
    let mut frame = vec![0; super::decode::frame_bytes(picture.form(), picture.size()) as usize];
    picture.decode(bytes, &limits, &mut frame)?;
    Ok(frame)
}

fn rgb(compression: u32, strip: &[u8]) -> Vec<u8> {
    let tags = [
        (258, 3, vec![8, 8, 8]),
        (259, 3, vec![compression]),
        (262, 3, vec![2]),
        (277, 3, vec![3]),
    ];
    tiff((4, 3), &tags, strip)
}

#[test]
fn a_picture_of_one_strip_is_read() {
    let pixels: Vec<u8> = (0..36).collect();
    assert_eq!(decoded(&rgb(1, &pixels)).unwrap(), pixels);
    let runs = [&[35][..], &pixels].concat();
    assert_eq!(decoded(&rgb(32773, &runs)).unwrap(), pixels);
    assert_eq!(decoded(&rgb(32773, &[221, 7])).unwrap(), [7; 36]);
}

#[test]
fn no_cut_and_no_changed_byte_panics() {
    let pixels: Vec<u8> = (0..36).collect();
    for compression in [1, 2, 3, 4, 5, 7, 8, 32773, 50000, 50001] {
        let whole = rgb(compression, &pixels);
        for at in 0..whole.len() {
            let _ = decoded(&whole[..at]);
            for by in [1, 0x80, 0xff] {
                let mut broken = whole.clone();
                broken[at] ^= by;
                let _ = decoded(&broken);
            }
        }
    }
}

#[test]
fn what_is_not_read_is_named_with_its_fix() {
    let file = |tags: &[Tag]| tiff((4, 3), tags, &[0; 64]);
    let grey = |bits, format| {
        let tags = [
            (258, 3, vec![bits]),
            (262, 3, vec![1]),
            (339, 3, vec![format]),
        ];
        file(&tags)
    };
    for (bytes, word) in [
        (rgb(6, &[]), "JPEG of the old kind"),
        (rgb(34925, &[]), "LZMA"),
        (rgb(34887, &[]), "LERC"),
        (rgb(4, &[]), "Fax"),
        (grey(64, 1), "64 bits"),
        (grey(3, 1), "3 bits"),
        (grey(16, 5), "format 5"),
        (
            file(&[
                (258, 3, vec![8, 8, 8]),
                (262, 3, vec![8]),
                (277, 3, vec![3]),
            ]),
            "Lab",
        ),
    ] {
        let fault = decoded(&bytes).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unsupported, "{fault}");
        assert!(fault.reason.contains(word), "{fault}");
        assert!(fault.reason.contains("write it with"), "{fault}");
    }
}

#[test]
fn a_strip_that_is_short_is_truncated() {
    for compression in [1, 5, 8, 32773] {
        let fault = decoded(&rgb(compression, &[])).unwrap_err();
        assert!(
            matches!(fault.kind, FaultKind::Truncated | FaultKind::Corrupt),
            "{compression}: {fault}"
        );
    }
    let fault = decoded(&rgb(1, &[7; 35])).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Truncated, "{fault}");
}

#[test]
fn a_window_of_zstandard_is_bounded() {
    // A frame that requests a window of 1 GiB.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3, 1, 0, 0];
    let fault = decoded(&rgb(50000, &frame)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLarge, "{fault}");
}

#[cfg(feature = "codecs")]
#[test]
fn a_strip_of_jpeg_with_more_than_100_scans_fails_as_such_a_file() {
    use crate::picture::jpeg::fixtures::many_scans;
    let grey = |scans| {
        let tags = [
            (258, 3, vec![8]),
            (259, 3, vec![7]),
            (262, 3, vec![1]),
            (277, 3, vec![1]),
        ];
        decoded(&tiff((16, 16), &tags, &many_scans(scans, true)))
    };
    grey(100).unwrap();
    let fault = grey(101).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLarge);
    assert!(fault.reason.contains("more than 100 scans"), "{fault}");
}
