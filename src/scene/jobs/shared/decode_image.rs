//! Decodes the file of an image into the image store.
//!
//! Runs in workers, and in the consumer with zero workers. Not here: which process decodes which
//! image, rays.

use crate::data::index::Index;
use crate::device::jpeg_part::PartLimits;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::open_shards::AccessPattern;
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::jobs::sample_input::{InputMode, SampleInput};
use crate::order::PositionRandom;
use crate::picture::jpeg::gpu_rows::CodedPicture;
use crate::picture::jpeg::{self, DecodeScale, JpegDecoder, PixelRegion};
use crate::picture::{AlphaPolicy, FileFormat, depth, grow};
use crate::pool::worker::meter::StageMeter;
use crate::scene::jobs::shared::frames::{StoredFrame, StoredFrames};
use crate::scene::jobs::shared::program::{DecodeTarget, image_program, is_opaque};
use crate::scene::jobs::shared::spec::StoreSpec;
use crate::sys::memory;
use crate::sys::panics::catch_panic;

/// Decodes images and depths of a scene.
#[derive(Debug)]
pub(super) struct SceneDecoder {
    input: SampleInput,
    colors: ColorDecoder,
    levels: Vec<f32>,
    /// Unused: coded images are written in place.
    coded: jpeg::JpegScratch,
}

/// Decodes colours and alpha.
#[derive(Debug)]
struct ColorDecoder {
    spec: StoreSpec,
    /// One decoder for each target. Empty before the first image and after the last.
    decoders: Vec<(DecodeTarget, SampleDecoder)>,
    /// Colours and alpha as separate arrays, before they are merged.
    planes: [Vec<u8>; 2],
}

impl SceneDecoder {
    pub(super) fn new(spec: &StoreSpec, mode: InputMode) -> Result<Self> {
        Ok(Self {
            input: SampleInput::new(mode, spec.limits.max_scratch, AccessPattern::InOrder),
            colors: ColorDecoder {
                spec: *spec,
                decoders: Vec::new(),
                planes: Default::default(),
            },
            levels: Vec::new(),
            coded: jpeg::JpegScratch::default(),
        })
    }

    /// Decodes image `image` to `out`, followed by its depths. Sets `at_fault` to the file that a
    /// fault is about.
    pub(super) fn decode(
        &mut self,
        index: &Index,
        frames: &StoredFrames,
        image: usize,
        out: &mut [u8],
        at_fault: &mut u64,
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let (Some(frame), Some(camera), Some(colors)) = (
            frames.frames.get(image),
            frames.camera(image),
            frames.color_bytes(image),
        ) else {
            let text = "there is no such image in the scene";
            return Err(SampleFault::new(FaultKind::Unknown, text));
        };
        let size = (camera.height, camera.width);
        let file = self.input.open(index, image as u64)?;
        meter.bytes += file.len() as u64;
        let colors = out.get_mut(..colors).ok_or_else(short_range_fault)?;
        let maker = &mut self.colors;
        match frames.alpha {
            true => maker.fill_with_alpha(&file, frame, size, colors, meter)?,
            false => {
                let made = DecodeTarget {
                    transparency: AlphaPolicy::Composite(maker.spec.background),
                    resizes: size != frame.file_size,
                };
                maker.fill(&file, frame, size, made, colors, meter)?;
            }
        }
        drop(file);
        if let (Some(file), Some(begin)) = (frames.depth_file(image), frames.depth_begin(image)) {
            *at_fault = file;
            let depths = out.get_mut(begin..).ok_or_else(short_range_fault)?;
            self.fill_depths(index, file, frame, size, depths, meter)?;
        }
        Ok(())
    }

    /// Writes the coded image for a device that decodes within `limits`. The image's pixels must be
    /// those of its file. Returns the number of bytes, or `None` if the device does not accept the
    /// file: then [`SceneDecoder::decode`] must decode it.
    pub(super) fn write_coded(
        &mut self,
        (index, frames): (&Index, &StoredFrames),
        image: usize,
        limits: &PartLimits,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Option<usize> {
        let (height, width) = frames.frames.get(image)?.file_size;
        let file = self.input.open(index, image as u64).ok()?;
        let decoder = JpegDecoder::new(&self.colors.spec.limits);
        let scratch = &self.coded;
        let write = || {
            if FileFormat::of(&file).ok()? != FileFormat::Jpeg {
                return None;
            }
            let header = jpeg::read_header(&file).ok()?;
            let whole = PixelRegion {
                x: 0,
                y: 0,
                w: width,
                h: height,
            };
            if (header.width, header.height) != (width, height) {
                return None;
            }
            let file = (&file[..], &header);
            let bytes = decoder.write_coded(file, DecodeScale::Full, whole, scratch, out)?;
            // The consumer makes the same check. A row that fails there would end the run.
            let coded = CodedPicture::read(&out[..bytes]).ok()?;
            limits.hold(&coded).then_some(bytes)
        };
        let written = catch_panic(write).flatten()?;
        meter.bytes += file.len() as u64;
        Some(written)
    }

    /// Reads the depths of an image at the image's size in the store.
    fn fill_depths(
        &mut self,
        index: &Index,
        number: u64,
        frame: &StoredFrame,
        size: (u32, u32),
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let file = self.input.open(index, number)?;
        meter.bytes += file.len() as u64;
        let admit = |found: (u32, u32)| check_depth_shape(found, frame.file_size);
        let (limits, levels) = (&self.colors.spec.limits, &mut self.levels);
        let read = || depth::read(&file, limits, &admit, levels);
        let found = catch_panic(read).unwrap_or_else(|| {
            let text = "decoding this depth panicked: please report it with the file";
            Err(SampleFault::new(FaultKind::Corrupt, text))
        })?;
        let [rows, cols] = [
            nearest_rows(size.0, frame.file_size.0, found.0),
            nearest_rows(size.1, frame.file_size.1, found.1),
        ];
        let lines = out.chunks_exact_mut(size_of::<f32>() * size.1 as usize);
        for (line, row) in lines.zip(&rows) {
            let from = self.levels.chunks_exact(found.1 as usize).nth(*row);
            let from = from.ok_or_else(short_range_fault)?;
            for (to, col) in line.as_chunks_mut::<4>().0.iter_mut().zip(&cols) {
                *to = from[*col].to_ne_bytes();
            }
        }
        Ok(())
    }

    /// Frees the decoders. No image will be decoded any more.
    pub(super) fn release_decoders(&mut self) {
        let colors = &mut self.colors;
        if !colors.decoders.is_empty() {
            colors.decoders = Vec::new();
            colors.planes = Default::default();
            self.levels = Vec::new();
            memory::trim_heap();
        }
    }
}

impl ColorDecoder {
    fn fill(
        &mut self,
        file: &[u8],
        frame: &StoredFrame,
        size: (u32, u32),
        made: DecodeTarget,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let found = self.decoders.iter().position(|(of, _)| *of == made);
        let at = match found {
            Some(at) => at,
            None => {
                let decoder = image_program(made)
                    .and_then(|program| SampleDecoder::new(&program, &self.spec.limits))
                    .map_err(|e| SampleFault::new(FaultKind::Unknown, e.to_string()))?;
                self.decoders.push((made, decoder));
                self.decoders.len() - 1
            }
        };
        let request = RowRequest {
            // The program makes no random draws.
            random: &PositionRandom::new(0, 0, 0),
            size: made.resizes.then_some(size),
            part: None,
            boxes: None,
            check_size: &|found| check_size(found, frame.file_size),
        };
        self.decoders[at].1.make_row(file, &request, out, meter)
    }

    /// Decodes red, green, blue and alpha. When the image is made smaller, colours are weighted by
    /// their alpha, as in Pillow. So transparent pixels leave no fringes at edges.
    fn fill_with_alpha(
        &mut self,
        file: &[u8],
        frame: &StoredFrame,
        size: (u32, u32),
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let [mut colors, mut alpha] = std::mem::take(&mut self.planes);
        let filled = self.decode_channels(file, frame, size, [&mut colors, &mut alpha], meter);
        if filled.is_ok() {
            let premultiplied = size != frame.file_size;
            let pixels = colors
                .as_chunks::<3>()
                .0
                .iter()
                .zip(alpha.as_chunks::<3>().0);
            for ((rgb, [a, ..]), to) in pixels.zip(out.as_chunks_mut::<4>().0) {
                let [r, g, b] = match premultiplied {
                    true => rgb.map(|v| unmultiplied(v, *a)),
                    false => *rgb,
                };
                *to = [r, g, b, *a];
            }
        }
        self.planes = [colors, alpha];
        filled
    }

    fn decode_channels(
        &mut self,
        file: &[u8],
        frame: &StoredFrame,
        size: (u32, u32),
        [colors, alpha]: [&mut Vec<u8>; 2],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let len = 3 * size.0 as usize * size.1 as usize;
        grow(colors, len)?;
        grow(alpha, len)?;
        let resizes = size != frame.file_size;
        let made = DecodeTarget::separate_colors(resizes);
        self.fill(file, frame, size, made, &mut colors[..len], meter)?;
        if is_opaque(FileFormat::of(file)?) {
            alpha[..len].fill(255);
            return Ok(());
        }
        let made = DecodeTarget::separate_alpha(resizes);
        self.fill(file, frame, size, made, &mut alpha[..len], meter)
    }
}

/// Divides a colour by its alpha, to undo a multiplication.
fn unmultiplied(v: u8, alpha: u8) -> u8 {
    match alpha {
        0 => 0,
        a => ((u16::from(v) * 255 + u16::from(a) / 2) / u16::from(a)).min(255) as u8,
    }
}

#[cold]
fn short_range_fault() -> SampleFault {
    SampleFault::new(
        FaultKind::Unknown,
        "its range in the image store is too small",
    )
}

/// For each of `of` output pixels, the index among the `among` pixels of the depth file. First
/// takes the pixel that contains the centre, of `image` pixels. Then maps it to the file as
/// OpenCV's `INTER_NEAREST` does, with which nerfstudio resizes depths.
fn nearest_rows(of: u32, image: u32, among: u32) -> Vec<usize> {
    let per_pixel = 1.0 / (f64::from(image) / f64::from(among));
    let place = |at: u32| {
        let pixel = (2 * u64::from(at) + 1) * u64::from(image) / (2 * u64::from(of));
        let place = match image == among {
            true => pixel,
            false => (pixel as f64 * per_pixel).floor() as u64,
        };
        place.min(u64::from(among.saturating_sub(1))) as usize
    };
    (0..of).map(place).collect()
}

/// Largest relative difference of aspect ratios: depth sensors have other pixels than cameras.
const ASPECT: f64 = 0.05;

/// Checks that a depth has the aspect ratio of its image, at any size. Both sizes are (height,
/// width).
fn check_depth_shape(found: (u32, u32), image: (u32, u32)) -> Result<(), SampleFault> {
    let aspect = |(height, width): (u32, u32)| f64::from(width) / f64::from(height);
    let ratio = aspect(found) / aspect(image);
    if found == image || (1.0 - ASPECT..=1.0 + ASPECT).contains(&ratio) {
        return Ok(());
    }
    Err(SampleFault::new(
        FaultKind::Changed,
        format!(
            "the depth is {} x {}, but its image is {} x {}, which is another shape: resize the \
             depth to the image's width and height, remove it, or read no depths",
            found.1, found.0, image.1, image.0
        ),
    ))
}

fn check_size(found: (u32, u32), wanted: (u32, u32)) -> Result<(), SampleFault> {
    if found == wanted {
        return Ok(());
    }
    Err(SampleFault::new(
        FaultKind::Changed,
        format!(
            "changed since the scene was read: the image was {} x {}, and is now {} x {}",
            wanted.1, wanted.0, found.1, found.0
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depth_has_the_shape_of_its_image() {
        for (found, image) in [
            ((40, 60), (20, 30)),
            ((41, 60), (20, 30)),
            ((1081, 1920), (270, 480)),
            ((20, 30), (20, 30)),
            // Of ScanNet.
            ((480, 640), (968, 1296)),
        ] {
            assert_eq!(check_depth_shape(found, image), Ok(()), "{found:?}");
        }
        for (found, image) in [
            ((100, 40), (20, 30)),
            ((60, 40), (20, 30)),
            ((44, 60), (20, 30)),
        ] {
            let fault = check_depth_shape(found, image).unwrap_err();
            assert!(fault.reason.contains("resize the depth"), "{fault}");
        }
    }

    /// `cv2.resize(np.arange(among)[None], (image, 1), interpolation=cv2.INTER_NEAREST)`.
    #[test]
    fn depths_of_another_size_are_resized_as_opencv_does() {
        assert_eq!(nearest_rows(4, 4, 8), [0, 2, 4, 6]);
        assert_eq!(nearest_rows(8, 8, 4), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(nearest_rows(5, 5, 7), [0, 1, 2, 4, 5]);
        assert_eq!(nearest_rows(7, 7, 5), [0, 0, 1, 2, 2, 3, 4]);
        assert_eq!(nearest_rows(6, 6, 6), [0, 1, 2, 3, 4, 5]);
        // At half the image's size: the pixel in the middle, as of an image.
        assert_eq!(nearest_rows(3, 6, 6), [1, 3, 5]);
        assert_eq!(nearest_rows(3, 6, 12), [2, 6, 10]);
    }
}
