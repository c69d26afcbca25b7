//! Payloads of a cache: one row = one sample, from its place in the cache's order to the bytes of
//! its member.
//!
//! Runs in workers, and in the consumer with zero workers. `sample` decodes and resizes. This file
//! encodes the pixels. Never in here: shards, names of members, labels.

use std::io::Cursor;
use std::ops::Range;
use std::os::fd::OwnedFd;

use crate::data::index::Index;
use crate::data::sample_sizes::SampleSizes;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::encode::encoding::{CacheEncoding, CacheResize, RAW_HEADER};
use crate::jobs::encode::payload::{CacheOrder, HEAD, PayloadLengths, write_lengths};
use crate::jobs::encode::payload_spaces::PayloadSpaces;
use crate::jobs::encode::raster_payload::RasterPayloadMaker;
use crate::jobs::encode::spec::{EncodeSpec, NAME};
use crate::jobs::open_shards::{AccessPattern, HomeShard};
use crate::jobs::sample;
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::jobs::sample_input::{InputMode, SampleInput};
use crate::jobs::stages;
use crate::order::PositionRandom;
use crate::picture::read_header::read_header_within;
use crate::picture::{PictureLimits, PixelBox, grow};
use crate::picture::{jpeg, npy};
use crate::pool::job::{Job, JobKind, JobParts};
use crate::pool::ring::ticket::{BatchKey, Ticket};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::{DataType, Decode, DecodeMode, MemoryLayout, Recipe, Resize, SampleProgram};
use crate::sys::cpu::CpuLevel;

/// The state that a worker keeps from sample to sample.
#[derive(Debug)]
pub(crate) struct EncodeJob {
    spec: EncodeSpec,
    index: Index,
    sizes: SampleSizes,
    rooms: PayloadSpaces,
    order: CacheOrder,
    input: SampleInput,
    decoder: SampleDecoder,
    /// The pixels from which a JPEG is encoded.
    pixels: Vec<u8>,
    rasters: Vec<RasterPayloadMaker>,
    home: HomeShard,
}

pub(crate) const KIND: JobKind = JobKind { name: NAME, build };

fn build(mut parts: JobParts) -> Result<Box<dyn Job>> {
    // An invalid `FEATHERLOAD_CPU` ends the run before an image is decoded.
    CpuLevel::detect()?;
    let spec: EncodeSpec = parts.spec()?;
    let mut fds = std::mem::take(&mut parts.descriptors);
    let rasters = fds.split_off(fds.len().min(3));
    let Ok([index, sizes, rooms]) = <[OwnedFd; 3]>::try_from(fds) else {
        return Err(Error::protocol(
            "an encoding job needs descriptors of index, sizes and payload spaces, and got others",
        ));
    };
    let index = Index::from_fd(index)?;
    let sizes = SampleSizes::from_fd(sizes, index.len())?;
    let rooms = PayloadSpaces::from_fd(rooms, index.len())?;
    if rasters.len() != spec.rasters.len() {
        return Err(Error::protocol(
            "an encoding job came with another number of rasters than it has",
        ));
    }
    let rasters = rasters.into_iter().map(Index::from_fd);
    let rasters = rasters.collect::<Result<_>>()?;
    let mode = InputMode::of(parts.runs_in);
    let parts = (sizes, rooms, rasters);
    Ok(Box::new(EncodeJob::new(spec, index, parts, mode)?))
}

impl EncodeJob {
    pub(crate) fn new(
        spec: EncodeSpec,
        index: Index,
        (sizes, rooms, rasters): (SampleSizes, PayloadSpaces, Vec<Index>),
        mode: InputMode,
    ) -> Result<Self> {
        let pattern = match spec.shuffle {
            Some(_) => AccessPattern::Shuffled,
            None => AccessPattern::InOrder,
        };
        let program = program(spec.resize)?;
        let resizing = spec.resize.map(|_| &program);
        let storing = (spec.encode, spec.resize);
        let rasters = spec.rasters.iter().zip(rasters).map(|(raster, files)| {
            let reading = (mode, pattern);
            RasterPayloadMaker::new(raster, files, storing, resizing, &spec.limits, reading)
        });
        Ok(Self {
            rasters: rasters.collect::<Result<_>>()?,
            home: HomeShard::new(&index, pattern),
            order: CacheOrder::new(index.len(), spec.shuffle),
            index,
            sizes,
            rooms,
            input: SampleInput::new(mode, spec.limits.max_scratch, pattern),
            decoder: SampleDecoder::new(&program, &spec.limits)?,
            pixels: Vec::new(),
            spec,
        })
    }

    fn sample(&self, ticket: &Ticket, row: u32) -> Option<u64> {
        let BatchKey([first, _]) = ticket.key;
        self.order.sample(first.checked_add(u64::from(row))?)
    }
}

/// The program: whole upright images, u8, NHWC, resized to the size that each row sets.
fn program(resize: Option<CacheResize>) -> Result<SampleProgram> {
    let mut recipe = Recipe::new("cache").then(Decode {
        mode: Some(DecodeMode::Full),
        ..Decode::default()
    });
    if resize.is_some() {
        recipe = recipe.then(Resize::exact(1, 1));
    }
    let recipe = recipe
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc);
    SampleProgram::compile(&recipe)
}

impl Job for EncodeJob {
    fn row_range(&mut self, ticket: &Ticket, row: u32) -> Range<usize> {
        let BatchKey([first, _]) = ticket.key;
        let position = first.saturating_add(u64::from(row));
        // A ticket without places only comes from corrupted shared memory. `fill` reports it.
        self.rooms.place(first, position).unwrap_or(0..0)
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        _attempt: u32,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let (Some(id), Some((head, payload))) =
            (self.sample(ticket, row), out.split_at_mut_checked(HEAD))
        else {
            return Err(SampleFault::new(
                FaultKind::Unknown,
                "its ticket names a row that holds no sample",
            ));
        };
        self.home.set_current(&self.index, id);
        let file = self
            .input
            .open_metered(&self.index, id, Some(&mut *meter))?;
        meter.bytes += file.len() as u64;
        let part = self.index.pixel_box(id);
        let Some(size) = self.sizes.get(id) else {
            // Returns the reason if the header still cannot be read.
            header_size(&file, &self.spec.limits, part)?;
            return Err(changed("its header could not be read at that time"));
        };
        let EncodeSpec { encode, resize, .. } = self.spec;
        let output = resize.map(|r| r.output(size));
        let mut render = |to: &mut [u8], meter: &mut StageMeter| {
            let request = RowRequest {
                // The program draws no random numbers.
                random: &PositionRandom::new(0, 0, 0),
                size: output,
                part,
                boxes: None,
                check_size: &|found| check_size(found, size),
            };
            self.decoder.make_row(&file, &request, to, meter)
        };
        let (height, width) = output.unwrap_or(size);
        let pixels = 3 * height as usize * width as usize;
        let bytes = match encode {
            CacheEncoding::Copy => {
                check_size(header_size(&file, &self.spec.limits, part)?, size)?;
                meter.lap(stages::OPEN);
                let to = payload.get_mut(..file.len());
                let to = to.ok_or_else(|| changed("the file was shorter at that time"))?;
                to.copy_from_slice(&file);
                meter.lap(stages::EMIT);
                file.len()
            }
            CacheEncoding::Raw => {
                let Some((header, rest)) = payload.split_at_mut_checked(RAW_HEADER as usize) else {
                    return Err(too_small());
                };
                let to = rest.get_mut(..pixels).ok_or_else(too_small)?;
                render(to, meter)?;
                header.copy_from_slice(&npy::header((height, width), 3));
                RAW_HEADER as usize + pixels
            }
            CacheEncoding::Jpeg { quality } => {
                let of_earlier = self.pixels.capacity();
                if of_earlier > sample::KEEP && of_earlier > 2 * pixels {
                    self.pixels = Vec::new();
                }
                grow(&mut self.pixels, pixels)?;
                let picture = &mut self.pixels[..pixels];
                render(picture, meter)?;
                let bytes = jpeg::encode(picture, (height, width), quality, payload)?;
                meter.lap(stages::EMIT);
                bytes
            }
        };
        drop(file);
        let (mut lengths, mut end) = (PayloadLengths::default(), bytes);
        lengths[0] = bytes as u64;
        for (raster, length) in self.rasters.iter_mut().zip(&mut lengths[1..]) {
            let room = payload.get_mut(end..).ok_or_else(too_small)?;
            let bytes = raster.fill(id, size, output.unwrap_or(size), room, meter)?;
            meter.lap(stages::EMIT);
            *length = bytes as u64;
            end += bytes;
        }
        write_lengths(&lengths, head);
        Ok(())
    }

    fn has_preferences(&self) -> bool {
        self.home.has_preference()
    }

    fn prefers(&self, ticket: &Ticket, row: u32) -> bool {
        self.home.prefers(&self.index, || self.sample(ticket, row))
    }

    fn memory_limit(&self) -> u64 {
        // The space of a JPEG is larger than its pixels.
        let pixels = match self.spec.encode {
            CacheEncoding::Jpeg { .. } => self.rooms.largest().saturating_mul(2),
            CacheEncoding::Copy | CacheEncoding::Raw => 0,
        };
        // A raster is decoded when its image is done. Its numbers, twice those while labels are
        // collected, and its file are at most as large as its row each. Each decoder keeps buffers, and so does each raster.
        let count = self.rasters.len() as u64;
        let pages = self.rasters.iter().map(RasterPayloadMaker::largest_page);
        let pages = pages.fold(0, u64::saturating_add);
        let rasters = match (count, self.spec.resize) {
            (0, _) => 0,
            (_, None) => self.spec.limits.max_scratch.saturating_add(pages),
            (_, Some(_)) => (self.rooms.largest().saturating_mul(4))
                .saturating_add(self.spec.limits.max_scratch)
                .saturating_add((sample::KEEP as u64).saturating_mul(2 * count))
                .saturating_add(pages),
        };
        // Buffers of earlier samples may exist in addition to the whole of this one's.
        self.spec
            .limits
            .max_scratch
            .saturating_add(sample::KEEP as u64)
            .saturating_add(sample::BESIDE_SCRATCH)
            .saturating_add(self.index.largest_page())
            .saturating_add(pixels)
            .saturating_add(rasters)
    }

    fn describe(&self, ticket: &Ticket, row: u32, _attempt: u32) -> String {
        match self.sample(ticket, row) {
            Some(id) => format!("sample {id} ({})", self.index.path(id).display()),
            None => "no sample".into(),
        }
    }
}

/// The upright height and width from a file's header, or of the box in it.
fn header_size(
    file: &[u8],
    limits: &PictureLimits,
    part: Option<PixelBox>,
) -> Result<(u32, u32), SampleFault> {
    let header = read_header_within(&mut Cursor::new(file), limits)?;
    let (width, height) = header.with_box(part)?.upright_size();
    Ok((height, width))
}

fn check_size(found: (u32, u32), then: (u32, u32)) -> Result<(), SampleFault> {
    if found == then {
        return Ok(());
    }
    Err(changed(&format!(
        "the image was {} x {}, and is now {} x {}",
        then.1, then.0, found.1, found.0
    )))
}

#[cold]
fn changed(what: &str) -> SampleFault {
    SampleFault::new(
        FaultKind::Changed,
        format!("changed since headers were read: {what}"),
    )
}

#[cold]
fn too_small() -> SampleFault {
    SampleFault::new(FaultKind::Unknown, "its row is smaller than the image")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::FolderOptions;
    use crate::jobs::encode::encoding::raw_bytes;
    use crate::jobs::encode::payload::payload_of;
    use crate::picture::jpeg::fixtures;
    use crate::picture::jpeg::fixtures::Sampling;
    use crate::pool::batch_request::BatchRequest;

    fn ticket(first: u64) -> Ticket {
        BatchRequest::numbered(first, 2).ticket(1)
    }

    /// A job over two pictures, whose headers are said to have told `sizes`, with
    /// rooms for payloads of `room` bytes.
    fn job(
        folder: &std::path::Path,
        encode: CacheEncoding,
        sizes: [[u32; 2]; 2],
        room: u64,
    ) -> EncodeJob {
        let (index, _) = Index::folder(folder, &FolderOptions::default()).unwrap();
        let spec = EncodeSpec {
            encode,
            resize: None,
            shuffle: None,
            limits: PictureLimits::default(),
            rasters: Vec::new(),
        };
        let sizes = SampleSizes::seal(&sizes).unwrap();
        let rooms = PayloadSpaces::seal([room, room].into_iter()).unwrap();
        EncodeJob::new(spec, index, (sizes, rooms, Vec::new()), InputMode::Read).unwrap()
    }

    fn fill(job: &mut EncodeJob, batch: u64, row: u32) -> Result<Vec<u8>, SampleFault> {
        let place = job.row_range(&ticket(batch), row);
        let mut out = vec![0; place.len()];
        job.fill(&ticket(batch), row, 0, &mut out, &mut StageMeter::default())?;
        Ok(payload_of(&out).unwrap().image.to_vec())
    }

    #[test]
    fn what_changed_since_the_headers_were_read_is_a_fault_and_fits_its_row() {
        let dir = tempfile::tempdir().unwrap();
        let good = fixtures::jpeg(50, 40, Sampling::S420);
        for name in ["a.jpg", "b.jpg"] {
            std::fs::write(dir.path().join(name), &good).unwrap();
        }
        let bytes = good.len() as u64;
        let jpeg = CacheEncoding::Jpeg { quality: 90 };
        for encode in [CacheEncoding::Copy, CacheEncoding::Raw, jpeg] {
            let room = encode.most_bytes((40, 50), bytes);
            let payload = fill(&mut job(dir.path(), encode, [[40, 50]; 2], room), 0, 1).unwrap();
            match encode {
                CacheEncoding::Copy => assert!(payload == good),
                CacheEncoding::Raw => assert_eq!(payload.len() as u64, raw_bytes((40, 50))),
                CacheEncoding::Jpeg { .. } => assert!(payload.starts_with(b"\xff\xd8")),
            }
            // A smaller one then; no header then.
            for then in [[39, 50], [0, 0]] {
                let mut job = job(dir.path(), encode, [then; 2], room);
                let fault = fill(&mut job, 0, 0).unwrap_err();
                assert_eq!(fault.kind, FaultKind::Changed, "{encode} {fault}");
            }
            // Longer than then.
            let mut job = job(dir.path(), encode, [[40, 50]; 2], 64);
            assert!(fill(&mut job, 0, 0).is_err());
        }
    }

    #[test]
    fn a_scribbled_ticket_is_a_fault() {
        let dir = tempfile::tempdir().unwrap();
        let good = fixtures::jpeg(50, 40, Sampling::S420);
        for name in ["a.jpg", "b.jpg"] {
            std::fs::write(dir.path().join(name), &good).unwrap();
        }
        let mut job = job(dir.path(), CacheEncoding::Copy, [[40, 50]; 2], 1 << 16);
        for (batch, row) in [(0, 2), (2, 0), (u64::MAX, 1), (1, u32::MAX)] {
            let fault = fill(&mut job, batch, row).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Unknown, "{batch} {row}");
            assert!(job.describe(&ticket(batch), row, 0).contains("no sample"));
        }
        assert!(job.describe(&ticket(0), 1, 0).contains("b.jpg"));
    }
}
