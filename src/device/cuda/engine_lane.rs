//! A lane of the engines: from files in slots to rows of batches on the device.
//!
//! In the consumer, in the engines' thread. What a lane has on the device is taken once, and
//! used by one submission at a time: pictures are decoded into frames, and the kernel of crops
//! makes rows of those, in one stream.

use std::sync::Arc;

use super::bounds::check_frame;
use super::context::{Context, Event, Stream};
use super::crop_stage::Target;
use super::engines::{Coded, Engines, Failure, decode_all};
use super::kernel::Places;
use super::memory::{DeviceBuffer, HostBuffer, Rows};
use crate::device::frames::{Culprits, Files, Frame, Picture};
use crate::device::launch::{ELSEWHERE, KernelEmission, KernelRow, MASKED, Pass};
use crate::device::shape::{EngineShape, RowPlaces, SUBMISSION};
use crate::error::{Error, Result};

/// A batch for engines. Nothing else may write its files, nor its rows of the target.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) files: Arc<dyn Files>,
    pub(super) places: RowPlaces,
    pub(super) emission: KernelEmission,
    pub(super) target: Target,
    /// Bytes of a row of the target.
    pub(super) row_bytes: usize,
}

/// Pictures of a job that are in one submission, in the order of their rows, and which of them
/// are none.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) job: Arc<Job>,
    pub(super) pictures: Vec<Picture>,
    pub(super) culprits: Culprits,
}

impl Part {
    /// Rows of the batch that a launch covers: from that of the first picture to that of the
    /// last.
    fn rows(&self) -> (usize, usize) {
        let first = self.pictures.first().map_or(0, |p| p.row as usize);
        let last = self.pictures.last().map_or(first, |p| p.row as usize);
        (first, last + 1 - first)
    }
}

#[derive(Debug)]
pub(super) struct Lane {
    index: usize,
    stream: Stream,
    /// Where pictures are decoded to.
    frames: DeviceBuffer,
    tables: DeviceBuffer,
    descriptors: DeviceBuffer,
    written: HostBuffer,
    /// Behind the submission that is under way.
    under_way: Option<(Vec<Part>, Event)>,
}

/// Which pictures of a submission are none, by their numbers, and why.
type Found = Vec<(usize, Error)>;

/// Room of a lane that the parts of a submission have taken.
#[derive(Debug, Default)]
struct Taken {
    pictures: usize,
    frames: usize,
    rows: usize,
    tables: usize,
}

impl Lane {
    pub(super) fn new(context: &Arc<Context>, index: usize, shape: &EngineShape) -> Result<Self> {
        let descriptors = shape.lane_rows() * size_of::<KernelRow>();
        Ok(Self {
            index,
            stream: Stream::new(context)?,
            frames: DeviceBuffer::new(context, shape.frame_bytes(), "frames of engines")?,
            tables: DeviceBuffer::new(context, shape.table_bytes(), "tables of engines")?,
            descriptors: DeviceBuffer::new(context, descriptors, "descriptors of engines")?,
            written: HostBuffer::new(context, descriptors, "descriptors of engines")?,
            under_way: None,
        })
    }

    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// What was made, if the device has done it: all the lane has is free again then.
    pub(super) fn done(&mut self) -> Result<Option<Vec<Part>>> {
        match &self.under_way {
            Some((_, over)) if over.is_over()? => Ok(self.under_way.take().map(|(parts, _)| parts)),
            _ => Ok(None),
        }
    }

    /// As [`Lane::done`], once it is.
    pub(super) fn wait(&mut self) -> Result<Option<Vec<Part>>> {
        if let Some((_, over)) = &self.under_way {
            over.wait()?;
        }
        self.done()
    }

    /// A part of a job's pictures, the first ones, as far as a submission has room; none when
    /// it has none.
    fn take(&self, taken: &mut Taken, job: &Arc<Job>, pictures: &[Picture]) -> Option<Part> {
        let begin = pictures.first()?.row;
        let mut count = 0;
        let mut rows = 0;
        for picture in pictures {
            let frames = taken.frames + Frame::bytes(picture.size);
            let covered = (picture.row + 1 - begin) as usize;
            let fits = taken.pictures + count < SUBMISSION
                && frames <= self.frames.len()
                && (taken.rows + covered) * size_of::<KernelRow>() <= self.descriptors.len()
                && taken.tables + covered * job.places.tables <= self.tables.len();
            if !fits {
                break;
            }
            taken.frames = frames;
            rows = covered;
            count += 1;
        }
        taken.pictures += count;
        taken.rows += rows;
        taken.tables += rows * job.places.tables;
        (count > 0).then(|| Part {
            job: job.clone(),
            pictures: pictures[..count].to_vec(),
            culprits: Vec::new(),
        })
    }

    /// Puts what it has room for of these jobs' pictures into the stream: the first ones, in
    /// their order, and how many. Those of a job are in the order of their rows. The lane must
    /// be idle. `in_a_row`: see [`decode_all`].
    ///
    /// # Errors
    /// The engines, or the device, fail; a picture that no submission has room for.
    pub(super) fn submit<'a>(
        &mut self,
        engines: &mut Engines,
        in_a_row: &mut usize,
        jobs: impl Iterator<Item = (&'a Arc<Job>, &'a [Picture])>,
    ) -> Result<usize> {
        let (mut taken, mut parts) = (Taken::default(), Vec::new());
        for (job, pictures) in jobs {
            let Some(part) = self.take(&mut taken, job, pictures) else {
                break;
            };
            let whole = part.pictures.len() == pictures.len();
            parts.push(part);
            if !whole {
                break;
            }
        }
        if parts.is_empty() {
            return Err(Error::Device {
                what: "a picture for engines that is larger than all their memory".into(),
            });
        }
        // Held until the stream is drained, should it fail.
        let put = self.put(engines, in_a_row, &mut parts);
        if put.is_err() {
            // What was put in may be under way yet.
            self.stream.drain();
        }
        self.under_way = Some((parts, put?));
        Ok(taken.pictures)
    }

    fn put(
        &mut self,
        engines: &mut Engines,
        in_a_row: &mut usize,
        parts: &mut [Part],
    ) -> Result<Event> {
        let (frames, culprits) = self.decode(engines, in_a_row, parts)?;
        let mut begin = 0;
        let mut culprits = culprits.into_iter().peekable();
        for part in &mut *parts {
            let end = begin + part.pictures.len();
            while let Some((at, why)) = culprits.next_if(|(at, _)| *at < end) {
                part.culprits.push((part.pictures[at - begin].row, why));
            }
            begin = end;
        }
        self.launch(parts, &frames)?;
        self.stream.record()
    }

    /// Decodes the pictures of a submission: their frames, and the numbers of those that are
    /// none.
    fn decode(
        &self,
        engines: &mut Engines,
        in_a_row: &mut usize,
        parts: &[Part],
    ) -> Result<(Vec<Frame>, Found)> {
        let mut at = 0;
        let mut coded = Vec::with_capacity(SUBMISSION);
        for part in parts {
            for picture in &part.pictures {
                coded.push(Coded {
                    bytes: part.job.files.file(picture),
                    size: picture.size,
                    frame: Frame::new(at, picture.size.0),
                });
                at += Frame::bytes(picture.size);
            }
        }
        let culprits = decode_all(&coded, in_a_row, &mut |part| {
            // SAFETY: the lane is idle, and a part that failed is waited for below. The frames
            // lie side by side in memory that the lane alone uses; jobs hold the bytes, which
            // nothing else writes, until `under_way` is taken, behind its event, or until
            // `submit` has drained the stream.
            let done = unsafe { engines.decode(self.index, part, &self.frames, &self.stream) };
            if done.is_err() || part.len() < coded.len() {
                let over = self.stream.record().and_then(|event| event.wait());
                over.map_err(Failure::Engines)?;
            }
            done
        })?;
        Ok((coded.iter().map(|c| c.frame).collect(), culprits))
    }

    /// Makes rows of the frames. `frames`: those of all pictures of the submission.
    fn launch(&mut self, parts: &[Part], frames: &[Frame]) -> Result<()> {
        let mut rows = Vec::new();
        let mut tables = 0;
        let mut frames = frames.iter();
        for part in parts {
            let job = &part.job;
            let (first, count) = part.rows();
            let begin = rows.len();
            rows.resize(begin + count, elsewhere());
            for picture in &part.pictures {
                let (Some(frame), row) = (frames.next(), picture.row as usize) else {
                    continue;
                };
                let [left, top] = picture.corner;
                let pixels = frame.pixel(left, top) as u64;
                let made_row = picture.kernel.of_lines(pixels, frame.stride());
                check_frame(&made_row, row, &job.emission, job.places, self.frames.len())?;
                let within = made_row.tables - (row * job.places.capacity) as u64;
                let masked = part
                    .culprits
                    .iter()
                    .any(|(culprit, _)| *culprit == picture.row);
                rows[begin + row - first] = KernelRow {
                    tables: (tables + (row - first) * job.places.tables) as u64 + within,
                    flags: made_row.flags | if masked { MASKED } else { 0 },
                    ..made_row
                };
            }
            tables += count * job.places.tables;
        }
        let bytes: &[u8] = bytemuck::cast_slice(&rows);
        let room = self.written.bytes_mut().get_mut(..bytes.len());
        let room = room.ok_or_else(|| Error::Device {
            what: format!("{} rows in a submission of engines", rows.len()),
        })?;
        room.copy_from_slice(bytes);
        // SAFETY: `written` and `descriptors` are the lane's, and it is idle until the event
        // behind this is over.
        unsafe {
            let from = self.written.as_ptr();
            self.stream.upload(&self.descriptors, from, bytes.len())?;
        }
        let (mut begin, mut at) = (0, 0);
        for part in parts {
            let (first, count) = part.rows();
            let here = &rows[begin..begin + count];
            self.launch_part(&part.job, (first, begin, at), here)?;
            begin += count;
            at += count * part.job.places.tables;
        }
        Ok(())
    }

    /// Makes rows of one batch, from its row `first` on. Their descriptors begin with number
    /// `begin`, and their tables go to byte `at`.
    fn launch_part(
        &self,
        job: &Job,
        (first, begin, at): (usize, usize, usize),
        rows: &[KernelRow],
    ) -> Result<()> {
        let places = job.places;
        let (slot, slot_bytes) = job.files.memory();
        let end = (first + rows.len()) * places.capacity;
        let out = job.target.output.buffer().ok_or_else(|| Error::Device {
            what: "a batch's memory was given away twice".into(),
        })?;
        let out_end = (first + rows.len()) * job.row_bytes;
        if end > slot_bytes || out_end > out.len() {
            return Err(Error::Device {
                what: format!("rows up to {} are none of the batch", first + rows.len()),
            });
        }
        let lines = Rows {
            first,
            width: places.tables,
            count: rows.len(),
        };
        let to = (&self.tables, at);
        // SAFETY: the rows lie in the slot by the check, which the job keeps pinned and holds
        // until the event behind this; those of pictures are not written (`Files`), and of
        // others, which may be, the copy is not read; the tables are the lane's.
        unsafe {
            let (stream, pitch) = (&self.stream, places.tables);
            stream.upload_rows(to, pitch, slot, places.capacity, lines)?;
        }
        for event in job.target.output.after_all() {
            self.stream.wait_for(event)?;
        }
        let at = Places {
            tables: self.tables.address(),
            pixels: self.frames.address(),
            rows: self.descriptors.address() + (begin * size_of::<KernelRow>()) as u64,
            out: out.address() + (first * job.row_bytes) as u64,
        };
        let takes_mean =
            |row: &KernelRow| row.flags & (MASKED | ELSEWHERE) == 0 && row.takes_mean();
        let passes: &[Pass] = match rows.iter().any(takes_mean) {
            true => &[Pass::Sums, Pass::Rows],
            false => &[Pass::Rows],
        };
        for pass in passes {
            // SAFETY: `check_frame` has seen that tables lie in the row's part, and pixels in the
            // memory of frames, which are the lane's (a table that was changed behind the checks
            // leads to other pixels of it, no further); the output is held by the job, large
            // enough by the check, its other rows are left alone, and who had that memory
            // before is waited for (`after_all`); a second pass comes behind the first.
            unsafe {
                let (kernel, count) = (&job.target.kernel, rows.len() as u32);
                kernel.launch(&self.stream, at, count, job.emission, *pass)?;
            }
        }
        Ok(())
    }
}

/// A row that this launch leaves alone.
fn elsewhere() -> KernelRow {
    KernelRow {
        flags: ELSEWHERE,
        ..KernelRow::default()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // Before its memory goes, and what jobs hold.
        self.stream.drain();
    }
}
