//! The decoder alone: the same files in the same order, decoded by a bare loop
//! from maps that stay mapped into one reused buffer, with no resize, no ring,
//! no output. What a loader is measured against.
//!
//! Runs in processes of its own, which `measure::ceiling` makes.

use std::io::Cursor;
use std::time::{Duration, Instant};

use memmap2::Mmap;

use super::meter::Meter;
use super::sample::{SampleDecoder, Stored};
use crate::error::{Error, Result, SampleFault};
use crate::index::Index;
use crate::picture::header::read_header;
use crate::picture::jpeg::{self, JpegDecoder, Region, Scale, Scratch};
use crate::picture::{Format, Limits};
use crate::plan::{Plan, PositionRandom};
use crate::recipe::{Recipe, SampleProgram};

/// How much of each picture is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it, at full size.
    Full,
    /// What the recipe's box needs, at the recipe's scale.
    Crop,
}

/// One process's share of the decoding.
pub(crate) struct BareLoop {
    index: Index,
    plan: Plan,
    program: SampleProgram,
    part: Part,
    maps: Vec<Mmap>,
    decoder: JpegDecoder,
    scratch: Scratch,
    /// Next row of the stream of all epochs, and how far apart ours are.
    next: u64,
    step: u64,
}

impl BareLoop {
    /// Share `share.0` of `share.1`.
    pub(crate) fn new(
        index: Index,
        plan: Plan,
        program: SampleProgram,
        part: Part,
        share: (u64, u64),
    ) -> Result<Self> {
        let maps = (0..index.len())
            .map(|id| map(&index, id))
            .collect::<Result<_>>()?;
        Ok(Self {
            index,
            plan,
            program,
            part,
            maps,
            decoder: JpegDecoder::new(&Limits::default()),
            scratch: Scratch::default(),
            next: share.0,
            step: share.1,
        })
    }

    /// Decodes for `limit` and says how many pictures it took how long.
    pub(crate) fn run(&mut self, limit: Duration) -> Result<(u64, Duration)> {
        let began = Instant::now();
        let mut images = 0;
        while began.elapsed() < limit {
            self.decode_next()?;
            images += 1;
        }
        Ok((images, began.elapsed()))
    }

    fn decode_next(&mut self) -> Result<()> {
        let batch = u64::from(self.plan.options().batch);
        let per_epoch = self.index.len();
        let (epoch, at) = (self.next / per_epoch, self.next % per_epoch);
        self.next += self.step;
        let row = self.plan.row(epoch, at / batch, (at % batch) as u32);
        let failed = |fault: SampleFault| Error::Sample {
            id: row.id,
            path: self.index.path(row.id),
            fault,
        };
        let bytes: &[u8] = &self.maps[row.id as usize];
        if Format::of(bytes).map_err(failed)? != Format::Jpeg {
            return Err(Error::config(format!(
                "the bare decoder is that of JPEG, and {} is none: measure on JPEG files",
                self.index.path(row.id).display()
            )));
        }
        let header = jpeg::read_header(bytes).map_err(failed)?;
        let (scale, want) = match self.part {
            Part::Full => (Scale::Full, Region::whole((header.width, header.height))),
            Part::Crop => {
                let stored = Stored {
                    size: (header.width, header.height),
                    orientation: header.orientation,
                };
                let seed = self.plan.options().seed;
                let mut random = PositionRandom::new(seed, epoch, row.position);
                let cut = stored.cut(&self.program, &mut random, true);
                (cut.scale, cut.want)
            }
        };
        let decoded = self
            .decoder
            .decode_region(bytes, &header, scale, want, &mut self.scratch);
        std::hint::black_box(decoded.map_err(failed)?);
        Ok(())
    }
}

/// Whole pictures of any format, one after the other, each into memory of its own.
pub(crate) struct WholeImages {
    decoder: SampleDecoder,
    meter: Meter,
}

impl WholeImages {
    pub(crate) fn new() -> Result<Self> {
        let program = SampleProgram::compile(&Recipe::full())?;
        Ok(Self {
            decoder: SampleDecoder::new(&program, &Limits::default())?,
            meter: Meter::default(),
        })
    }

    /// Picture `id` as RGB8, height x width x 3. A picture of more than `room`
    /// bytes is refused before it is decoded.
    pub(crate) fn decode(&mut self, index: &Index, id: u64, room: u64) -> Result<Vec<u8>> {
        let map = map(index, id)?;
        let failed = |fault: SampleFault| Error::Sample {
            id,
            path: index.path(id),
            fault,
        };
        let header = read_header(&mut Cursor::new(&map[..])).map_err(failed)?;
        let (width, height) = header.stored;
        Limits::default()
            .check_pixels(header.format.name(), header.stored)
            .map_err(failed)?;
        let bytes = 3 * u64::from(width) * u64::from(height);
        if bytes > room {
            return Err(Error::config(format!(
                "whole images do not fit into the memory that is available: at sample {id} of {} \
                 there is room for {room} bytes more in each copy; give fewer workers or a smaller \
                 data set",
                index.len()
            )));
        }
        let mut rgb = vec![0; bytes as usize];
        // Nothing is random in whole pictures.
        let mut random = PositionRandom::new(0, 0, 0);
        self.decoder
            .fill(&map, &mut random, &|_| Ok(()), &mut rgb, &mut self.meter)
            .map_err(failed)?;
        Ok(rgb)
    }
}

fn map(index: &Index, id: u64) -> Result<Mmap> {
    let path = index.path(id);
    let file = std::fs::File::open(&path).map_err(|e| Error::io_at("open", &path, e))?;
    // SAFETY: the measuring process only decodes these bytes; a file that is
    // changed or cut while a measurement runs spoils that measurement only.
    let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io_at("map", &path, e))?;
    // Warm: this is no test of the storage.
    let mut sum = 0u8;
    for page in map.chunks(4096) {
        sum ^= page[0];
    }
    std::hint::black_box(sum);
    Ok(map)
}
