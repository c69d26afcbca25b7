//! Size and coding of photos.

use super::encode::{ChromaSampling, JpegCoding, JpegOptions};
use super::random::{RandomStream, hash};

/// Sizes and their frequency in percent, after ImageNet. The rest has odd sizes.
const COMMON: [(u16, u16, u32); 4] = [
    (500, 375, 38),
    (375, 500, 14),
    (500, 333, 15),
    (333, 500, 6),
];
/// Short side against long side, in sixteenths.
const RATIOS: [u16; 5] = [9, 11, 12, 12, 16];
/// Formats repeat after this many images, each time from another start. So a small set has all
/// formats, and each class has several.
const CYCLE: u64 = 32;

/// The format of image `i` of the set.
pub(super) fn coding(seed: u64, i: u64) -> JpegCoding {
    let turn = hash(hash(seed, 1), i / CYCLE);
    // 13 and 32 have no common divisor, so each format comes once in a cycle. Neighbours, which
    // belong to different classes, get formats that are far apart.
    JpegCoding::Jpeg(match (i % CYCLE * 13).wrapping_add(turn) % CYCLE {
        0 => JpegOptions::Grey,
        1 => JpegOptions::Progressive(ChromaSampling::Full),
        2 => JpegOptions::Progressive(ChromaSampling::Quarter),
        3..=9 => JpegOptions::Baseline(ChromaSampling::Quarter),
        _ => JpegOptions::Baseline(ChromaSampling::Full),
    })
}

pub(super) fn size(s: &mut RandomStream) -> (u16, u16) {
    let mut part = s.below(100);
    for (width, height, parts) in COMMON {
        if part < parts {
            return (width, height);
        }
        part -= parts;
    }
    // Each doubling is less frequent than the one before.
    let (low, spread) = match s.below(16) {
        0..=7 => (200, 201),
        8..=13 => (400, 401),
        _ => (800, 801),
    };
    let long = (low + s.below(spread)) as u16;
    let ratio = RATIOS[s.below(RATIOS.len() as u32) as usize];
    let short = (u32::from(long) * u32::from(ratio) / 16) as u16;
    if s.below(3) == 0 {
        (short, long)
    } else {
        (long, short)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::args::DemoKind;
    use super::super::picture::DemoPicture;
    use super::*;

    fn set(n: u64) -> Vec<DemoPicture> {
        let photo = |i| DemoPicture::new(DemoKind::Photos, 0, i, i % 8);
        (0..n).map(photo).collect()
    }

    #[test]
    fn sizes_are_imagenets() {
        let photos = set(5000);
        let mean = photos.iter().map(DemoPicture::pixels).sum::<u64>() / 5000;
        assert!((190_000..215_000).contains(&mean), "{mean}");
        let common = photos
            .iter()
            .filter(|p| [375, 333].contains(&p.width.min(p.height)));
        assert!((3300..4000).contains(&common.count()));
        let long = |p: &DemoPicture| p.width.max(p.height);
        assert!(photos.iter().all(|p| (200..=1600).contains(&long(p))));
        assert!(photos.iter().any(|p| long(p) > 1500) && photos.iter().any(|p| long(p) < 220));
        assert!(photos.iter().all(|p| (75..=95).contains(&p.quality)));
    }

    #[test]
    fn three_quarters_of_the_colour_pictures_keep_all_their_chroma() {
        let photos = set(256);
        let count = |form| {
            photos
                .iter()
                .filter(|p| p.coding == JpegCoding::Jpeg(form))
                .count()
        };
        assert_eq!(count(JpegOptions::Grey), 8);
        assert_eq!(count(JpegOptions::Progressive(ChromaSampling::Full)), 8);
        assert_eq!(count(JpegOptions::Progressive(ChromaSampling::Quarter)), 8);
        assert_eq!(count(JpegOptions::Baseline(ChromaSampling::Quarter)), 56);
        assert_eq!(count(JpegOptions::Baseline(ChromaSampling::Full)), 176);
    }

    #[test]
    fn no_form_belongs_to_one_class() {
        let grey: HashSet<usize> = set(256)
            .iter()
            .enumerate()
            .filter_map(|(i, p)| (p.coding == JpegCoding::Jpeg(JpegOptions::Grey)).then_some(i % 8))
            .collect();
        assert!(grey.len() > 2, "{grey:?}");
    }

    /// Facts from the file's header: frame marker, size and first sampling factor.
    fn frame(jpeg: &[u8]) -> (u8, u16, u16, u8, u8) {
        let mut at = 2;
        loop {
            assert_eq!(jpeg[at], 0xff);
            let marker = jpeg[at + 1];
            let word = |i: usize| u16::from_be_bytes([jpeg[at + i], jpeg[at + i + 1]]);
            if matches!(marker, 0xc0..=0xc2) {
                return (marker, word(7), word(5), jpeg[at + 9], jpeg[at + 11]);
            }
            at += 2 + usize::from(word(2));
        }
    }

    #[test]
    fn files_are_what_their_form_says() {
        let mut photo = DemoPicture::new(DemoKind::Photos, 0, 0, 0);
        (photo.width, photo.height) = (90, 50);
        for (form, marker, parts, sampling) in [
            (JpegOptions::Grey, 0xc0, 1, 0x11),
            (JpegOptions::Baseline(ChromaSampling::Full), 0xc0, 3, 0x11),
            (
                JpegOptions::Baseline(ChromaSampling::Quarter),
                0xc0,
                3,
                0x22,
            ),
            (
                JpegOptions::Progressive(ChromaSampling::Full),
                0xc2,
                3,
                0x11,
            ),
            (
                JpegOptions::Progressive(ChromaSampling::Quarter),
                0xc2,
                3,
                0x22,
            ),
        ] {
            photo.coding = JpegCoding::Jpeg(form);
            let jpeg = photo.encode().unwrap();
            assert_eq!(frame(&jpeg), (marker, 90, 50, parts, sampling), "{form:?}");
            assert_eq!(jpeg[jpeg.len() - 2..], [0xff, 0xd9]);
        }
    }

    #[test]
    fn files_are_as_large_as_photos() {
        let photos = set(24);
        let bytes: usize = photos.iter().map(|p| p.encode().unwrap().len()).sum();
        let pixels: u64 = photos.iter().map(DemoPicture::pixels).sum();
        let bits = bytes as f64 * 8.0 / pixels as f64;
        assert!((3.0..5.5).contains(&bits), "{bits} bits a pixel");
    }
}
