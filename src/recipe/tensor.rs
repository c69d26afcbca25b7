//! Element types and memory layouts of a batch.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The element type of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataType {
    /// Pixels as decoded and resized, 0 to 255. Not normalised.
    U8,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32: the same range with 8 bits of precision. Rounded to nearest,
    /// ties to even.
    Bf16,
    /// IEEE 754 binary32.
    F32,
}

impl DataType {
    /// All element types.
    pub const ALL: [Self; 4] = [Self::U8, Self::F16, Self::Bf16, Self::F32];

    /// Bytes per element.
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }

    /// The names of all float types, for messages.
    pub(crate) fn floats() -> String {
        let floats = Self::ALL.into_iter().filter(|dtype| *dtype != Self::U8);
        floats.map(Self::name).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DataType {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        let named = Self::ALL.into_iter().find(|dtype| dtype.name() == s);
        named.ok_or_else(|| {
            Error::config(format!(
                "dtype '{s}' is unknown: use one of {}",
                Self::ALL.map(Self::name).join(", ")
            ))
        })
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

    /// The shape of one row with this number of channels, height and width: the layout without its
    /// sample axis.
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
                "layout '{s}' is unknown: use nchw or nhwc"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages, files and command lines use the same names, and `ALL` is complete.
    #[test]
    fn every_type_is_read_by_its_name() {
        for dtype in DataType::ALL {
            let text = serde_json::to_string(&dtype).unwrap();
            assert_eq!(text, format!("\"{dtype}\""));
            assert_eq!(serde_json::from_str::<DataType>(&text).unwrap(), dtype);
            assert_eq!(dtype.name().parse::<DataType>().unwrap(), dtype);
        }
        let said = "bfloat16".parse::<DataType>().unwrap_err().to_string();
        let names = "'bfloat16' is unknown: use one of u8, f16, bf16, f32";
        assert!(said.contains(names), "{said}");
        let said = serde_json::from_str::<DataType>("\"bfloat16\"").unwrap_err();
        let names = "one of `u8`, `f16`, `bf16`, `f32` at";
        assert!(said.to_string().contains(names), "{said}");
        assert_eq!(DataType::ALL.map(DataType::size), [1, 2, 2, 4]);
    }
}
