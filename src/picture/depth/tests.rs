use std::io::Cursor;

use ::tiff::encoder::{TiffEncoder, colortype};
use exr::prelude::{AnyChannel, AnyChannels, Encoding, FlatSamples, Image, Layer};
use exr::prelude::{LayerAttributes, SmallVec, WritableImage};
use image::{ImageBuffer, ImageFormat, Luma, Rgb};

use super::{needed_bytes, read};
use crate::error::{FaultKind, SampleFault};
use crate::picture::limits::PictureLimits;

const COLS: u32 = 7;
const ROWS: u32 = 5;

fn png<P, C>(image: &ImageBuffer<P, C>) -> Vec<u8>
where
    P: image::Pixel + image::PixelWithColorType,
    [P::Subpixel]: image::EncodableLayout,
    C: std::ops::Deref<Target = [P::Subpixel]>,
{
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// A file as `numpy.save` writes it.
fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    let text = format!("{text:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\0\x76\0".to_vec();
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

fn tiff(write: impl FnOnce(&mut TiffEncoder<&mut Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    write(&mut TiffEncoder::new(&mut bytes).unwrap());
    bytes.into_inner()
}

fn openexr(channels: &[(&str, FlatSamples)]) -> Vec<u8> {
    let list: SmallVec<[AnyChannel<FlatSamples>; 4]> = (channels.iter())
        .map(|(name, samples)| AnyChannel::new(*name, samples.clone()))
        .collect();
    let layer = Layer::new(
        (COLS as usize, ROWS as usize),
        LayerAttributes::named("depth"),
        Encoding::FAST_LOSSLESS,
        AnyChannels::sort(list),
    );
    let mut bytes = Cursor::new(Vec::new());
    let image = Image::from_layer(layer);
    image
        .write()
        .non_parallel()
        .to_buffered(&mut bytes)
        .unwrap();
    bytes.into_inner()
}

fn levels(bytes: &[u8]) -> Result<Vec<f32>, SampleFault> {
    let mut levels = vec![9.0; 3];
    let limits = PictureLimits::default();
    let size = read(bytes, &limits, &|_| Ok(()), &mut levels)?;
    assert_eq!(size, (ROWS, COLS));
    let needed = needed_bytes(&mut Cursor::new(bytes), &limits);
    assert!(needed >= 4 * u64::from(ROWS * COLS), "{needed}");
    Ok(levels)
}

fn metres() -> Vec<f32> {
    (0..ROWS * COLS).map(|at| at as f32 * 0.25 - 1.0).collect()
}

fn bytes<const N: usize>(each: impl Fn(f32) -> [u8; N]) -> Vec<u8> {
    metres().into_iter().flat_map(each).collect()
}

#[test]
fn levels_are_as_the_file_has_them() {
    let deep = ImageBuffer::from_fn(COLS, ROWS, |x, y| Luma([(y * 9000 + x * 301) as u16]));
    let wanted: Vec<f32> = deep.as_raw().iter().map(|v| f32::from(*v)).collect();
    assert_eq!(levels(&png(&deep)).unwrap(), wanted);
    let file = tiff(|file| {
        file.write_image::<colortype::Gray16>(COLS, ROWS, deep.as_raw())
            .unwrap();
    });
    assert_eq!(levels(&file).unwrap(), wanted);
    let flat = ImageBuffer::from_fn(COLS, ROWS, |x, y| Luma([(y * 40 + x) as u8]));
    let wanted: Vec<f32> = flat.as_raw().iter().map(|v| f32::from(*v)).collect();
    assert_eq!(levels(&png(&flat)).unwrap(), wanted);
    let file = tiff(|file| {
        file.write_image::<colortype::Gray8>(COLS, ROWS, flat.as_raw())
            .unwrap();
    });
    assert_eq!(levels(&file).unwrap(), wanted);
    // Grey that is stored as colours.
    let grey = ImageBuffer::from_fn(COLS, ROWS, |x, y| Rgb([(y * 40 + x) as u8; 3]));
    assert_eq!(levels(&png(&grey)).unwrap(), wanted);
}

#[test]
fn floats_are_as_the_file_has_them() {
    let file = tiff(|file| {
        file.write_image::<colortype::Gray32Float>(COLS, ROWS, &metres())
            .unwrap();
    });
    assert_eq!(levels(&file).unwrap(), metres());
    for shape in ["(5, 7)", "(5, 7, 1)"] {
        for (descr, data) in [
            ("<f4", bytes(f32::to_le_bytes)),
            (">f4", bytes(f32::to_be_bytes)),
            ("<f8", bytes(|v| f64::from(v).to_le_bytes())),
            ("<f2", bytes(|v| half::f16::from_f32(v).to_le_bytes())),
        ] {
            assert_eq!(
                levels(&npy(descr, false, shape, &data)).unwrap(),
                metres(),
                "{descr}"
            );
        }
    }
    let columns = (0..COLS).flat_map(|x| (0..ROWS).map(move |y| y * COLS + x));
    let turned: Vec<u8> = columns
        .flat_map(|at| metres()[at as usize].to_le_bytes())
        .collect();
    assert_eq!(
        levels(&npy("<f4", true, "(5, 7)", &turned)).unwrap(),
        metres()
    );
    for names in [vec!["Z"], vec!["depth.V"], vec!["R", "G", "B"], vec!["any"]] {
        let channels: Vec<_> = (names.iter())
            .map(|name| (*name, FlatSamples::F32(metres())))
            .collect();
        assert_eq!(levels(&openexr(&channels)).unwrap(), metres(), "{names:?}");
    }
}

#[test]
fn integers_of_arrays_are_as_numpy_has_them() {
    let wanted: Vec<f32> = (0..ROWS * COLS).map(|at| at as f32).collect();
    let data = |width: usize| -> Vec<u8> {
        (0..ROWS * COLS)
            .flat_map(|at| u64::from(at).to_le_bytes()[..width].to_vec())
            .collect()
    };
    for descr in ["|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8"] {
        let width = usize::from(descr.as_bytes()[2] - b'0');
        let found = levels(&npy(descr, false, "(5, 7)", &data(width))).unwrap();
        assert_eq!(found, wanted, "{descr}");
    }
}

#[test]
fn what_is_no_depth_is_refused_with_words() {
    let color = png(&ImageBuffer::from_pixel(COLS, ROWS, Rgb([1u8, 2, 3])));
    let red: Vec<f32> = metres().iter().map(|v| v + 1.0).collect();
    let mixed = openexr(&[
        ("R", FlatSamples::F32(red)),
        ("G", FlatSamples::F32(metres())),
        ("B", FlatSamples::F32(metres())),
    ]);
    for (file, words) in [
        (color, "in colours"),
        (mixed, "in colours"),
        (npy("<f4", false, "(5, 7, 2)", &[0; 280]), "(H, W, 1)"),
        (npy("<c8", false, "(5, 7)", &[0; 280]), "'<c8'"),
        (npy("<f4", false, "(5, 7)", &[0; 139]), "ends before"),
        (b"\xff\xd8\xff\xe0 a JPEG".to_vec(), "PNG, TIFF, OpenEXR"),
        (Vec::new(), "PNG, TIFF, OpenEXR"),
    ] {
        let fault = levels(&file).unwrap_err();
        assert!(fault.reason.contains(words), "{words}: {fault}");
    }
    let deep = png(&ImageBuffer::from_pixel(COLS, ROWS, Luma([700u16])));
    for cut in [20, deep.len() - 20] {
        assert!(levels(&deep[..cut]).is_err(), "{cut}");
    }
    let limits = PictureLimits {
        max_pixels: 34,
        ..PictureLimits::default()
    };
    let fault = read(&deep, &limits, &|_| Ok(()), &mut Vec::new()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLarge);
    let limits = PictureLimits {
        max_scratch: 100,
        ..PictureLimits::default()
    };
    let fault = read(&deep, &limits, &|_| Ok(()), &mut Vec::new()).unwrap_err();
    assert!(fault.reason.contains("max_scratch"), "{fault}");
    assert_eq!(needed_bytes(&mut Cursor::new(&deep), &limits), 0);
}
