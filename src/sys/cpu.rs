//! Which instruction set the pixel loops use: detected or forced, once.
//!
//! Asked in the worker and in the loop without workers, at start. Results never
//! depend on the answer, only speed does. No pixel code in here.

use crate::error::{Error, Result};

const VARIABLE: &str = "FEATHERLOAD_CPU";

/// An instruction set for which there is a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuLevel {
    /// Plain Rust: the reference of the others, and all there is off x86-64.
    Scalar,
    Sse41,
    Avx2,
}

impl CpuLevel {
    /// Slowest first.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Sse41, Self::Avx2];

    /// What `FEATHERLOAD_CPU` says, else the best that this CPU has.
    pub fn detect() -> Result<Self> {
        match std::env::var_os(VARIABLE) {
            None => Ok(Self::best()),
            Some(value) => Self::parse(&value.to_string_lossy()),
        }
    }

    fn parse(value: &str) -> Result<Self> {
        let level = Self::ALL
            .into_iter()
            .find(|l| l.name() == value)
            .ok_or_else(|| {
                Error::config(format!(
                    "{VARIABLE}={value} is none of scalar, sse4.1, avx2"
                ))
            })?;
        if !level.is_supported() {
            return Err(Error::config(format!(
                "{VARIABLE}={value}, but this CPU has {} at most",
                Self::best().name()
            )));
        }
        Ok(level)
    }

    fn best() -> Self {
        Self::ALL
            .into_iter()
            .rev()
            .find(|l| l.is_supported())
            .unwrap_or(Self::Scalar)
    }

    /// The name by which `FEATHERLOAD_CPU` and reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse41 => "sse4.1",
            Self::Avx2 => "avx2",
        }
    }

    /// True when this CPU has it.
    pub fn is_supported(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            Self::Scalar => true,
            Self::Sse41 => std::arch::is_x86_feature_detected!("sse4.1"),
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
        };
        #[cfg(not(target_arch = "x86_64"))]
        return matches!(self, Self::Scalar);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_others_are_named_in_the_error() {
        for level in CpuLevel::ALL.into_iter().filter(|l| l.is_supported()) {
            assert_eq!(CpuLevel::parse(level.name()).unwrap(), level);
        }
        let e = CpuLevel::parse("avx512").unwrap_err();
        assert!(e.is_usage());
        assert!(e.to_string().contains("FEATHERLOAD_CPU=avx512"));
        assert!(CpuLevel::parse("").is_err());
        assert!(CpuLevel::best().is_supported());
    }
}
