//! An upper bound of the memory for rows that are made of several samples, without the decoding of
//! files.
//!
//! Pure. Each stage has a decoder of its own, whose buffers stay from row to row. The canvas of a
//! joint has one size, so the bound does not depend on the data.

use crate::decode_plan::stored_picture::StoredPicture;
use crate::jobs::stage_needs::{StageNeeds, label_bytes};
use crate::picture::read_header::DecodeCost;
use crate::recipe::SampleProgram;
use crate::recipe::size_bounds::HeightWidth;

/// Bytes of the canvases, and of all stages after the first. `sizes`: heights and widths of rows, if
/// batches set them. `needs`: labels that go through the stages, with those of this number of objects. 0
/// unless the program joins samples.
pub(crate) fn joined_bytes(
    program: &SampleProgram,
    sizes: &[Option<HeightWidth>],
    (needs, objects): (StageNeeds, u64),
) -> u64 {
    let stages = program.joined_stages();
    if stages.is_empty() {
        return 0;
    }
    let canvases = stages
        .iter()
        .map(|stage| stage.bytes().saturating_add(needs.bytes(stage)));
    let inner = stages.iter().skip(1).map(|stage| &stage.program);
    let makers = stages.iter().zip(inner.chain([program]));
    let working = makers.map(|(before, maker)| {
        let is_last = std::ptr::eq(maker, program);
        let sizes = if is_last { sizes } else { &[None] };
        let pixels = canvas_steps(StoredPicture::canvas(before.canvas), maker, sizes);
        let labels = maker.for_labels().ok().filter(|_| needs.any());
        let labels = labels.map_or(0, |labels| label_steps(before.canvas, &labels, sizes));
        pixels.saturating_add(labels)
    });
    let masks = needs.mask_bytes(stages.iter(), objects);
    (canvases.chain(working)).fold(masks, u64::saturating_add)
}

/// Bytes of the buffers for the steps of a program of labels on a canvas of this height and width.
fn label_steps(canvas: HeightWidth, program: &SampleProgram, sizes: &[Option<HeightWidth>]) -> u64 {
    let rows = sizes.iter().map(|size| {
        let row = size.unwrap_or_else(|| program.extent.of(canvas));
        let stored = StoredPicture {
            cost: DecodeCost::Rows {
                scratch: label_bytes(canvas).saturating_add(label_bytes(row)),
            },
            ..StoredPicture::canvas(canvas)
        };
        canvas_steps(stored, program, &[*size])
    });
    rows.max().unwrap_or(0)
}

/// Bytes of the buffers for the steps of a program on such a canvas.
fn canvas_steps(
    stored: StoredPicture,
    program: &SampleProgram,
    sizes: &[Option<HeightWidth>],
) -> u64 {
    let mut steps = Vec::new();
    let mut most = None;
    for size in sizes {
        for bound in stored.scratch_bounds(program, *size, &mut steps) {
            most.get_or_insert(bound).raise_all(&bound);
        }
    }
    most.map_or(0, |most| most.bytes())
}
