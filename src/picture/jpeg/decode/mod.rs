//! Decodes the windows of JPEGs that crops need, with the bytes of libjpeg-turbo 3.1 at its default
//! settings ("islow" transforms, fancy upsampling).
//!
//! [`WindowDecoder::decode`] takes most files: 8 bits, sequential, Huffman codes, one scan of all
//! components. It rejects other files and all damage; the output is then undefined.
//! [`WindowDecoder::decode_general`] takes all files, with the same results and errors as
//! libjpeg-turbo.
//!
//! It does no I/O: bytes in, bytes or an error out. In a file of one scan it reads no coded data
//! after the last row that is needed. It enforces no limits except the number of scans. The header
//! and the rows of blocks of the window determine its memory ([`WindowDecoder::bytes`]). Once that
//! memory exists, a decode allocates only error texts.
//!
//! - `request`: the arguments, and the reasons of a rejection.
//! - `frame`: the header; `geometry`: the blocks and rows that a window needs.
//! - `general`: all other files.
//! - `stream`: coded data without stuffed bytes; `bits`: a position in it.
//! - `huffman`: tables; `blocks`: coefficients.
//! - `scan`: the loop over MCUs; `planes`: samples; `rows`: converts samples to rows of RGB.
//! - `transform`, `filters`: plain forms of the inverse transforms, upsampling and colour
//!   conversion.
//! - `gpu_rows`: rows for the kernels that decode on a GPU.
//! - `simd_form`: the choice of instruction set; `kernels`: functions with forms for wide
//!   registers.
//! - `wide`: those forms; the only `unsafe` here.

mod bits;
mod blocks;
pub(super) mod filters;
pub(super) mod frame;
mod general;
mod geometry;
pub(crate) mod gpu_rows;
mod huffman;
mod kernels;
mod planes;
mod request;
mod rows;
mod scan;
mod simd_form;
mod stream;
pub(super) mod transform;
#[cfg(target_arch = "x86_64")]
mod wide;

#[cfg(test)]
mod tests;

use bits::{EMPTY, UnstuffedData};
use frame::FrameHeader;
pub(crate) use general::{DecodeEnding, DecodeFailure, MOST_SCANS};
use general::{GeneralBuffers, GeneralDecoder};
use kernels::{PlainDecodeKernels, with_kernels};
pub(crate) use request::{DecodeRefusal, DecodeRequest, JpegWindow};
use rows::OutputRows;
use scan::{PendingBlocks, ScanDecoder, ScanTables};
pub(crate) use simd_form::SimdForm;
use stream::CodedStream;
#[cfg(test)]
pub(crate) use tests::stages::stages;

/// For fewer bytes of coded data, decoding by hand is faster than building lookups of new tables.
const FEW_BYTES: usize = 2048;

/// The buffers of a decoder. They grow to the size that pictures need.
#[derive(Debug)]
pub(crate) struct WindowDecoder {
    form: SimdForm,
    state: Option<Box<FixedBuffers>>,
    /// Samples of one or two rows of MCUs, and the enlarged rows.
    planes: Vec<u8>,
    /// For files that `decode` rejects.
    general: Option<Box<GeneralDecoder>>,
}

/// Buffers of the same size for all pictures.
#[derive(Debug)]
struct FixedBuffers {
    frame: FrameHeader,
    tables: ScanTables,
    waiting: [PendingBlocks; 4],
    data: UnstuffedData,
}

impl Default for FixedBuffers {
    fn default() -> Self {
        Self {
            frame: FrameHeader::default(),
            tables: ScanTables::default(),
            waiting: [PendingBlocks::NONE; 4],
            data: EMPTY,
        }
    }
}

impl WindowDecoder {
    pub(crate) fn new(form: SimdForm) -> Self {
        Self {
            form,
            state: None,
            planes: Vec::new(),
            general: None,
        }
    }

    pub(crate) fn form(&self) -> SimdForm {
        self.form
    }

    /// Bytes of allocated memory.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.state.as_ref().map_or(0, |_| size_of::<FixedBuffers>());
        let general = self.general.as_ref().map_or(0, |general| general.bytes());
        self.planes.capacity() + state + general
    }

    /// Like [`Self::decode`], for any file: see [`general`].
    pub(crate) fn decode_general(
        &mut self,
        job: &DecodeRequest<'_>,
        out: &mut [u8],
    ) -> Result<DecodeEnding, DecodeFailure> {
        let buffers = GeneralBuffers {
            form: self.form,
            planes: &mut self.planes,
            waiting: &mut self.state.get_or_insert_default().waiting,
        };
        let general = self.general.get_or_insert_default();
        general.decode(buffers, job, out)
    }

    /// Decodes the window to the start of `out`, in rows without gaps: RGB, or the four inks of a
    /// picture of four components.
    pub(crate) fn decode(
        &mut self,
        job: &DecodeRequest<'_>,
        out: &mut [u8],
    ) -> Result<(), DecodeRefusal> {
        let state = self.state.get_or_insert_default();
        let FixedBuffers {
            frame,
            tables,
            waiting,
            data,
        } = &mut **state;
        frame.read(job.bytes)?;
        let found = (frame.width, frame.height, frame.components().len());
        if found != (job.size.0, job.size.1, job.components) {
            return Err(DecodeRefusal::Unsupported);
        }
        let plan = planes::plan(frame, job, out.len(), &mut self.planes)?;
        let window = job.window;
        let few = job.bytes.len().saturating_sub(frame.scan) < FEW_BYTES;
        for number in 0..2 {
            let mut components = frame.components().iter();
            if components.any(|component| component.dc & 1 == number) {
                tables.dc[number].set(&frame.dc[number])?;
            }
            let mut components = frame.components().iter();
            if components.any(|component| component.ac & 1 == number) {
                tables.ac[number].set(&frame.ac[number], few)?;
            }
        }
        let (planes, spare) = self.planes.split_at_mut(plan.bytes);
        let mut rows = OutputRows {
            plan: &plan,
            colour: frame.colour,
            window,
            next: window.y,
            spare,
        };
        let out = &mut out[..frame.colour.bytes() * window.w * window.h];
        let start = frame.scan;
        let scan = ScanDecoder {
            frame,
            plan: &plan,
            tables,
            waiting,
            planes,
        };
        with_kernels!(self.form, kernels => {
            let (mut stream, bits) = CodedStream::new(kernels, job.bytes, start, data);
            kernels.call(|| scan.run(kernels, &mut stream, bits, &mut rows, out))
        })
    }
}
