//! A raster of a sample in a cache: the bytes of its file, or a resized raster.
//!
//! Runs in workers, and in the consumer with zero workers. `raster_form` has the formats.

use std::path::Path;

use crate::data::index::Index;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::encode::encoding::{CacheEncoding, CacheResize};
use crate::jobs::encode::raster_form::{RasterForm, resizing_rule, scaled};
use crate::jobs::open_shards::AccessPattern;
use crate::jobs::raster_rule::{MASKS, NamedRaster, RasterRule};
use crate::jobs::sample::raster_maker::RasterMaker;
use crate::jobs::sample::raster_size::{size_fault, stored_size};
use crate::jobs::sample::{self, RowRequest};
use crate::jobs::sample_input::{InputMode, SampleInput};
use crate::order::PositionRandom;
use crate::picture::{LabelForm, PictureLimits, flow, npy};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::SampleProgram;

/// Bytes of a number or a label of a resized raster.
const NUMBER: usize = 4;

/// Makes the rasters of one name, one after the other.
#[derive(Debug)]
pub(super) struct RasterPayloadMaker {
    /// As texts name it: `mask`, or `raster` and its name.
    what: String,
    rule: RasterRule,
    storing: (CacheEncoding, Option<CacheResize>),
    index: Index,
    input: SampleInput,
    limits: PictureLimits,
    /// None: rasters stay as they are.
    maker: Option<RasterMaker>,
    /// The last resized raster: numbers, labels or colours.
    resized: Vec<u8>,
}

impl RasterPayloadMaker {
    /// `program`: that of the images, if they are resized.
    pub(super) fn new(
        raster: &NamedRaster,
        index: Index,
        storing: (CacheEncoding, Option<CacheResize>),
        program: Option<&SampleProgram>,
        limits: &PictureLimits,
        (mode, pattern): (InputMode, AccessPattern),
    ) -> Result<Self> {
        let rule = resizing_rule(&raster.rule);
        let maker = program.map(|program| RasterMaker::new(program, &rule, limits));
        Ok(Self {
            what: match &*raster.name {
                MASKS => "mask".to_owned(),
                name => format!("raster {name}"),
            },
            rule: raster.rule.clone(),
            storing,
            index,
            input: SampleInput::new(mode, limits.max_scratch, pattern),
            limits: *limits,
            maker: maker.transpose()?,
            resized: Vec::new(),
        })
    }

    /// Bytes of the largest page of packed files.
    pub(super) fn largest_page(&self) -> u64 {
        self.index.largest_page()
    }

    /// Writes the raster of sample `id`, whose upright image has this height and width, and `output`
    /// in the cache. Returns its bytes.
    pub(super) fn fill(
        &mut self,
        id: u64,
        image: (u32, u32),
        output: (u32, u32),
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<usize, SampleFault> {
        let path = self.index.path(id);
        let filled = self.fill_unnamed(id, image, output, out, meter);
        // Before the next raster of the sample, which needs memory of its own.
        if self.resized.capacity() > sample::KEEP {
            self.resized = Vec::new();
        }
        filled.map_err(|fault| {
            let reason = format!("{} {}: {}", self.what, path.display(), fault.reason);
            SampleFault::new(fault.kind, reason)
        })
    }

    fn fill_unnamed(
        &mut self,
        id: u64,
        image: (u32, u32),
        output: (u32, u32),
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<usize, SampleFault> {
        let file = self
            .input
            .open_metered(&self.index, id, Some(&mut *meter))?;
        meter.bytes += file.len() as u64;
        let form = RasterForm::of(&self.rule, self.storing, self.index.relative_path(id));
        let Some(maker) = &mut self.maker else {
            check_size((&self.rule, self.storing.0), &file, image, &self.limits)?;
            let changed = || FaultKind::Changed.fault("changed since its length was read");
            let to = out.get_mut(..file.len()).ok_or_else(changed)?;
            to.copy_from_slice(&file);
            return Ok(file.len());
        };
        let (size, pixel) = match form {
            RasterForm::ImagePng { scale } | RasterForm::ImageArray { scale } => {
                (scaled(output, scale), 3)
            }
            RasterForm::Flow => (output, 2 * NUMBER),
            RasterForm::Copied
            | RasterForm::LabelPng(_)
            | RasterForm::NumberPng
            | RasterForm::NumberArray => (output, NUMBER),
        };
        let bytes = pixel * size.0 as usize * size.1 as usize;
        self.resized.clear();
        let room = self.resized.try_reserve_exact(bytes);
        room.map_err(|_| FaultKind::TooLarge.fault("there is no memory for the resized raster"))?;
        self.resized.resize(bytes, 0);
        let request = RowRequest {
            // The program draws no random numbers.
            random: &PositionRandom::new(0, 0, 0),
            size: Some(output),
            part: None,
            boxes: None,
            check_size: &|_| Ok(()),
        };
        maker.make(&file, image, &request, &mut self.resized, meter)?;
        let path = self.index.relative_path(id);
        let stored = encode(form, &self.resized, size, path)?;
        let to = out.get_mut(..stored.len());
        let to = to.ok_or_else(|| FaultKind::TooLarge.fault("it exceeds its room in the row"))?;
        to.copy_from_slice(&stored);
        Ok(stored.len())
    }
}

/// Rejects a file of another size than its upright image, whose height and width are given. An
/// image whose bytes are copied may be used as stored, so its numbers may have that size.
fn check_size(
    (rule, encode): (&RasterRule, CacheEncoding),
    file: &[u8],
    image: (u32, u32),
    limits: &PictureLimits,
) -> Result<(), SampleFault> {
    let scale = match rule {
        RasterRule::Image(rule) => rule.scale,
        _ => 1,
    };
    let found = stored_size(rule, file, limits)?;
    let may_be_stored = encode == CacheEncoding::Copy && !matches!(rule, RasterRule::Image(_));
    match found == scaled(image, scale) || (may_be_stored && (found.1, found.0) == image) {
        true => Ok(()),
        false => Err(size_fault(found, image, scale)),
    }
}

/// The file of a resized raster of this height and width. `path`: of its file in the source.
fn encode(
    form: RasterForm,
    raster: &[u8],
    size: (u32, u32),
    path: &Path,
) -> Result<Vec<u8>, SampleFault> {
    let words = || raster.as_chunks::<NUMBER>().0.iter();
    let numbers = || words().map(|word| f32::from_ne_bytes(*word));
    match form {
        RasterForm::LabelPng(labels) => {
            let all = words().map(|word| i32::from_ne_bytes(*word) as u32);
            encode_labels(&all.collect::<Vec<_>>(), size, labels)
        }
        RasterForm::NumberPng => {
            let whole = |n: f32| (n.fract() == 0.0 && (0.0..=65535.0).contains(&n)).then_some(n);
            let all: Option<Vec<u32>> = numbers().map(|n| Some(whole(n)? as u32)).collect();
            let all = all.ok_or_else(|| {
                FaultKind::Unsupported.fault(format!(
                    "{} is no PNG, and has numbers that a PNG does not hold: give it the \
                     extension of its format",
                    path.display()
                ))
            })?;
            encode_labels(&all, size, LabelForm::Numbers)
        }
        RasterForm::NumberArray => {
            let mut file = npy::number_header(size).to_vec();
            file.extend(numbers().flat_map(f32::to_le_bytes));
            Ok(file)
        }
        RasterForm::Flow => {
            let planes: Vec<f32> = numbers().collect();
            Ok(flow::write(&planes, size))
        }
        RasterForm::ImageArray { .. } => Ok([&npy::header(size, 3), raster].concat()),
        RasterForm::ImagePng { .. } => {
            encode_png(raster, size, (png::ColorType::Rgb, png::BitDepth::Eight))
        }
        RasterForm::Copied => Ok(raster.to_vec()),
    }
}

/// A PNG of labels: grey of 8 or 16 bits, or three bytes of a colour.
fn encode_labels(
    labels: &[u32],
    size: (u32, u32),
    form: LabelForm,
) -> Result<Vec<u8>, SampleFault> {
    let largest = labels.iter().max().copied().unwrap_or(0);
    let (kind, bytes): (_, Vec<u8>) = match (form, largest) {
        (LabelForm::Colors, _) => {
            let bytes = labels
                .iter()
                .flat_map(|n| [*n as u8, (n >> 8) as u8, (n >> 16) as u8]);
            ((png::ColorType::Rgb, png::BitDepth::Eight), bytes.collect())
        }
        (LabelForm::Numbers, 0..=0xff) => {
            let bytes = labels.iter().map(|n| *n as u8).collect();
            ((png::ColorType::Grayscale, png::BitDepth::Eight), bytes)
        }
        (LabelForm::Numbers, 0..=0xffff) => {
            let bytes = labels.iter().flat_map(|n| (*n as u16).to_be_bytes());
            let kind = (png::ColorType::Grayscale, png::BitDepth::Sixteen);
            (kind, bytes.collect())
        }
        (LabelForm::Numbers, largest) => {
            return Err(FaultKind::Unsupported.fault(format!(
                "has label {largest}, and a resized mask of numbers has labels up to 65535: build \
                 the cache without resize"
            )));
        }
    };
    encode_png(&bytes, size, kind)
}

fn encode_png(
    pixels: &[u8],
    (height, width): (u32, u32),
    (color, depth): (png::ColorType, png::BitDepth),
) -> Result<Vec<u8>, SampleFault> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(pixels)?;
        writer.finish()
    });
    match written {
        Ok(()) => Ok(out),
        Err(e) => Err(FaultKind::Unknown.fault(format!("cannot be written as PNG: {e}"))),
    }
}
