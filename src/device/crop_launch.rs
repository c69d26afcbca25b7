//! What a launch of `kernels/crops.cu` is told, byte for byte as the kernel
//! reads it.
//!
//! In the consumer. The numbers of a row were checked before they stand here:
//! see `cut::crop`.

use bytemuck::{Pod, Zeroable};

use crate::decode_plan::crop_row::{CROP_HEADER, CropHeader, CropStep, MAX_CROP_STEPS};
use crate::recipe::{ColorOrder, CropRowBytes, DataType, MemoryLayout, OutputFormat};

/// The row holds no sample: zeros.
pub(crate) const MASKED: u32 = 8;

/// Another launch makes the row: this one leaves it alone.
pub(crate) const ELSEWHERE: u32 = 16;

/// One row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelRow {
    /// Where tight rows of RGB begin: bytes behind the launch's pixels.
    pub(crate) pixels: u64,
    /// Where the weights begin, those across and right behind them those down:
    /// bytes behind the launch's tables. Of an axis: first source pixel of each
    /// output pixel (u32), then tap by tap the weights of all output pixels (f32).
    pub(crate) tables: u64,
    /// 0. The first of two launches counts here what the second takes the mean of.
    pub(crate) grey: u64,
    /// Pixels that were handed over.
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) across_taps: u32,
    pub(crate) down_taps: u32,
    /// Of the row, as its pixels are stored.
    pub(crate) out_width: u32,
    pub(crate) out_height: u32,
    /// As in a crop's header, or [`MASKED`].
    pub(crate) flags: u32,
    /// How many of `step` are done.
    pub(crate) steps: u32,
    pub(crate) step: [CropStep; MAX_CROP_STEPS],
}

impl KernelRow {
    /// The row of a checked header that begins so many bytes behind its slot's beginning.
    pub(crate) fn of(header: &CropHeader, begin: usize, room: CropRowBytes) -> Self {
        Self {
            pixels: (begin + room.pixels_at()) as u64,
            tables: (begin + CROP_HEADER) as u64,
            grey: 0,
            width: header.width,
            height: header.height,
            across_taps: header.across_taps,
            down_taps: header.down_taps,
            out_width: header.out_width,
            out_height: header.out_height,
            flags: header.flags,
            steps: header.steps,
            step: header.step,
        }
    }

    /// The same row, of a whole picture whose lines have `stride` pixels: `pixels` is where its
    /// crop begins. Of such lines the kernel reads what weights name, and those are the crop's.
    pub(crate) fn of_lines(self, pixels: u64, stride: u32) -> Self {
        Self {
            pixels,
            width: stride,
            ..self
        }
    }

    /// Whether a step takes the mean of the row.
    pub(crate) fn takes_mean(&self) -> bool {
        let mut steps = self.step.iter().take(self.steps as usize);
        steps.any(CropStep::takes_mean)
    }
}

/// What a launch does. A batch of which any row takes its mean needs both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CropPass {
    /// Counts the grey of rows that take their mean: their pixels, through the steps
    /// in front of that one.
    Sums,
    /// Makes the rows.
    Rows,
}

impl CropPass {
    /// As the kernel is told it.
    pub(crate) fn sums(self) -> u32 {
        u32::from(self == Self::Sums)
    }
}

/// From values to elements, for all rows of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelEmission {
    unit: f32,
    mean: [f32; 3],
    std: [f32; 3],
    /// 0 red first, 1 blue first, 2 one channel.
    order: u32,
    /// As the kernel counts them.
    dtype: u32,
    /// 1, or 0 for NCHW.
    nhwc: u32,
    /// Of a row, as it is looked at.
    height: u32,
    width: u32,
}

impl KernelEmission {
    pub(crate) fn new(emission: &OutputFormat, (height, width): (u32, u32)) -> Self {
        Self {
            unit: emission.unit,
            mean: emission.mean,
            std: emission.std,
            order: match emission.order {
                ColorOrder::Rgb => 0,
                ColorOrder::Bgr => 1,
                ColorOrder::Grey => 2,
            },
            dtype: match emission.dtype {
                DataType::U8 => 0,
                DataType::F16 => 1,
                DataType::F32 => 2,
                DataType::Bf16 => 3,
            },
            nhwc: u32::from(emission.layout == MemoryLayout::Nhwc),
            height,
            width,
        }
    }

    /// Height and width of a row, as it is looked at.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.height, self.width)
    }

    /// Elements of a row.
    pub(crate) fn elements(&self) -> usize {
        let channels = if self.order == 2 { 1 } else { 3 };
        self.height as usize * self.width as usize * channels
    }
}

/// Threads of a block, across and down.
pub(crate) const BLOCK: (u32, u32) = (32, 8);

/// What a block makes, and the shared memory that it has for source pixels. On an
/// H100 the fastest of those tried for pixels that are read out of the host's
/// memory; for pixels on the device all were equal to a few percent.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelTile {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) kept: u32,
}

impl KernelTile {
    pub(crate) const USUAL: Self = Self {
        width: 64,
        height: 32,
        kept: 24 << 10,
    };

    /// Blocks across and down for rows of this height and width.
    pub(crate) fn grid(&self, (height, width): (u32, u32)) -> (u32, u32) {
        (width.div_ceil(self.width), height.div_ceil(self.height))
    }
}

/// The kernel's name.
pub(crate) const KERNEL: &str = "crops";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_plan::crop_row::{FLIP_X, FLIP_Y, TRANSPOSE};
    use crate::recipe::{ColorSpace, Step, WhitePoint};

    /// The kernel has the same structs, without padding.
    #[test]
    fn sizes_are_those_of_the_kernel() {
        assert_eq!(size_of::<KernelRow>(), 120);
        assert_eq!(size_of::<KernelEmission>(), 48);
        assert_eq!(size_of::<KernelTile>(), 12);
    }

    /// The kernel has the same numbers for the types.
    #[test]
    fn types_are_those_of_the_kernel() {
        let source = include_str!("../../kernels/crops.cu");
        for dtype in DataType::ALL {
            let emission = OutputFormat {
                zero_channels: 0,
                unit: 255.0,
                mean: [0.0; 3],
                std: [1.0; 3],
                dtype,
                layout: MemoryLayout::Nchw,
                order: ColorOrder::Rgb,
            };
            let number = KernelEmission::new(&emission, (1, 1)).dtype;
            let name = dtype.name().to_uppercase();
            let said = format!(" DTYPE_{name} = {number}");
            assert!(source.contains(&(said.clone() + ",")) || source.contains(&(said + " ")));
        }
    }

    /// Flags, steps and their numbers stand in the kernel as they do here.
    #[test]
    fn numbers_are_those_of_the_kernel() {
        let source = include_str!("../../kernels/crops.cu");
        let lines: Vec<Vec<&str>> = (source.lines())
            .map(|line| line.split_whitespace().collect())
            .collect();
        let defined = |name: &str| {
            let line = lines.iter().find(|l| l.starts_with(&["#define", name]));
            let number = line.unwrap_or_else(|| panic!("no {name}"))[2];
            number.trim_end_matches('u').parse::<u32>().unwrap()
        };
        for (name, number) in [
            ("FLIP_X", FLIP_X),
            ("FLIP_Y", FLIP_Y),
            ("TRANSPOSE", TRANSPOSE),
            ("MASKED", MASKED),
            ("ELSEWHERE", ELSEWHERE),
            ("MAX_STEPS", MAX_CROP_STEPS as u32),
            ("THREADS_ACROSS", BLOCK.0),
            ("THREADS_DOWN", BLOCK.1),
        ] {
            assert_eq!(defined(name), number, "{name}");
        }
        let steps = [
            ("BRIGHTNESS", Step::Brightness(0.5)),
            ("SATURATION", Step::Saturation(0.5)),
            ("HUE", Step::Hue(0.5)),
            ("GRAYSCALE", Step::Grayscale),
            ("LAB_D65", Step::Convert(ColorSpace::Lab, WhitePoint::D65)),
            ("LAB_D50", Step::Convert(ColorSpace::Lab, WhitePoint::D50)),
            ("HSV", Step::Convert(ColorSpace::Hsv, WhitePoint::D65)),
            ("YCBCR", Step::Convert(ColorSpace::Ycbcr, WhitePoint::D65)),
            ("CONTRAST", Step::Contrast(0.5)),
        ];
        for (name, step) in &steps {
            let kind = CropStep::of(step).unwrap().kind;
            let said = format!("{kind},");
            assert!(
                lines.iter().any(|l| l == &[*name, "=", &said]),
                "{name} = {kind}"
            );
        }
        let kinds = (0..999).filter(|&kind| CropStep { kind, amount: 0.5 }.step().is_some());
        assert_eq!(steps.len(), kinds.count(), "a step is not listed above");
    }

    #[test]
    fn a_mean_is_taken_by_steps_that_are_done() {
        let mut row = KernelRow {
            steps: 1,
            ..KernelRow::default()
        };
        row.step[0] = CropStep::of(&Step::Hue(0.5)).unwrap();
        row.step[1] = CropStep::of(&Step::Contrast(0.0)).unwrap();
        assert!(!row.takes_mean());
        assert!(KernelRow { steps: 2, ..row }.takes_mean());
    }

    #[test]
    fn the_kernel_is_in_its_file() {
        let ptx = include_str!("../../kernels/crops.ptx");
        assert!(ptx.contains(&format!(".visible .entry {KERNEL}(")));
    }
}
