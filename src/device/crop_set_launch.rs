//! The arguments of `kernels/crop_sets.cu`, byte for byte as the kernel reads them, and the memory
//! that a run of it needs.
//!
//! In the consumer. The numbers of a crop are checked here: see `decode_plan::hull_row`.

use bytemuck::{Pod, Zeroable};

use crate::decode_plan::hull_row::{HullCropHeader, LevelStep};
use crate::device::stage_shapes::{granules, rows_bytes};
use crate::recipe::{HullRule, MAX_LEVEL_STEPS};

/// The kernel's name.
pub(crate) const SET_KERNEL: &str = "crop_sets";
/// Threads of a block.
pub(crate) const SET_THREADS: u32 = 512;
/// Blocks of a launch, if it has as many crops: two on each multiprocessor of an H100.
const MOST_BLOCKS: usize = 264;
/// Most bytes of the memory of all blocks, unless one block takes more. Large crops have fewer
/// blocks: 67 for 512 x 512, 17 for 1000 x 1000.
const MOST_SCRATCH: usize = 256 << 20;
/// Batches whose descriptors lie in pinned memory at one time.
pub(crate) const SET_TURNS: usize = 3;
/// Flag: the row holds no sample, and the kernel writes zeros.
const MASKED: u32 = 16;

/// One crop of one row. Made only from a checked header, or for a row without a sample.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelSetCrop {
    /// Offset of its window in the copied rows.
    pixels: u64,
    /// Offset of its tables there.
    tables: u64,
    /// Offset of the crop in the batch.
    out: u64,
    line: u32,
    width: u32,
    height: u32,
    out_width: u32,
    out_height: u32,
    across_taps: u32,
    down_taps: u32,
    across_precision: u32,
    down_precision: u32,
    flags: u32,
    /// Number of the crop's form.
    form: u32,
    steps: u32,
    step: [LevelStep; MAX_LEVEL_STEPS],
}

impl KernelSetCrop {
    /// Crop number `crop` of a row that begins at byte `begin`, from the headers of its row. `out`:
    /// offset of the crop in the batch. Also returns the end of what it reads, counted from the
    /// beginning of the row.
    ///
    /// # Errors
    /// A malformed header.
    pub(crate) fn read(
        headers: &[u8],
        rule: &HullRule,
        crop: usize,
        (begin, out): (usize, u64),
    ) -> Result<(Self, usize), String> {
        let header = HullCropHeader::read(headers, rule, crop)?;
        let pixels = rule.pixels_at();
        let kernel = Self {
            pixels: (begin + pixels) as u64 + u64::from(header.pixels),
            tables: (begin + rule.tables_at(crop)) as u64,
            out,
            line: header.line,
            width: header.width,
            height: header.height,
            out_width: header.out_width,
            out_height: header.out_height,
            across_taps: header.across_taps,
            down_taps: header.down_taps,
            across_precision: header.across_precision,
            down_precision: header.down_precision,
            flags: header.flags,
            form: crop as u32,
            steps: header.steps,
            step: header.step,
        };
        // Checked: within the row.
        Ok((kernel, pixels + header.pixels_end() as usize))
    }

    /// Number of the crop's form.
    pub(crate) fn form(&self) -> u32 {
        self.form
    }

    /// A crop of zeros.
    pub(crate) fn masked(crop: usize, out: u64) -> Self {
        Self {
            out,
            flags: MASKED,
            form: crop as u32,
            ..Self::zeroed()
        }
    }
}

/// How levels become the elements of a crop, for all rows.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelSetForm {
    /// Of the upright crop.
    pub(crate) height: u32,
    pub(crate) width: u32,
    pub(crate) channels: u32,
    /// 1 if blue comes first.
    pub(crate) reversed: u32,
    /// 1 for NHWC, 0 for NCHW.
    pub(crate) nhwc: u32,
    /// Bytes of an element.
    pub(crate) bytes: u32,
    /// The element of each level of each stored channel.
    pub(crate) elements: [[u32; 256]; 3],
}

impl KernelSetForm {
    /// Bytes of a crop.
    pub(crate) fn crop_bytes(&self) -> usize {
        let elements = self.height as usize * self.width as usize * self.channels as usize;
        elements * self.bytes as usize
    }
}

/// Sizes of the stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CropSetShape {
    /// Most rows of a batch.
    pub(crate) rows: usize,
    /// Crops of a row.
    pub(crate) crops: usize,
    /// Bytes of a row in its slot.
    pub(crate) row_bytes: usize,
    /// Bytes of each block between two passes, and for a made crop.
    pub(crate) between: usize,
    pub(crate) made: usize,
    /// Batches with memory on the device at one time.
    pub(crate) outputs: usize,
    /// Bytes of a full batch on the device.
    pub(crate) output_bytes: usize,
}

impl CropSetShape {
    pub(crate) fn new(
        rule: &HullRule,
        rows: usize,
        (outputs, output_bytes): (usize, usize),
    ) -> Self {
        Self {
            rows,
            crops: rule.count(),
            row_bytes: rule.row_bytes(),
            between: rule.between_bytes(),
            made: rule.made_bytes(),
            outputs,
            output_bytes,
        }
    }

    /// Blocks of a launch for this number of rows.
    pub(crate) fn blocks(&self, rows: usize) -> usize {
        let fit = MOST_SCRATCH / (self.between + self.made).max(1);
        MOST_BLOCKS.min(rows * self.crops).min(fit.max(1))
    }

    pub(crate) fn source_bytes(&self) -> usize {
        self.rows * self.row_bytes
    }

    pub(crate) fn descriptor_bytes(&self) -> usize {
        self.rows * self.crops * size_of::<KernelSetCrop>()
    }

    pub(crate) fn scratch_bytes(&self) -> usize {
        self.blocks(self.rows) * (self.between + self.made)
    }

    pub(crate) fn form_bytes(&self) -> usize {
        self.crops * size_of::<KernelSetForm>()
    }

    /// Most device bytes of the stage, without the context.
    pub(crate) fn device_bytes(&self) -> u64 {
        let buffers = [
            self.source_bytes(),
            self.descriptor_bytes(),
            self.scratch_bytes(),
            self.form_bytes(),
        ];
        let of: u64 = buffers.iter().map(|bytes| granules(*bytes as u64)).sum();
        of + rows_bytes(self.outputs, self.output_bytes)
    }

    /// Pinned host bytes in addition to the ring.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        (SET_TURNS * self.descriptor_bytes() + self.form_bytes()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_plan::hull_row::{
        HULL_BLUR_WEIGHTS, HULL_DOWN_FIRST, HULL_FLIP_X, HULL_FLIP_Y, HULL_TRANSPOSE, LevelKind,
    };

    const SOURCE: &str = include_str!("../../kernels/crop_sets.cu");

    /// The kernel has the same structs, without padding.
    #[test]
    fn sizes_are_those_of_the_kernel() {
        assert_eq!(size_of::<KernelSetCrop>(), 328);
        assert_eq!(size_of::<KernelSetForm>(), 24 + 3 * 1024);
    }

    #[test]
    fn numbers_are_those_of_the_kernel() {
        let lines: Vec<Vec<&str>> = (SOURCE.lines())
            .map(|line| line.split_whitespace().collect())
            .collect();
        let defined = |name: &str| {
            let line = lines.iter().find(|l| l.starts_with(&["#define", name]));
            let number = line.unwrap_or_else(|| panic!("no {name}"))[2];
            number.trim_end_matches('u').parse::<u32>().unwrap()
        };
        for (name, number) in [
            ("SET_FLIP_X", HULL_FLIP_X),
            ("SET_FLIP_Y", HULL_FLIP_Y),
            ("SET_TRANSPOSE", HULL_TRANSPOSE),
            ("SET_DOWN_FIRST", HULL_DOWN_FIRST),
            ("SET_MASKED", MASKED),
            ("SET_STEPS", MAX_LEVEL_STEPS as u32),
            ("SET_WEIGHTS", HULL_BLUR_WEIGHTS as u32),
            ("SET_THREADS", SET_THREADS),
        ] {
            assert_eq!(defined(name), number, "{name}");
        }
        for kind in LevelKind::ALL {
            // `PillowColor` is `LEVEL_PILLOW_COLOR`.
            let mut name = String::from("LEVEL");
            for letter in format!("{kind:?}").chars() {
                if letter.is_uppercase() {
                    name.push('_');
                }
                name.push(letter.to_ascii_uppercase());
            }
            let wanted = format!("{},", kind as u32);
            let line = lines.iter().find(|l| l.starts_with(&[name.as_str(), "="]));
            assert_eq!(line.unwrap_or_else(|| panic!("no {name}"))[2], wanted);
        }
        let kinds = lines
            .iter()
            .filter(|l| l.first().is_some_and(|w| w.starts_with("LEVEL_")));
        let kinds = kinds.filter(|l| l.get(1) == Some(&"="));
        assert_eq!(kinds.count(), LevelKind::ALL.len());
    }

    #[test]
    fn the_kernel_is_in_its_file() {
        let ptx = include_str!("../../kernels/crop_sets.ptx");
        assert!(ptx.contains(&format!(".visible .entry {SET_KERNEL}(")));
    }

    #[test]
    fn every_buffer_is_counted() {
        let shape = CropSetShape {
            rows: 100,
            crops: 10,
            row_bytes: 1 << 20,
            between: 400 << 10,
            made: 150 << 10,
            outputs: 3,
            output_bytes: 5 << 20,
        };
        // Rows, descriptors, 264 blocks of 550 KiB, forms; the driver's own, and three batches.
        let scratch = (264 * 550_u64).div_ceil(2048) * 2;
        let wanted = 100 + 2 + scratch + 2 + 8 + 3 * 6;
        assert_eq!(shape.device_bytes(), wanted << 20);
        assert_eq!(shape.blocks(3), 30);
        let large = |between| CropSetShape { between, ..shape }.blocks(100);
        assert_eq!((large(12 << 20), large(1 << 30)), (21, 1));
        let pinned = 3 * 1000 * size_of::<KernelSetCrop>() + 10 * size_of::<KernelSetForm>();
        assert_eq!(shape.pinned_bytes(), pinned as u64);
    }
}
