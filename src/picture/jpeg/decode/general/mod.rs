//! Decodes every JPEG that libjpeg-turbo 3.1 decodes and that `WindowDecoder::decode` rejects:
//! several scans, progressive, arithmetic coding, extended tables, odd sampling factors, and damage
//! of all kinds. Pixels, errors and warnings are those of libjpeg-turbo.
//!
//! It is fast enough rather than fastest. Coefficients become pixels by the same code as for other
//! files. A file of one scan is read up to the last row that is needed, a file of several scans to
//! its end. Of limits it knows only the number of scans. The caller limits the coefficients of
//! several scans, two bytes each.
//!
//! - `fatal`: errors that end a decode; `source`: bytes, markers and warnings.
//! - `markers`: the frame, tables, and headers of scans.
//! - `entropy`: common parts of decoders of coefficients; `bits`, `tables`, `zigzag`: parts of
//!   Huffman decoders; `sequential`, `progressive`: decoders; `read_ahead`: odd stuffing.
//! - `arithmetic`: the decoder of arithmetic coding; `decision_decoder`: its binary decisions.
//! - `progression`: the known bits of coefficients; `smoothing`: estimates of unknown ones.
//! - `coefficients`: the coefficients of a whole image; `paint`: converts them to pixels.

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

/// The most scans of a file. Each is a pass over the whole picture. Real files have about ten.
pub(crate) const MOST_SCANS: u32 = 100;

/// Why there are no pixels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodeFailure {
    Fatal(FatalFault),
    /// The frame has this width and height, which are not those of the job.
    OtherSize(usize, usize),
    /// There is no memory.
    NoMemory,
}

impl From<FatalFault> for DecodeFailure {
    fn from(fatal: FatalFault) -> Self {
        Self::Fatal(fatal)
    }
}

/// How a decode went that gave pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeEnding {
    /// Damaged or not, as far as pixels were needed.
    Whole,
    /// The file ended too early, and nothing was wrong before.
    Early,
}

/// The decoders of coefficients, and those of the last picture of several scans.
#[derive(Debug, Default)]
pub(super) struct GeneralDecoder {
    sequential: SequentialDecoder,
    progressive: ProgressiveDecoder,
    arithmetic: ArithmeticDecoder,
    coefficients: PictureCoefficients,
}

/// What one decode after another uses, whatever the files are.
pub(super) struct GeneralBuffers<'a> {
    pub(super) form: SimdForm,
    pub(super) planes: &'a mut Vec<u8>,
    pub(super) waiting: &'a mut [PendingBlocks; 4],
}

impl GeneralDecoder {
    /// Bytes that are held.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.coefficients.bytes()
    }
}

/// A file, as far as it is read.
struct FileState<'a> {
    source: ByteSource<'a>,
    markers: MarkerState,
    /// The table of each component, from its first scan on.
    quantization: [Option<QuantizationTable>; 4],
    progression: ScanProgression,
    /// The last row of MCUs that the last scan had data for.
    last_good_row: usize,
}

impl GeneralDecoder {
    /// Decodes the window to rows without gaps at the start of `out`: RGB, or of pictures of four
    /// components their inks.
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
            // `JpegDecoder` has compared window and size: only the factors are left.
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
    /// Reads the header.
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

    /// The frame, whose tables are those of the components.
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
            // A scan of one component has a block to the MCU, whatever its factors (T.81, A.2.2).
            (frame.components[0].h, frame.components[0].v) = (1, 1);
        }
        frame
    }

    /// Gets ready for the data of a scan (`start_input_pass`).
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

    /// Reads all scans of several, or gets ready for the data of the only one.
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

    /// How blocks are smoothed after the last scan, if they are.
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
