//! The intermediate results of the plain form, between coded data and pixels, for tests of kernels
//! with the same stages.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::picture::jpeg::decode::bits::{BitPosition, EMPTY, UnstuffedData};
use crate::picture::jpeg::decode::blocks::{BlockPair, BlockTables, PairTarget};
use crate::picture::jpeg::decode::frame::{FrameHeader, QuantizationTable};
use crate::picture::jpeg::decode::geometry::WindowGeometry;
use crate::picture::jpeg::decode::kernels::{DecodeKernels, PlainDecodeKernels};
use crate::picture::jpeg::decode::planes;
use crate::picture::jpeg::decode::request::{DecodeRefusal, DecodeRequest};
use crate::picture::jpeg::decode::rows::OutputRows;
use crate::picture::jpeg::decode::scan::{PendingBlocks, ScanDecoder, ScanTables};
use crate::picture::jpeg::decode::stream::CodedStream;
use crate::picture::jpeg::standard_tables::ZIGZAG;

/// A block that the window needs, of a component with more than one sample per block.
#[derive(Debug, Clone)]
pub(crate) struct StageBlock {
    /// In zigzag order, DC first.
    pub(crate) coefficients: [i16; 64],
    /// Row by row.
    pub(crate) samples: Vec<u8>,
}

/// The blocks of each component (0 to 2) and column of needed blocks (from 0), from top to bottom.
pub(crate) type Stages = BTreeMap<(usize, usize), Vec<StageBlock>>;

/// Decodes the window of a job to `out`, and returns all its blocks.
pub(crate) fn stages(job: &DecodeRequest<'_>, out: &mut [u8]) -> Result<Stages, DecodeRefusal> {
    let mut frame = FrameHeader::default();
    frame.read(job.bytes)?;
    let mut buffer = Vec::new();
    let plan = planes::plan(&frame, job, out.len(), &mut buffer)?;
    let mut tables = ScanTables::default();
    for component in frame.components() {
        let (dc, ac) = (component.dc & 1, component.ac & 1);
        tables.dc[dc].set(&frame.dc[dc])?;
        tables.ac[ac].set(&frame.ac[ac], false)?;
    }
    let (planes, spare) = buffer.split_at_mut(plan.bytes);
    let mut rows = OutputRows {
        plan: &plan,
        colour: frame.colour,
        window: job.window,
        next: job.window.y,
        spare,
    };
    let scan = ScanDecoder {
        frame: &frame,
        plan: &plan,
        tables: &tables,
        waiting: &mut [PendingBlocks::NONE; 4],
        planes,
    };
    let stages = RefCell::default();
    let kernels = Recorder {
        plan: &plan,
        stages: &stages,
    };
    let mut data = EMPTY;
    let (mut stream, bits) = CodedStream::new(kernels, job.bytes, frame.scan, &mut data);
    scan.run(kernels, &mut stream, bits, &mut rows, out)?;
    Ok(stages.into_inner())
}

/// The plain form, which records the inputs and outputs of its transforms.
#[derive(Debug, Clone, Copy)]
struct Recorder<'a> {
    plan: &'a WindowGeometry,
    stages: &'a RefCell<Stages>,
}

impl Recorder<'_> {
    fn record(&self, from: &BlockPair, planes: &[u8], at: PairTarget) {
        for (which, place) in [Some(at.first), at.second].into_iter().enumerate() {
            let Some(place) = place else {
                continue;
            };
            let mut components = self.plan.planes().iter().enumerate();
            let of = components.rfind(|(_, plane)| plane.start <= place);
            let (component, plane) = of.unwrap();
            let column = (place - plane.start) % plane.pitch / plane.side;
            let rows = planes[place..].chunks(plane.pitch).take(plane.side);
            let block = StageBlock {
                coefficients: ZIGZAG.map(|natural| {
                    let (row, column) = (usize::from(natural) / 8, usize::from(natural) % 8);
                    from.0[16 * row + 8 * which + column]
                }),
                samples: rows.flat_map(|row| &row[..plane.side]).copied().collect(),
            };
            // The blocks of a column come from top to bottom.
            let mut stages = self.stages.borrow_mut();
            stages.entry((component, column)).or_default().push(block);
        }
    }
}

impl DecodeKernels for Recorder<'_> {
    fn copy_clean(self, from: &[u8], to: &mut [u8]) -> usize {
        PlainDecodeKernels.copy_clean(from, to)
    }

    fn decode(
        self,
        bits: &mut BitPosition,
        data: &UnstuffedData,
        codes: BlockTables<'_>,
        places: &[u8; 512],
        to: &mut [i16; 256],
    ) -> (i32, u64) {
        PlainDecodeKernels.decode(bits, data, codes, places, to)
    }

    fn decode_dc(
        self,
        bits: &mut BitPosition,
        data: &UnstuffedData,
        blocks: &[BlockTables<'_>],
        dc: &mut [i32; 4],
    ) -> bool {
        PlainDecodeKernels.decode_dc(bits, data, blocks, dc)
    }

    fn transform8(
        self,
        from: &BlockPair,
        q: &QuantizationTable,
        end: u64,
        to: &mut [u8],
        at: PairTarget,
    ) {
        PlainDecodeKernels.transform8(from, q, end, to, at);
        self.record(from, to, at);
    }

    fn transform4(self, from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget) {
        PlainDecodeKernels.transform4(from, q, to, at);
        self.record(from, to, at);
    }

    fn transform2(self, from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget) {
        PlainDecodeKernels.transform2(from, q, to, at);
        self.record(from, to, at);
    }

    fn across(self, near: &[u8], count: usize, to: &mut [u8]) {
        PlainDecodeKernels.across(near, count, to);
    }

    fn both(self, near: &[u8], far: &[u8], count: usize, to: &mut [u8]) {
        PlainDecodeKernels.both(near, far, count, to);
    }

    fn ycc_to_rgb(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
        PlainDecodeKernels.ycc_to_rgb(rows, pixels, to);
    }

    fn interleave(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
        PlainDecodeKernels.interleave(rows, pixels, to);
    }
}
