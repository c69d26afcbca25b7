//! Payloads of a cache: one row = one sample, from its place in the cache's order
//! to the bytes of its member.
//!
//! Runs in workers, and in the consumer with zero workers. Decoding and resizing
//! are `sample`'s; what is new here is what becomes of the pixels. Never in here:
//! shards, names of members, labels.

use std::io::Cursor;
use std::ops::Range;

use super::images::BESIDE_SCRATCH;
use super::input::{Input, InputMode};
use super::job::Job;
use super::meter::{Meter, Stage};
use super::sample::{self, RowRequest, SampleDecoder};
use super::shards::Pattern;
use super::spec::EncodeSpec;
use crate::error::{FaultKind, Result, SampleFault};
use crate::index::Index;
use crate::packing::Sizes;
use crate::packing::payload::{CacheResize, Encoding, Order, PayloadHead, RAW_HEADER};
use crate::packing::rooms::Rooms;
use crate::picture::Limits;
use crate::picture::header::read_header_within;
use crate::picture::{jpeg, npy};
use crate::plan::PositionRandom;
use crate::recipe::{Decode, DecodeMode, Dtype, MemoryLayout, Recipe, Resize, SampleProgram};
use crate::ring::consumer_side::Ticket;

/// Everything that a worker keeps from sample to sample.
#[derive(Debug)]
pub(crate) struct EncodeJob {
    spec: EncodeSpec,
    index: Index,
    sizes: Sizes,
    rooms: Rooms,
    order: Order,
    input: Input,
    decoder: SampleDecoder,
    /// Of the picture that a JPEG is made of.
    pixels: Vec<u8>,
}

impl EncodeJob {
    pub(crate) fn new(
        spec: &EncodeSpec,
        index: Index,
        sizes: Sizes,
        rooms: Rooms,
        mode: InputMode,
    ) -> Result<Self> {
        let pattern = match spec.shuffle {
            Some(_) => Pattern::Shuffled,
            None => Pattern::InOrder,
        };
        Ok(Self {
            spec: *spec,
            order: Order::new(index.len(), spec.shuffle),
            index,
            sizes,
            rooms,
            input: Input::new(mode, spec.limits.max_scratch, pattern),
            decoder: SampleDecoder::new(&program(spec.resize)?, &spec.limits)?,
            pixels: Vec::new(),
        })
    }

    fn sample(&self, ticket: &Ticket, row: u32) -> Option<u64> {
        self.order.sample(ticket.batch.checked_add(u64::from(row))?)
    }
}

/// Whole upright pictures, u8, NHWC, resized where that is wanted: to the size
/// that each row sets.
fn program(resize: Option<CacheResize>) -> Result<SampleProgram> {
    let mut recipe = Recipe::new("cache").then(Decode {
        mode: Some(DecodeMode::Full),
        ..Decode::default()
    });
    if resize.is_some() {
        recipe = recipe.then(Resize::exact(1, 1));
    }
    let recipe = recipe.with_dtype(Dtype::U8).with_layout(MemoryLayout::Nhwc);
    SampleProgram::compile(&recipe)
}

impl Job for EncodeJob {
    fn place(&mut self, ticket: &Ticket, row: u32) -> Range<usize> {
        let position = ticket.batch.saturating_add(u64::from(row));
        // Nobody posts a ticket without places: its words were scribbled on, and
        // `fill` says so.
        self.rooms.place(ticket.batch, position).unwrap_or(0..0)
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        _attempt: u32,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault> {
        let (Some(id), Some((head, payload))) = (
            self.sample(ticket, row),
            out.split_at_mut_checked(PayloadHead::BYTES),
        ) else {
            return Err(SampleFault::new(
                FaultKind::Corrupt,
                "its ticket names a row that holds no sample",
            ));
        };
        let file = self.input.open(&self.index, id)?;
        meter.bytes += file.len() as u64;
        let Some(size) = self.sizes.get(id) else {
            // Why it had no header when all were read, if it still has none.
            header_size(&file, &self.spec.limits)?;
            return Err(changed("its header could not be read then"));
        };
        let EncodeSpec { encode, resize, .. } = self.spec;
        let output = resize.map(|r| r.output(size));
        let mut render = |to: &mut [u8], meter: &mut Meter| {
            let request = RowRequest {
                // There is nothing random in the program.
                random: &PositionRandom::new(0, 0, 0),
                size: output,
                admit: &|found| check_size(found, size),
            };
            self.decoder.fill(&file, &request, to, meter)
        };
        let (height, width) = output.unwrap_or(size);
        let pixels = 3 * height as usize * width as usize;
        let bytes = match encode {
            Encoding::Copy => {
                check_size(header_size(&file, &self.spec.limits)?, size)?;
                meter.lap(Stage::Open);
                let to = payload.get_mut(..file.len());
                let to = to.ok_or_else(|| changed("the file was shorter then"))?;
                to.copy_from_slice(&file);
                meter.lap(Stage::Emit);
                file.len()
            }
            Encoding::Raw => {
                let Some((header, rest)) = payload.split_at_mut_checked(RAW_HEADER as usize) else {
                    return Err(too_small());
                };
                let to = rest.get_mut(..pixels).ok_or_else(too_small)?;
                render(to, meter)?;
                header.copy_from_slice(&npy::header((height, width), 3));
                RAW_HEADER as usize + pixels
            }
            Encoding::Jpeg { quality } => {
                let of_earlier = self.pixels.capacity();
                if of_earlier > sample::KEEP && of_earlier > 2 * pixels {
                    self.pixels = Vec::new();
                }
                reserve(&mut self.pixels, pixels)?;
                render(&mut self.pixels, meter)?;
                let bytes = jpeg::encode(&self.pixels, (height, width), quality, payload)?;
                meter.lap(Stage::Emit);
                bytes
            }
        };
        PayloadHead {
            bytes: bytes as u64,
            height,
            width,
        }
        .write(head);
        Ok(())
    }

    fn memory_limit(&self) -> u64 {
        // The room of a JPEG is larger than its pixels.
        let pixels = match self.spec.encode {
            Encoding::Jpeg { .. } => self.rooms.largest().saturating_mul(2),
            Encoding::Copy | Encoding::Raw => 0,
        };
        // What is kept of earlier samples may lie beside the whole of this one's.
        self.spec
            .limits
            .max_scratch
            .saturating_add(sample::KEEP as u64)
            .saturating_add(BESIDE_SCRATCH)
            .saturating_add(pixels)
    }

    fn describe(&self, ticket: &Ticket, row: u32, _attempt: u32) -> String {
        match self.sample(ticket, row) {
            Some(id) => format!("sample {id} ({})", self.index.path(id).display()),
            None => "no sample".into(),
        }
    }
}

/// Makes `buffer` exactly `len` bytes long.
fn reserve(buffer: &mut Vec<u8>, len: usize) -> std::result::Result<(), SampleFault> {
    let more = len.saturating_sub(buffer.len());
    buffer.try_reserve_exact(more).map_err(|_| {
        SampleFault::new(
            FaultKind::TooLarge,
            format!("no memory for {len} bytes of pixels"),
        )
    })?;
    buffer.resize(len, 0);
    Ok(())
}

/// The upright height and width that a file's header says.
fn header_size(file: &[u8], limits: &Limits) -> std::result::Result<(u32, u32), SampleFault> {
    let header = read_header_within(&mut Cursor::new(file), limits)?;
    let (width, height) = header.upright();
    Ok((height, width))
}

fn check_size(found: (u32, u32), then: (u32, u32)) -> std::result::Result<(), SampleFault> {
    if found == then {
        return Ok(());
    }
    Err(changed(&format!(
        "the picture was {} x {} then, and is {} x {}",
        then.0, then.1, found.0, found.1
    )))
}

#[cold]
fn changed(what: &str) -> SampleFault {
    SampleFault::new(
        FaultKind::Changed,
        format!("changed since all headers were read: {what}"),
    )
}

#[cold]
fn too_small() -> SampleFault {
    SampleFault::new(FaultKind::Corrupt, "its row is smaller than the picture")
}
