//! User choices: where batches are delivered, how a device reads pixels, and which decoders decode
//! JPEGs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Where batches are delivered: host memory or device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum Device {
    /// Host memory.
    #[default]
    Cpu,
    /// The CUDA device with this number among the visible ones.
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

/// How a device reads the crops that workers hand over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UploadMode {
    /// The kernel reads pixels over the bus: each pixel once, or twice if the contrast changes.
    /// Needs no device memory for pixels.
    #[default]
    InPlace,
    /// The copy engine copies pixels first, into device memory for one batch. The kernel then takes
    /// less time.
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

/// Which decoder decodes JPEGs for a device. Pixels do not depend on it: the device's kernels
/// produce the bits of the CPU decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DecodeOn {
    /// [`DecodeOn::Gpu`] if batches are delivered on a device, the recipe lets the device finish
    /// the rows, there is memory for it, and no substitute would need targets of its own. Otherwise
    /// [`DecodeOn::Cpu`].
    #[default]
    Auto,
    /// The device decodes all files that its kernels support: sequential Huffman JPEGs of 8 bits in
    /// one scan, with one or three components, that fit their row. Workers decode the others.
    Gpu,
    /// Workers decode all files.
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
