//! Decodes every JPEG that libjpeg-turbo 3.1 decodes and that `WindowDecoder::decode` rejects:
//! several scans, progressive, arithmetic coding, extended tables, odd sampling factors, and damage
//! of all kinds. Pixels, errors and warnings equal those of libjpeg-turbo.
//!
//! Simple code comes before speed here. Coefficients become pixels in the same code as for
//! other files. A file of one scan is read up to the last row that is needed, a file of several
//! scans to its end. The only limit here is the number of scans. The caller limits the memory for
//! coefficients of several scans, two bytes each.
//!
//! - `fatal`: errors that end a decode; `source`: bytes, markers and warnings.
//! - `markers`: the frame, tables, and headers of scans.
//! - `entropy`: common parts of coefficient decoders; `bits`, `tables`, `zigzag`: parts of Huffman
//!   decoders; `sequential`, `progressive`: the Huffman decoders; `read_ahead`: odd stuffing.
//! - `arithmetic`: the decoder of arithmetic coding; `decision_decoder`: its binary decisions.
//! - `progression`: known bits of coefficients; `smoothing`: estimates of missing coefficients.
//! - `coefficients`: the coefficients of a whole picture; `paint`: converts them to pixels.

mod arithmetic;
mod bits;
mod coefficients;
mod decision_decoder;
mod entropy;
mod fatal;
mod markers;
mod paint;
mod progression;
mod progressive;
mod read_ahead;
mod sequential;
mod smoothing;
mod source;
mod tables;
mod zigzag;

#[cfg(test)]
mod tests;

use super::frame::{FrameComponent, FrameHeader, QuantizationTable};
use super::simd_form::SimdForm;

use super::kernels::{PlainDecodeKernels, with_kernels};
use super::planes;
use super::request::{DecodeRefusal, DecodeRequest};
use super::rows::OutputRows;
use super::scan::PendingBlocks;
#[cfg(target_arch = "x86_64")]
use super::wide;
use arithmetic::ArithmeticDecoder;
use coefficients::PictureCoefficients;
use entropy::EntropyDecoder;
use fatal::FatalFault;
use markers::{MarkerEnd, MarkerState};
use paint::PaintTarget;
use progression::ScanProgression;
use progressive::ProgressiveDecoder;
use sequential::SequentialDecoder;
use smoothing::BlockSmoothing;
use source::{ByteSource, DecodeWarning};

/// The maximum number of scans in a file. Each is a pass over the whole picture. Real files have
/// about ten.
pub(crate) const MOST_SCANS: u32 = 100;

/// Why a decode produced no pixels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodeFailure {
    Fatal(FatalFault),
    /// The frame differs from the request in size or components. Holds its width and height.
    OtherSize(usize, usize),
    /// Memory ran out.
    NoMemory,
}

impl From<FatalFault> for DecodeFailure {
    fn from(fatal: FatalFault) -> Self {
        Self::Fatal(fatal)
    }
}

/// How a decode that produced pixels ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeEnding {
    /// The data were read as far as needed, damaged or not.
    Whole,
    /// The file ended too early, with no damage before the end.
    Early,
}

/// The coefficient decoders, and the coefficients of the last picture of several scans.
#[derive(Debug, Default)]
pub(super) struct GeneralDecoder {
    sequential: SequentialDecoder,
    progressive: ProgressiveDecoder,
    arithmetic: ArithmeticDecoder,
    coefficients: PictureCoefficients,
}

/// Buffers that all decodes share.
pub(super) struct GeneralBuffers<'a> {
    pub(super) form: SimdForm,
    pub(super) planes: &'a mut Vec<u8>,
    pub(super) waiting: &'a mut [PendingBlocks; 4],
}

impl GeneralDecoder {
    /// Bytes of this struct and of its allocated memory.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.coefficients.bytes()
    }
}

/// The state of a file that is being read.
struct FileState<'a> {
    source: ByteSource<'a>,
    markers: MarkerState,
    /// The quantization table of each component, set at its first scan.
    quantization: [Option<QuantizationTable>; 4],
    progression: ScanProgression,
    /// The last row of MCUs for which the last scan had data.
    last_good_row: usize,
}

impl GeneralDecoder {
    /// Decodes the window to the start of `out`, in rows without gaps: RGB, or the four inks of a
    /// picture of four components.
    pub(super) fn decode(
        &mut self,
        buffers: GeneralBuffers<'_>,
        job: &DecodeRequest<'_>,
        out: &mut [u8],
    ) -> Result<DecodeEnding, DecodeFailure> {
        let mut file = FileState::open(job)?;
        let mut frame = file.frame();
        let plan = planes::plan(&frame, job, out.len(), buffers.planes);
        let plan = plan.map_err(|refusal| match refusal {
            DecodeRefusal::NoMemory => DecodeFailure::NoMemory,
            // `JpegDecoder` has checked window and size: only bad sampling factors remain.
            _ => FatalFault::FRACTIONS.into(),
        })?;
        let Self {
            sequential,
            progressive,
            arithmetic,
            coefficients,
        } = self;
        let has_several_scans = file.markers.has_several_scans();
        if has_several_scans {
            let room = coefficients.set(&file.markers);
            room.map_err(|_| DecodeFailure::NoMemory)?;
        }
        let is_arithmetic = file.markers.arithmetic;
        match (is_arithmetic, file.markers.scan.progressive) {
            (true, _) => file.begin(buffers.form, arithmetic, coefficients)?,
            (false, true) => file.begin(buffers.form, progressive, coefficients)?,
            (false, false) => {
                file.markers.set_standard_tables();
                file.begin(buffers.form, sequential, coefficients)?;
            }
        }
        for (to, from) in frame.quantization.iter_mut().zip(&file.quantization) {
            *to = from.unwrap_or([0; 64]);
        }
        let (planes, spare) = buffers.planes.split_at_mut(plan.bytes);
        for waiting in buffers.waiting.iter_mut() {
            waiting.clear();
        }
        let canvas = PaintTarget {
            plan: &plan,
            quantization: &frame.quantization,
            waiting: buffers.waiting,
            planes,
            rows: OutputRows {
                plan: &plan,
                colour: frame.colour,
                window: job.window,
                next: job.window.y,
                spare,
            },
            out: &mut out[..frame.colour.bytes() * job.window.w * job.window.h],
        };
        if has_several_scans {
            let smoothing = file.smoothing(coefficients);
            with_kernels!(buffers.form, kernels => {
                canvas.paint(kernels, coefficients, smoothing.as_ref());
            });
        } else {
            let (source, scan) = (&mut file.source, &file.markers.scan);
            with_kernels!(buffers.form, kernels => match is_arithmetic {
                true => canvas.stream(kernels, arithmetic, source, scan)?,
                false => canvas.stream(kernels, sequential, source, scan)?,
            });
        }
        Ok(match file.source.first_warning {
            Some(DecodeWarning::EndOfFile) => DecodeEnding::Early,
            _ => DecodeEnding::Whole,
        })
    }
}

impl<'a> FileState<'a> {
    /// Reads the header, and compares it with the request.
    fn open(job: &DecodeRequest<'a>) -> Result<Self, DecodeFailure> {
        let mut file = Self {
            source: ByteSource::new(job.bytes),
            markers: MarkerState::default(),
            quantization: [None; 4],
            progression: ScanProgression::NEW,
            last_good_row: 0,
        };
        let markers = &mut file.markers;
        markers.read_header(&mut file.source)?;
        let found = (markers.width, markers.height, markers.components().len());
        match found == (job.size.0, job.size.1, job.components) {
            true => Ok(file),
            false => Err(DecodeFailure::OtherSize(found.0, found.1)),
        }
    }

    /// The frame header. The quantization table of each component has the component's number.
    fn frame(&self) -> FrameHeader {
        let mut frame = FrameHeader {
            width: self.markers.width,
            height: self.markers.height,
            count: self.markers.components().len(),
            colour: self.markers.colour(),
            ..FrameHeader::default()
        };
        for (number, component) in self.markers.components().iter().enumerate() {
            frame.components[number] = FrameComponent {
                id: component.id,
                h: component.h,
                v: component.v,
                quantization: number,
                ..FrameComponent::default()
            };
        }
        if frame.count == 1 {
            // A scan of one component has one block per MCU, whatever its factors (T.81, A.2.2).
            (frame.components[0].h, frame.components[0].v) = (1, 1);
        }
        frame
    }

    /// Prepares for the data of a scan (`start_input_pass`).
    fn start(&mut self, entropy: &mut impl EntropyDecoder) -> Result<(), FatalFault> {
        self.markers.set_mcu()?;
        let scan = &self.markers.scan;
        for of in scan.components() {
            let table = &mut self.quantization[of.component & 3];
            if table.is_none() {
                *table = Some(self.markers.quantization(of.component)?);
            }
        }
        if scan.progressive {
            let number = self.markers.scans;
            self.progression.begin(scan, number, &mut self.source)?;
        } else if (scan.first, scan.last, scan.high, scan.low) != (0, 63, 0, 0) {
            self.source.warn(DecodeWarning::Damage);
        }
        entropy.start(&self.markers.tables, scan)
    }

    /// Reads all scans if there are several. Otherwise prepares for the data of the only one.
    fn begin(
        &mut self,
        form: SimdForm,
        entropy: &mut impl EntropyDecoder,
        coefficients: &mut PictureCoefficients,
    ) -> Result<(), FatalFault> {
        match self.markers.has_several_scans() {
            true => form.call(|| self.read(entropy, coefficients)),
            false => self.start(entropy),
        }
    }

    /// Reads all scans, and the markers after them.
    #[inline(always)]
    fn read(
        &mut self,
        entropy: &mut impl EntropyDecoder,
        coefficients: &mut PictureCoefficients,
    ) -> Result<(), FatalFault> {
        loop {
            self.start(entropy)?;
            if self.markers.scans > MOST_SCANS {
                let words = format!("Progressive JPEG image has more than {MOST_SCANS} scans");
                return Err(words.into());
            }
            self.scan(entropy, coefficients)?;
            if self.markers.read(&mut self.source)? == MarkerEnd::End {
                return Ok(());
            }
        }
    }

    /// Reads the data of a scan.
    #[inline(always)]
    fn scan(
        &mut self,
        entropy: &mut impl EntropyDecoder,
        coefficients: &mut PictureCoefficients,
    ) -> Result<(), FatalFault> {
        let scan = &self.markers.scan;
        let (mcus, rows, rows_of_mcu) = coefficients.mcus(scan);
        for row in 0..rows {
            let (mut at, steps) = coefficients.first_of_row(scan, row);
            for _ in 0..mcus {
                if !entropy.is_out_of_data() {
                    self.last_good_row = row / rows_of_mcu;
                }
                entropy.decode(&mut self.source, scan, &mut coefficients.mcu(&at))?;
                for (at, step) in at.iter_mut().zip(steps).take(scan.blocks) {
                    *at += step;
                }
            }
            if entropy.is_out_of_data() && scan.restart_interval == 0 {
                break;
            }
        }
        Ok(())
    }

    /// How blocks are smoothed after the last scan; `None` = not at all.
    fn smoothing(&self, coefficients: &PictureCoefficients) -> Option<BlockSmoothing> {
        if !self.markers.scan.progressive {
            return None;
        }
        BlockSmoothing::new(
            &self.progression,
            &self.quantization[..self.markers.components().len()],
            self.markers.scans,
            self.last_good_row,
            coefficients.mcu_rows,
        )
    }
}
