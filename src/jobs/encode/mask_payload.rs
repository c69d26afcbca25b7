//! The mask of a sample in a cache: the bytes of its file, or a PNG of its resized labels.
//!
//! Runs in workers, and in the consumer with zero workers.

use crate::data::index::Index;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::encode::spec::EncodedMasks;
use crate::jobs::mask_rule::{MaskRule, MaskType};
use crate::jobs::open_shards::AccessPattern;
use crate::jobs::sample::mask::MaskDecoder;
use crate::jobs::sample::{self, RowRequest};
use crate::jobs::sample_input::{InputMode, SampleInput};
use crate::order::PositionRandom;
use crate::picture::labels::LabelImageReader;
use crate::picture::{LabelForm, PictureLimits};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::SampleProgram;

/// Makes masks, one after the other.
#[derive(Debug)]
pub(super) struct MaskPayloadMaker {
    index: Index,
    input: SampleInput,
    limits: PictureLimits,
    form: LabelForm,
    /// None: masks stay as they are.
    decoder: Option<MaskDecoder>,
    /// The labels of the last mask, four bytes each.
    labels: Vec<u8>,
}

impl MaskPayloadMaker {
    /// `program`: that of the images, if they are resized.
    pub(super) fn new(
        masks: EncodedMasks,
        index: Index,
        program: Option<&SampleProgram>,
        limits: &PictureLimits,
        (mode, pattern): (InputMode, AccessPattern),
    ) -> Result<Self> {
        let rule = MaskRule {
            form: masks.form,
            filter: masks.filter,
            dtype: Some(MaskType::Int32),
            ..MaskRule::default()
        };
        let decoder = program.map(|program| {
            let program = program.for_labels();
            let program = program.map_err(|fault| Error::protocol(fault.message))?;
            MaskDecoder::new(&program, &rule, limits)
        });
        Ok(Self {
            index,
            input: SampleInput::new(mode, limits.max_scratch, pattern),
            limits: *limits,
            form: masks.form,
            decoder: decoder.transpose()?,
            labels: Vec::new(),
        })
    }

    /// Writes the mask of sample `id`, whose upright image has this height and width, and `output`
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
        let named = |fault: SampleFault| {
            let reason = format!("mask {}: {}", path.display(), fault.reason);
            SampleFault::new(fault.kind, reason)
        };
        self.fill_unnamed(id, image, output, out, meter)
            .map_err(named)
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
        let changed = || FaultKind::Changed.fault("changed since its length was read");
        let Some(decoder) = &mut self.decoder else {
            let (width, height) = LabelImageReader::open(&file, self.form, &self.limits)?.size();
            if (height, width) != image {
                return Err(FaultKind::Unsupported.fault(format!(
                    "the mask has {width} x {height} pixels, and its image {} x {}: both must have \
                     one size",
                    image.1, image.0
                )));
            }
            let to = out.get_mut(..file.len()).ok_or_else(changed)?;
            to.copy_from_slice(&file);
            return Ok(file.len());
        };
        let (height, width) = output;
        let bytes = MaskType::Int32.size() * height as usize * width as usize;
        if self.labels.capacity() > sample::KEEP {
            self.labels = Vec::new();
        }
        self.labels.clear();
        let room = self.labels.try_reserve_exact(bytes);
        room.map_err(|_| FaultKind::TooLarge.fault("there is no memory for its labels"))?;
        self.labels.resize(bytes, 0);
        let request = RowRequest {
            // The program draws no random numbers.
            random: &PositionRandom::new(0, 0, 0),
            size: Some(output),
            part: None,
            boxes: None,
            check_size: &|_| Ok(()),
        };
        decoder.make_mask(&file, image, &request, &mut self.labels, meter)?;
        let png = encode_labels(&self.labels, output, self.form)?;
        let to = out.get_mut(..png.len());
        let to = to.ok_or_else(|| FaultKind::TooLarge.fault("its PNG exceeds its room"))?;
        to.copy_from_slice(&png);
        Ok(png.len())
    }
}

/// A PNG of labels, four bytes each: grey of 8 or 16 bits, or three bytes of a colour.
fn encode_labels(
    labels: &[u8],
    (height, width): (u32, u32),
    form: LabelForm,
) -> Result<Vec<u8>, SampleFault> {
    let labels = || {
        let words = labels.as_chunks::<4>().0.iter();
        words.map(|word| i32::from_ne_bytes(*word) as u32)
    };
    let largest = labels().max().unwrap_or(0);
    let (color, depth, bytes): (_, _, Vec<u8>) = match (form, largest) {
        (LabelForm::Colors, _) => {
            let bytes = labels().flat_map(|n| [n as u8, (n >> 8) as u8, (n >> 16) as u8]);
            (png::ColorType::Rgb, png::BitDepth::Eight, bytes.collect())
        }
        (LabelForm::Numbers, 0..=0xff) => {
            let bytes = labels().map(|n| n as u8).collect();
            (png::ColorType::Grayscale, png::BitDepth::Eight, bytes)
        }
        (LabelForm::Numbers, 0..=0xffff) => {
            let bytes = labels().flat_map(|n| (n as u16).to_be_bytes()).collect();
            (png::ColorType::Grayscale, png::BitDepth::Sixteen, bytes)
        }
        (LabelForm::Numbers, largest) => {
            return Err(FaultKind::Unsupported.fault(format!(
                "has label {largest}, and a resized mask of numbers has labels up to 65535: build \
                 the cache without resize"
            )));
        }
    };
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&bytes)?;
        writer.finish()
    });
    match written {
        Ok(()) => Ok(out),
        Err(e) => Err(FaultKind::Unknown.fault(format!("cannot be written as PNG: {e}"))),
    }
}
