//! An upper bound of the memory for rows that are made of several samples, without the decoding of
//! files.
//!
//! Pure. Each stage has a decoder of its own, whose buffers stay from row to row. The canvas of a
//! joint has one size, so the bound does not depend on the data.

use crate::decode_plan::stored_picture::StoredPicture;
use crate::recipe::SampleProgram;
use crate::recipe::size_bounds::HeightWidth;

/// Bytes of the canvases, and of all stages after the first. `sizes`: heights and widths of rows, if
/// batches set them. 0 unless the program joins samples.
pub(crate) fn joined_bytes(program: &SampleProgram, sizes: &[Option<HeightWidth>]) -> u64 {
    let stages = program.joined_stages();
    let canvases = stages.iter().map(|stage| stage.bytes());
    let inner = stages.iter().skip(1).map(|stage| &stage.program);
    let makers = stages.iter().zip(inner.chain([program]));
    let working = makers.map(|(before, maker)| {
        let is_last = std::ptr::eq(maker, program);
        let sizes = if is_last { sizes } else { &[None] };
        canvas_steps(before.canvas, maker, sizes)
    });
    (canvases.chain(working)).fold(0, u64::saturating_add)
}

/// Bytes of the buffers for the steps of a program on a canvas of this height and width.
fn canvas_steps(
    canvas: HeightWidth,
    program: &SampleProgram,
    sizes: &[Option<HeightWidth>],
) -> u64 {
    let stored = StoredPicture::canvas(canvas);
    let mut steps = Vec::new();
    let mut most = None;
    for size in sizes {
        for bound in stored.scratch_bounds(program, *size, &mut steps) {
            most.get_or_insert(bound).raise_all(&bound);
        }
    }
    most.map_or(0, |most| most.bytes())
}
