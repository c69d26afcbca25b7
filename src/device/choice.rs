//! What a user chooses: where batches end, how a device gets at pixels, and which decoders
//! make them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Where batches end: in memory of the host, or of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum Device {
    /// Memory of the host.
    #[default]
    Cpu,
    /// The CUDA device of this number among the visible ones.
    Cuda(u32),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl TryFrom<String> for Device {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let ordinal = match s {
            "cpu" => return Ok(Self::Cpu),
            "cuda" => Some(0),
            _ => s.strip_prefix("cuda:").and_then(|i| i.parse().ok()),
        };
        ordinal.map(Self::Cuda).ok_or_else(|| {
            Error::config(format!(
                "device '{s}' is unknown: use cpu, cuda, or cuda:0, cuda:1 and so on"
            ))
        })
    }
}

/// How a device gets at pixels that workers hand over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UploadMode {
    /// Read over the bus while the kernel runs: each pixel once, twice where contrast is
    /// changed, and no memory of the device for them.
    #[default]
    InPlace,
    /// Copied first: by the device's copy engine, so that the kernel takes less of its
    /// time, into memory for one batch of pixels.
    Copied,
}

impl fmt::Display for UploadMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InPlace => "in-place",
            Self::Copied => "copied",
        })
    }
}

/// Who decodes JPEGs for a device. Pixels do not depend on it: the device's kernels make those of
/// the CPU's decoder, bit by bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DecodeOn {
    /// As [`DecodeOn::Gpu`], where batches end on a device, the recipe lets it make the rows and
    /// there is memory for it; else as [`DecodeOn::Cpu`].
    #[default]
    Auto,
    /// The device, all files that its kernels take: sequential Huffman JPEGs of 8 bits in one
    /// scan, grey or in three components, that fit their row. Workers decode the others.
    Gpu,
    /// The workers.
    Cpu,
}

impl DecodeOn {
    const ALL: [Self; 3] = [Self::Auto, Self::Gpu, Self::Cpu];
}

impl fmt::Display for DecodeOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Gpu => "gpu",
            Self::Cpu => "cpu",
        })
    }
}

impl FromStr for DecodeOn {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|on| on.to_string() == s);
        found.ok_or_else(|| {
            Error::config(format!("decode_on '{s}' is unknown: use auto, gpu, or cpu"))
        })
    }
}
