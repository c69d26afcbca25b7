//! Element types and memory layouts of a batch.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The element type of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 0 to 255: pixels as decoded and resized; not normalised.
    U8,
    /// IEEE 754 binary16.
    F16,
    /// IEEE 754 binary32.
    F32,
}

impl Dtype {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 => 2,
            Self::F32 => 4,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::F16 => "f16",
            Self::F32 => "f32",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dtype {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        match s {
            "u8" => Ok(Self::U8),
            "f16" => Ok(Self::F16),
            "f32" => Ok(Self::F32),
            _ => Err(Error::config(format!(
                "dtype '{s}' is not one of u8, f16, f32"
            ))),
        }
    }
}

/// The order of a batch's axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryLayout {
    /// Sample, channel, row, column.
    Nchw,
    /// Sample, row, column, channel.
    Nhwc,
}

impl MemoryLayout {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nchw => "nchw",
            Self::Nhwc => "nhwc",
        }
    }

    /// Length of each axis of one row of so many channels and this height and
    /// width: the layout without its sample axis.
    pub fn row_shape(self, channels: usize, height: usize, width: usize) -> [usize; 3] {
        match self {
            Self::Nchw => [channels, height, width],
            Self::Nhwc => [height, width, channels],
        }
    }
}

impl fmt::Display for MemoryLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MemoryLayout {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        match s.to_ascii_lowercase().as_str() {
            "nchw" => Ok(Self::Nchw),
            "nhwc" => Ok(Self::Nhwc),
            _ => Err(Error::config(format!(
                "layout '{s}' is not one of nchw, nhwc"
            ))),
        }
    }
}
