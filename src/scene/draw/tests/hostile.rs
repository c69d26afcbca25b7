//! Invalid tables and masks.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use super::*;
use crate::error::Result;
use crate::sys::sealed_bytes::SealedBytes;

fn bytes_of(table: &RayTable) -> Vec<u8> {
    let file = File::from(table.as_fd().try_clone_to_owned().unwrap());
    let mut bytes = vec![0; table.bytes() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn opened(bytes: &[u8]) -> Result<RayTable> {
    let sealed = SealedBytes::new("featherload-test", &[bytes])?;
    RayTable::from_fd(sealed.as_fd().try_clone_to_owned().unwrap())
}

struct Case {
    table: RayTable,
    mask: MaskBits,
}

/// A small table of each sampler, with images of every kind.
fn cases() -> Vec<Case> {
    let samplers = [
        RaySampler::Uniform,
        RaySampler::ByImage,
        RaySampler::Patches {
            size: 2,
            dilation: 3,
        },
        RaySampler::Pairs { radius: 3 },
    ];
    let case = |sampler: RaySampler| {
        let mut mask = random_mask((70, 6), 9, 3);
        if let RaySampler::Patches { size, dilation } = sampler {
            mask = erode(mask.view(), size, dilation);
        }
        let disc = RegionShape::Disc(CropDisc::new(4.0).unwrap());
        let of = |shape, mask| SamplingRegion { shape, mask };
        let images = [
            ((9, 8), SamplingRegion::WHOLE),
            ((70, 6), of(RegionShape::Whole, Some(mask.view()))),
            ((12, 9), of(disc, None)),
            ((12, 9), of(disc, None)),
            ((70, 6), of(disc, Some(mask.view()))),
            ((8, 7), of(RegionShape::Sphere, None)),
            ((70, 6), of(RegionShape::Sphere, Some(mask.view()))),
            ((2, 2), SamplingRegion::WHOLE),
        ];
        let table = table(sampler, 3, &images);
        Case { table, mask }
    };
    samplers.map(case).into()
}

/// Draws from a table that was accepted: its pixels must be in its images.
fn draw(table: &RayTable, mask: &MaskBits) {
    for step in [0, 9] {
        let step = table.step(step, 1);
        for ray in (0..40).chain([u64::MAX]) {
            let Ok(pixel) = table.pixel(&step, ray, |_| Some(mask.view())) else {
                continue;
            };
            let (width, height) = table.size(pixel.image).unwrap();
            assert!(pixel.row < height && pixel.col < width, "{pixel:?}");
        }
        let mut out = [ScenePixel::default(); 40];
        let _ = table.fill(&step, 1, |_| Some(mask.view()), &mut out);
    }
}

#[test]
fn another_process_sees_the_same_table() {
    for case in cases() {
        let fd = case.table.as_fd().try_clone_to_owned().unwrap();
        let other = RayTable::from_fd(fd).unwrap();
        assert_eq!(other.hash(), case.table.hash());
        assert_eq!(other.sampler(), case.table.sampler());
        assert_eq!(other.order(), case.table.order());
        let mask = |_| Some(case.mask.view());
        assert_eq!(
            drawn(&other, 3, 360, mask),
            drawn(&case.table, 3, 360, mask)
        );
        let masked: Vec<u32> = (0..9).filter(|&i| other.is_masked(i)).collect();
        assert_eq!(masked, [1, 4, 6]);
        assert_eq!((other.size(6), other.size(8)), (Some((70, 6)), None));
    }
}

/// Changes every number of every table in many ways: each is rejected or harmless.
#[test]
fn no_number_of_a_table_leads_out_of_it() {
    let (mut refused, mut harmless) = (0, 0);
    for case in cases() {
        let bytes = bytes_of(&case.table);
        draw(&opened(&bytes).unwrap(), &case.mask);
        for at in (0..bytes.len()).step_by(4) {
            let old = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            for new in [
                0,
                1,
                2,
                u32::MAX,
                1 << 31,
                old ^ 1,
                old ^ 1 << 31,
                old.wrapping_add(1),
                old.wrapping_sub(1),
                old.wrapping_mul(2),
                old.wrapping_add(1 << 16),
            ] {
                let mut changed = bytes.clone();
                changed[at..at + 4].copy_from_slice(&new.to_le_bytes());
                match opened(&changed) {
                    Ok(table) => {
                        draw(&table, &case.mask);
                        harmless += u32::from(new != old);
                    }
                    Err(error) => {
                        assert!(error.is_protocol(), "{error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    // Seed, joining, the size of a disc, and rows of a mask that still add up.
    assert!(refused > 5 * harmless, "{refused} refused, {harmless} not");
}

#[test]
fn a_table_that_is_cut_or_too_long_is_refused() {
    for case in cases() {
        let mut bytes = bytes_of(&case.table);
        for len in (0..bytes.len()).step_by(3).chain([bytes.len() - 1]) {
            assert!(opened(&bytes[..len]).unwrap_err().is_protocol());
        }
        bytes.extend([0; 8]);
        assert!(opened(&bytes).unwrap_err().is_protocol());
    }
}

#[test]
fn memory_that_is_not_sealed_is_refused() {
    let bytes = bytes_of(&cases()[0].table);
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    assert!(RayTable::from_fd(file.into()).is_err());
}

/// Rejected values of a table of two images of 4 x 3 pixels, one by one.
#[test]
fn numbers_that_do_not_add_up_are_refused() {
    let table = table(RaySampler::Uniform, 0, &wholes(&[(4, 3); 2]));
    let bytes = bytes_of(&table);
    // Header 64, two sums, two images of 32, the order.
    assert_eq!(bytes.len(), 64 + 16 + 64 + 8);
    let with = |at: usize, value: &[u8]| {
        let mut changed = bytes.clone();
        changed[at..at + value.len()].copy_from_slice(value);
        opened(&changed)
    };
    let both = |a: u32, b: u32| [a.to_le_bytes(), b.to_le_bytes()].concat();
    assert!(with(0, &bytes[..8]).is_ok());
    for (at, value, what) in [
        (0, both(0, 0), "another magic"),
        (32, both(2, 1), "fewer images drawn than there are sums"),
        (32, both(1, 2), "more drawn than images"),
        (44, both(4, 0), "an unknown sampler"),
        (44, both(3, 0), "a radius of 0"),
        (64, both(11, 0), "a sum too small"),
        (64, both(24, 0), "an image without units among those drawn"),
        (72, both(23, 0), "a total too small"),
        (88, both(5, 3), "an image larger than its sum"),
        (88, both(u32::MAX, u32::MAX), "an image too large"),
        (96, both(1, 0), "a disc without rows"),
        (96, both(3, 0), "an unknown shape"),
        (144, both(0, 0), "an image twice"),
        (144, both(0, 2), "an image that is not there"),
    ] {
        assert!(with(at, &value).is_err(), "{what}");
    }
}

/// Sums that add up, for images that must not be drawn from.
#[test]
fn images_of_no_pixels_or_too_many_are_not_drawn_from() {
    let table = table(RaySampler::Uniform, 0, &wholes(&[(4, 3); 2]));
    let bytes = bytes_of(&table);
    let first = 80 + 32 * table.order()[0] as usize;
    let with = |width: u32, height: u32, sums: [u64; 2]| {
        let mut changed = bytes.clone();
        changed[64..80].copy_from_slice(bytemuck::bytes_of(&sums));
        let size = [width, height];
        changed[first + 8..first + 16].copy_from_slice(bytemuck::bytes_of(&size));
        opened(&changed)
    };
    assert!(with(65_535, 65_537, [u64::from(u32::MAX), (1 << 32) + 11]).is_ok());
    assert!(with(65_536, 65_536, [1 << 32, (1 << 32) + 12]).is_err());
    assert!(with(0, 3, [0, 12]).is_err());
}

#[test]
fn a_mask_that_was_not_counted_gives_no_pixel() {
    let size = (70, 6);
    let mask = random_mask(size, 5, 3);
    let zeros = vec![0; mask_words(70, 6) as usize];
    let empty = MaskView::new(&zeros, 70, 6).unwrap();
    let narrow = MaskBits::from_pixels(&[1; 60], 10, 6).unwrap();
    for sampler in [RaySampler::Uniform, RaySampler::Pairs { radius: 1 }] {
        let table = table(sampler, 0, &[(size, SamplingRegion::masked(mask.view()))]);
        let step = table.step(0, 0);
        for wrong in [None, Some(empty), Some(narrow.view())] {
            for ray in 0..4 {
                let got = table.pixel(&step, ray, |_| wrong);
                assert_eq!(got, Err(WrongMask { image: 0 }));
            }
            let mut out = [ScenePixel::default(); 4];
            assert!(table.fill(&step, 0, |_| wrong, &mut out).is_err());
        }
        assert!(table.pixel(&step, 1, |_| Some(mask.view())).is_ok());
    }
}
