//! The values of elements: `(v / unit - mean) / std`, each step rounded to `f32`, then to the type of
//! the rows. The same on the CPU and on a device.

use half::{bf16, f16};

use crate::recipe::{ColorOrder, DataType, OutputFormat};

/// Unit, and the mean and deviation of each channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChannelScaling {
    /// The value that becomes 1: 255 for levels.
    pub(crate) unit: f32,
    pub(crate) mean: [f32; 3],
    pub(crate) std: [f32; 3],
}

impl ChannelScaling {
    #[inline(always)]
    pub(crate) fn of(&self, channel: usize, v: f32) -> f32 {
        (v / self.unit - self.mean[channel]) / self.std[channel]
    }
}

impl OutputFormat {
    /// Mean and deviation of each source channel.
    pub(crate) fn scaling(&self) -> ChannelScaling {
        let of = |mut v: [f32; 3]| {
            if self.order == ColorOrder::Bgr {
                v.reverse();
            }
            v
        };
        ChannelScaling {
            unit: self.unit,
            mean: of(self.mean),
            std: of(self.std),
        }
    }

    /// The bits of the element for each level of each source channel, in the low bytes of a number.
    pub(crate) fn element_bits(&self) -> [[u32; 256]; 3] {
        let scaling = self.scaling();
        let bits = |channel, level: usize| {
            let value = scaling.of(channel, level as f32);
            match self.dtype {
                DataType::F32 => value.to_bits(),
                DataType::F16 => f16::from_f32(value).to_bits().into(),
                DataType::Bf16 => bf16::from_f32(value).to_bits().into(),
                DataType::U8 => level as u32,
            }
        };
        std::array::from_fn(|channel| std::array::from_fn(|level| bits(channel, level)))
    }
}
