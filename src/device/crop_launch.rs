//! The arguments of `kernels/crops.cu`, byte for byte as the kernel reads them.
//!
//! In the consumer. The numbers of a row were checked before: see `decode_plan::crop_row`.

use bytemuck::{Pod, Zeroable};

use crate::decode_plan::crop_row::{CROP_HEADER, CropHeader, CropStep, MAX_CROP_STEPS};
use crate::recipe::{ColorOrder, CropRowBytes, DataType, MemoryLayout, OutputFormat};

/// The row holds no sample: the kernel writes zeros.
pub(crate) const MASKED: u32 = 8;

/// Another launch makes the row. This one does not write it.
pub(crate) const ELSEWHERE: u32 = 16;

/// One row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelRow {
    /// Offset of the row's RGB pixels, without gaps, in the launch's pixels. In bytes.
    pub(crate) pixels: u64,
    /// Offset of the weights in the launch's tables, in bytes: those across, then those down. Each
    /// axis has the first source pixel of each output pixel (u32), then tap by tap the weights of
    /// all output pixels (f32).
    pub(crate) tables: u64,
    /// 0 at first. The first of two launches adds up the grey here, and the second divides it to
    /// get the mean.
    pub(crate) grey: u64,
    /// Size of the pixels that the worker handed over.
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) across_taps: u32,
    pub(crate) down_taps: u32,
    /// Size of the row, as its pixels are stored.
    pub(crate) out_width: u32,
    pub(crate) out_height: u32,
    /// The flags of the crop's header, or [`MASKED`].
    pub(crate) flags: u32,
    /// Number of entries of `step` that count.
    pub(crate) steps: u32,
    pub(crate) step: [CropStep; MAX_CROP_STEPS],
}

impl KernelRow {
    /// The row of a checked header that begins at byte `begin` of its slot.
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

    /// The same row as a part of a whole image whose lines have `stride` pixels. `pixels`: offset
    /// of its crop. The weights only name pixels of the crop, so the kernel reads no others.
    pub(crate) fn of_lines(self, pixels: u64, stride: u32) -> Self {
        Self {
            pixels,
            width: stride,
            ..self
        }
    }

    /// Whether a step needs the mean of the row.
    pub(crate) fn takes_mean(&self) -> bool {
        let mut steps = self.step.iter().take(self.steps as usize);
        steps.any(CropStep::takes_mean)
    }
}

/// The purpose of a launch. A batch with a row that needs its mean takes both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CropPass {
    /// Sums the grey of rows that need their mean, after the steps before that one.
    Sums,
    /// Makes the rows.
    Rows,
}

impl CropPass {
    /// The kernel's argument.
    pub(crate) fn sums(self) -> u32 {
        u32::from(self == Self::Sums)
    }
}

/// How values become elements, for all rows of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelEmission {
    unit: f32,
    mean: [f32; 3],
    std: [f32; 3],
    /// 0: red first, 1: blue first, 2: one channel.
    order: u32,
    /// The kernel's number of the type.
    dtype: u32,
    /// 1 for NHWC, 0 for NCHW.
    nhwc: u32,
    /// Of an upright row.
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

    /// Height and width of an upright row.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.height, self.width)
    }

    /// Elements of a row.
    pub(crate) fn elements(&self) -> usize {
        let channels = if self.order == 2 { 1 } else { 3 };
        self.height as usize * self.width as usize * channels
    }
}

/// Threads per block, across and down.
pub(crate) const BLOCK: (u32, u32) = (32, 8);

/// Output pixels of a block, and its shared memory for source pixels. The fastest of the sizes
/// tried on an H100 for pixels in host memory. For pixels on the device all were equal to a few
/// percent.
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
                patches: None,
                unit: 255.0,
                mean: [0.0; 3],
                std: [1.0; 3],
                dtype,
                layout: MemoryLayout::Nchw,
                order: ColorOrder::Rgb,
            };
            let number = KernelEmission::new(&emission, (1, 1)).dtype;
            let name = dtype.name().to_uppercase();
            let line = format!(" DTYPE_{name} = {number}");
            assert!(source.contains(&(line.clone() + ",")) || source.contains(&(line + " ")));
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
            let line = format!("{kind},");
            assert!(
                lines.iter().any(|l| l == &[*name, "=", &line]),
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
