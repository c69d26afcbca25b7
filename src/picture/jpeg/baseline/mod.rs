//! Baseline JPEG in Rust: the windows of pictures that crops need, with the bytes of
//! libjpeg-turbo 3.1 at its default settings ("islow" transforms, fancy upsampling).
//!
//! Takes what most files are: 8 bits, sequential, Huffman codes, one scan of all components.
//! Whatever else there is, and whatever looks damaged, is refused: the caller decodes it with
//! libjpeg-turbo, whose verdict, words and pixels hold. A refusal leaves anything in the output.
//!
//! Pure, and on its own: bytes in, bytes or a refusal out. Reads no coded data after the last
//! row that is needed. Knows nothing of limits: what it takes is known from the header, the
//! window's rows of blocks ([`Decoder::bytes`]), and a decode allocates nothing once that is there.
//!
//! - `job`: what is asked for, and why it is refused.
//! - `frame`: the header; `geometry`: the blocks and rows that a window needs.
//! - `general`: all other files.
//! - `stream`: coded data without stuffed bytes; `bits`: a place in them.
//! - `huffman`: tables; `blocks`: coefficients.
//! - `scan`: the loop over MCUs; `rows`: from samples to rows of RGB.
//! - `transform`, `filters`: the plain forms of inverse transforms, of upsampling and colour.
//! - `kernels`: what has forms for wide registers; `avx2`: those; the only `unsafe` here.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod bits;
mod blocks;
mod filters;
mod frame;
mod general;
mod geometry;
mod huffman;
mod job;
mod kernels;
mod rows;
mod scan;
mod stream;
mod transform;

#[cfg(test)]
mod tests;

use bits::{Data, EMPTY};
use frame::Frame;
use general::General;
pub(crate) use general::{Ending, Failure, MOST_SCANS};
use geometry::Plan;
pub(crate) use job::{Job, Refusal, Window};
use kernels::Plain;
use rows::Rows;
use scan::{Scan, Tables, Waiting};
use stream::Stream;

/// The form of the hot loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    /// AVX2 with BMI1 and BMI2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Form {
    /// The fastest that this processor has, unless libjpeg-turbo is kept from its own
    /// (`JSIMD_FORCENONE`, `JSIMD_FORCESSE2`).
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let is_set = |name| std::env::var_os(name).is_some();
            let is_kept = is_set("JSIMD_FORCENONE") || is_set("JSIMD_FORCESSE2");
            if !is_kept && avx2::Avx2::detect().is_some() {
                return Self::Avx2;
            }
        }
        Self::Plain
    }

    /// Calls `task` in this form, as far as it is inlined.
    #[inline(always)]
    fn call<R>(self, task: impl FnOnce() -> R) -> R {
        match self {
            Self::Plain => task(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => match avx2::Avx2::detect() {
                Some(wide) => wide.call(task),
                None => task(),
            },
        }
    }
}

/// The buffers of a decoder, which grow to what pictures need.
#[derive(Debug)]
pub(crate) struct Decoder {
    form: Form,
    state: Option<Box<State>>,
    /// Samples of two rows of MCUs, and the enlarged rows.
    planes: Vec<u8>,
    /// For all that is not baseline.
    general: Option<Box<General>>,
}

/// What has the same size for all pictures.
#[derive(Debug)]
struct State {
    frame: Frame,
    tables: Tables,
    waiting: [Waiting; 4],
    data: Data,
}

impl Default for State {
    fn default() -> Self {
        Self {
            frame: Frame::default(),
            tables: Tables::default(),
            waiting: [Waiting::NONE; 4],
            data: EMPTY,
        }
    }
}

impl Default for Decoder {
    /// Of the fastest form.
    fn default() -> Self {
        Self::new(Form::best())
    }
}

impl Decoder {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            form,
            state: None,
            planes: Vec::new(),
            general: None,
        }
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.state.as_ref().map_or(0, |_| size_of::<State>());
        let general = self.general.as_ref().map_or(0, |general| general.bytes());
        self.planes.capacity() + state + general
    }

    /// What the window needs of a picture, for which there is room in `planes` then. `room`: bytes
    /// of the output.
    fn plan(
        frame: &Frame,
        job: &Job<'_>,
        room: usize,
        planes: &mut Vec<u8>,
    ) -> Result<Plan, Refusal> {
        let window = job.window;
        let scaled = |side: usize| (side * job.block).div_ceil(8);
        let (width, height) = (scaled(frame.width), scaled(frame.height));
        let fits = |at: usize, len: usize, size: usize| len > 0 && at < size && len <= size - at;
        if !matches!(job.block, 1 | 2 | 4 | 8)
            || !fits(window.x, window.w, width)
            || !fits(window.y, window.h, height)
            || room / frame.colour.bytes() / window.w < window.h
        {
            return Err(Refusal::Unsupported);
        }
        let plan = Plan::new(frame, job.block, window)?;
        let all = plan.bytes + Rows::spare(window);
        if planes.len() < all {
            let room = planes.try_reserve_exact(all - planes.len());
            room.map_err(|_| Refusal::NoMemory)?;
            planes.resize(all, 0);
        }
        Ok(plan)
    }

    /// Decodes the window to rows without gaps at the start of `out`: RGB, or of pictures of four
    /// components their inks.
    pub(crate) fn decode(&mut self, job: &Job<'_>, out: &mut [u8]) -> Result<(), Refusal> {
        let state = self.state.get_or_insert_default();
        let State {
            frame,
            tables,
            waiting,
            data,
        } = &mut **state;
        frame.read(job.bytes)?;
        let found = (frame.width, frame.height, frame.components().len());
        if found != (job.size.0, job.size.1, job.components) {
            return Err(Refusal::Unsupported);
        }
        let plan = Self::plan(frame, job, out.len(), &mut self.planes)?;
        let window = job.window;
        for component in frame.components() {
            let (dc, ac) = (component.dc & 1, component.ac & 1);
            tables.dc[dc].set(&frame.dc[dc])?;
            tables.ac[ac].set(&frame.ac[ac])?;
        }
        let (planes, spare) = self.planes.split_at_mut(plan.bytes);
        let mut rows = Rows {
            plan: &plan,
            colour: frame.colour,
            window,
            next: window.y,
            spare,
        };
        let out = &mut out[..frame.colour.bytes() * window.w * window.h];
        let start = frame.scan;
        let scan = Scan {
            frame,
            plan: &plan,
            tables,
            waiting,
            planes,
        };
        match self.form {
            Form::Plain => {
                let (mut stream, bits) = Stream::new(Plain, job.bytes, start, data);
                scan.run(Plain, &mut stream, bits, &mut rows, out)
            }
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => match avx2::Avx2::detect() {
                Some(wide) => {
                    let (mut stream, bits) = Stream::new(wide, job.bytes, start, data);
                    wide.run(scan, &mut stream, bits, &mut rows, out)
                }
                None => Err(Refusal::Unsupported),
            },
        }
    }
}
