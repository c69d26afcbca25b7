//! Hashes in the form that manifests use.
//!
//! Used in the consumer and in the fetcher.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use twox_hash::XxHash3_128;
use twox_hash::xxhash3_128::Hasher;

use crate::error::Result;

/// A hash of 64 bits, written as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HexHash64(pub(crate) u64);

/// A hash of 128 bits, written as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HexHash128(pub(crate) u128);

impl HexHash128 {
    /// The XXH3-128 of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(XxHash3_128::oneshot(bytes))
    }

    /// Length and XXH3-128 of the file at `path`, read in pieces of 1 MiB.
    ///
    /// # Errors
    /// When the file cannot be opened or read.
    pub(crate) fn of_file(path: &Path) -> io::Result<(u64, Self)> {
        let mut file = File::open(path)?;
        let (mut bytes, mut hasher, mut piece) = (0, Hasher::new(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok((bytes, Self(hasher.finish_128()))),
                Ok(n) => {
                    hasher.write(&piece[..n]);
                    bytes += n as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl fmt::Display for HexHash64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for HexHash128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for HexHash64 {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl Serialize for HexHash128 {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HexHash64 {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        u64::from_str_radix(&text, 16)
            .map(Self)
            .map_err(|_| de::Error::custom("not a hash of 16 hexadecimal digits"))
    }
}

impl<'de> Deserialize<'de> for HexHash128 {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        u128::from_str_radix(&text, 16)
            .map(Self)
            .map_err(|_| de::Error::custom("not a hash of 32 hexadecimal digits"))
    }
}
