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
//! - `stream`: coded data without stuffed bytes; `bits`: a place in them.
//! - `huffman`: tables; `blocks`: coefficients.
//! - `scan`: the loop over MCUs; `rows`: from samples to rows of RGB.
//! - `transform`, `filters`: the plain forms of inverse transforms, of upsampling and colour.
//! - `kernels`: what has forms for wide registers; `wide`: those; the only `unsafe` here.

mod bits;
mod blocks;
mod filters;
mod frame;
mod geometry;
mod huffman;
mod job;
mod kernels;
mod rows;
mod scan;
mod stream;
mod transform;
#[cfg(target_arch = "x86_64")]
mod wide;

#[cfg(test)]
mod tests;

use bits::{Data, EMPTY};
use frame::Frame;
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
    #[cfg(target_arch = "x86_64")]
    Sse41,
    /// AVX2 with BMI1, BMI2 and MOVBE.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Form {
    /// Slowest first.
    pub(crate) const ALL: &[Self] = &[
        Self::Plain,
        #[cfg(target_arch = "x86_64")]
        Self::Sse41,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
    ];

    /// The fastest that this processor has, of registers of at most so many bits.
    pub(crate) fn best(bits: usize) -> Self {
        let forms = Self::supported().filter(|form| form.bits() <= bits);
        forms.last().unwrap_or(Self::Plain)
    }

    /// Those that this processor has, slowest first.
    pub(crate) fn supported() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|form| form.is_supported())
    }

    /// Bits of a register.
    fn bits(self) -> usize {
        match self {
            Self::Plain => 64,
            #[cfg(target_arch = "x86_64")]
            Self::Sse41 => 128,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => 256,
        }
    }

    fn is_supported(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse41 => wide::Sse41::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => wide::Avx2::detect().is_some(),
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
}

/// What has the same size for all pictures.
#[derive(Debug)]
struct State {
    frame: Frame,
    tables: Tables,
    waiting: [Waiting; 4],
    data: Data,
}

impl Decoder {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            form,
            state: None,
            planes: Vec::new(),
        }
    }

    /// Whether it is faster than libjpeg-turbo here.
    pub(crate) fn is_fast(&self) -> bool {
        self.form != Form::Plain
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.planes.capacity() + self.state.as_ref().map_or(0, |_| size_of::<State>())
    }

    /// Decodes the window to rows without gaps at the start of `out`: RGB, or of pictures of four
    /// components their inks.
    pub(crate) fn decode(&mut self, job: &Job<'_>, out: &mut [u8]) -> Result<(), Refusal> {
        let window = job.window;
        let state = self.state.get_or_insert_with(|| {
            Box::new(State {
                frame: Frame::default(),
                tables: Tables::default(),
                waiting: [Waiting::NONE; 4],
                data: EMPTY,
            })
        });
        let State {
            frame,
            tables,
            waiting,
            data,
        } = &mut **state;
        frame.read(job.bytes)?;
        let found = (frame.width, frame.height, frame.components().len());
        if found != (job.size.0, job.size.1, job.components) || !matches!(job.block, 1 | 2 | 4 | 8)
        {
            return Err(Refusal::Unsupported);
        }
        let pixel = frame.colour.bytes();
        let scaled = |side: usize| (side * job.block).div_ceil(8);
        let (width, height) = (scaled(frame.width), scaled(frame.height));
        let fits = |at: usize, len: usize, size: usize| len > 0 && at < size && len <= size - at;
        if !fits(window.x, window.w, width)
            || !fits(window.y, window.h, height)
            || out.len() / pixel / window.w < window.h
        {
            return Err(Refusal::Unsupported);
        }
        let plan = Plan::new(frame, job.block, window)?;
        let all = plan.bytes + Rows::spare(window);
        if self.planes.len() < all {
            let more = all - self.planes.len();
            let room = self.planes.try_reserve_exact(more);
            room.map_err(|_| Refusal::NoMemory)?;
            self.planes.resize(all, 0);
        }
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
        let out = &mut out[..pixel * window.w * window.h];
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
            Form::Sse41 => {
                let wide = wide::Sse41::detect().ok_or(Refusal::Unsupported)?;
                let (mut stream, bits) = Stream::new(wide, job.bytes, start, data);
                wide.run(scan, &mut stream, bits, &mut rows, out)
            }
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => {
                let wide = wide::Avx2::detect().ok_or(Refusal::Unsupported)?;
                let (mut stream, bits) = Stream::new(wide, job.bytes, start, data);
                wide.run(scan, &mut stream, bits, &mut rows, out)
            }
        }
    }
}
