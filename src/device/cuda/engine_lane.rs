//! A lane of the engines: from files in slots to rows of batches on the device.
//!
//! In the consumer, in the engines' thread. What a lane has on the device is taken once, and
//! used by one submission at a time: pictures are decoded into frames, and the kernel of crops
//! makes rows of those, in one stream.

use std::sync::Arc;

use super::bounds::check_frame;
use super::context::{Context, Event, Stream};
use super::engines::{Coded, Engines, Failure, decode_all};
use super::kernel::{Kernel, Places};
use super::memory::{DeviceBuffer, HostBuffer, Rows};
use super::outputs::Output;
use super::pinned::PinnedRing;
use crate::device::frames::{Bytes, Culprits, Frame, Picture};
use crate::device::launch::{ELSEWHERE, KernelEmission, KernelRow, MASKED, Pass};
use crate::device::shape::{EngineShape, RowPlaces, SUBMISSION};
use crate::error::{Error, Result};

/// A batch for engines. Nothing else may write its files, nor its rows of the output.
pub(super) struct Job {
    pub(super) slot: Bytes,
    /// Keeps the slot pinned.
    pub(super) _pinned: Arc<PinnedRing>,
    pub(super) pictures: Vec<Picture>,
    pub(super) places: RowPlaces,
    pub(super) emission: KernelEmission,
    pub(super) output: Arc<Output>,
    /// Bytes of a row of the output.
    pub(super) row_bytes: usize,
    /// Before this the output must not be written.
    pub(super) free: Option<Arc<Event>>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pictures", self.pictures.len())
    }
}

/// Pictures of a job that are in one submission: those from the first on.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) job: Arc<Job>,
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Part {
    fn pictures(&self) -> &[Picture] {
        // Made by `Lane::take`, inside of the job.
        &self.job.pictures[self.first..self.first + self.count]
    }

    /// Rows of the batch that a launch covers: from that of the first picture to that of the
    /// last.
    fn rows(&self) -> (usize, usize) {
        let pictures = self.pictures();
        let first = pictures.first().map_or(0, |p| p.row);
        let last = pictures.last().map_or(first, |p| p.row);
        (first, last + 1 - first)
    }
}

/// What a submission has of a job, once the device has done it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) part: Part,
    /// Of the job's pictures.
    pub(super) culprits: Culprits,
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
    under_way: Option<(Vec<Made>, Event)>,
}

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
    pub(super) fn done(&mut self) -> Result<Option<Vec<Made>>> {
        match &self.under_way {
            Some((_, over)) if over.is_over()? => Ok(self.under_way.take().map(|(made, _)| made)),
            _ => Ok(None),
        }
    }

    /// As [`Lane::done`], once it is.
    pub(super) fn wait(&mut self) -> Result<Option<Vec<Made>>> {
        if let Some((_, over)) = &self.under_way {
            over.wait()?;
        }
        self.done()
    }

    /// The next part of a job, from picture `first` on, as far as a submission has room;
    /// none when it has none.
    fn take(&self, taken: &mut Taken, job: &Arc<Job>, first: usize) -> Option<Part> {
        let pictures = job.pictures.get(first..)?;
        let begin = pictures.first()?.row;
        let mut count = 0;
        let mut rows = 0;
        for picture in pictures {
            let frames = taken.frames + Frame::bytes(picture.size);
            let covered = picture.row + 1 - begin;
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
            first,
            count,
        })
    }

    /// Puts what it has room for of these jobs, each from a picture on, into the stream; in
    /// their order. The lane must be idle.
    ///
    /// # Errors
    /// The engines, or the device, fail; a picture that no submission has room for.
    pub(super) fn submit<'a>(
        &mut self,
        engines: &mut Engines,
        kernel: &Kernel,
        jobs: impl Iterator<Item = (&'a Arc<Job>, usize)>,
    ) -> Result<usize> {
        let (mut taken, mut parts) = (Taken::default(), Vec::new());
        for (job, first) in jobs {
            let Some(part) = self.take(&mut taken, job, first) else {
                break;
            };
            let whole = first + part.count == job.pictures.len();
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
        let made = self.put(engines, kernel, parts);
        if made.is_err() {
            // What was put in may be under way yet.
            self.stream.drain();
        }
        let (made, over) = made?;
        self.under_way = Some((made, over));
        Ok(taken.pictures)
    }

    fn put(
        &mut self,
        engines: &mut Engines,
        kernel: &Kernel,
        parts: Vec<Part>,
    ) -> Result<(Vec<Made>, Event)> {
        let (frames, culprits) = self.decode(engines, &parts)?;
        let mut made: Vec<Made> = (parts.into_iter())
            .map(|part| Made {
                part,
                culprits: Vec::new(),
            })
            .collect();
        let mut begin = 0;
        let mut culprits = culprits.into_iter().peekable();
        for made in &mut made {
            let end = begin + made.part.count;
            while let Some((at, why)) = culprits.next_if(|(at, _)| *at < end) {
                made.culprits.push((made.part.first + at - begin, why));
            }
            begin = end;
        }
        self.launch(kernel, &made, &frames)?;
        Ok((made, self.stream.record()?))
    }

    /// Decodes the pictures of a submission: their frames, and which are none.
    fn decode(&self, engines: &mut Engines, parts: &[Part]) -> Result<(Vec<Frame>, Culprits)> {
        let mut at = 0;
        let mut coded = Vec::with_capacity(SUBMISSION);
        for part in parts {
            let bytes = (*part.job.slot).as_ref();
            for picture in part.pictures() {
                coded.push(Coded {
                    // Inside by `EngineThread::submit`.
                    bytes: &bytes[picture.bytes()],
                    size: picture.size,
                    frame: Frame::new(at, picture.size.0),
                });
                at += Frame::bytes(picture.size);
            }
        }
        let culprits = decode_all(&coded, &mut |part| {
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
    fn launch(&mut self, kernel: &Kernel, made: &[Made], frames: &[Frame]) -> Result<()> {
        let mut rows = Vec::new();
        let mut tables = 0;
        let mut frames = frames.iter();
        for made in made {
            let (part, job) = (&made.part, &made.part.job);
            let (first, count) = part.rows();
            let begin = rows.len();
            rows.resize(begin + count, elsewhere());
            for (n, picture) in (part.first..).zip(part.pictures()) {
                let (Some(frame), row) = (frames.next(), picture.row) else {
                    continue;
                };
                let [left, top] = picture.corner;
                let pixels = frame.pixel(left, top) as u64;
                let made_row = picture.kernel.of_lines(pixels, frame.stride());
                check_frame(&made_row, row, &job.emission, job.places, self.frames.len())?;
                let within = made_row.tables - (row * job.places.capacity) as u64;
                let masked = made.culprits.iter().any(|(culprit, _)| *culprit == n);
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
        for made in made {
            let (first, count) = made.part.rows();
            let here = &rows[begin..begin + count];
            self.launch_part(kernel, &made.part.job, (first, begin, at), here)?;
            begin += count;
            at += count * made.part.job.places.tables;
        }
        Ok(())
    }

    /// Makes rows of one batch, from its row `first` on. Their descriptors begin with number
    /// `begin`, and their tables go to byte `at`.
    fn launch_part(
        &self,
        kernel: &Kernel,
        job: &Job,
        (first, begin, at): (usize, usize, usize),
        rows: &[KernelRow],
    ) -> Result<()> {
        let (places, slot) = (job.places, (*job.slot).as_ref());
        let end = (first + rows.len()) * places.capacity;
        let out = job.output.buffer().ok_or_else(|| Error::Device {
            what: "a batch's memory was given away twice".into(),
        })?;
        let out_end = (first + rows.len()) * job.row_bytes;
        if end > slot.len() || out_end > out.len() {
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
        // SAFETY: the rows lie in the slot by the check, which the job keeps pinned and holds,
        // unwritten, until the event behind this; the tables are the lane's.
        unsafe {
            let (stream, pitch) = (&self.stream, places.tables);
            stream.upload_rows(to, pitch, slot.as_ptr(), places.capacity, lines)?;
        }
        if let Some(free) = &job.free {
            self.stream.wait_for(free)?;
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
            // enough by the check, its other rows are left alone, and what was in the stream
            // of the batch before is waited for (`free`); a second pass comes behind the first.
            unsafe {
                kernel.launch(&self.stream, at, rows.len() as u32, job.emission, *pass)?;
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
