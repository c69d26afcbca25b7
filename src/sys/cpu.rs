//! Selects the instruction set of the pixel loops, detected or forced, once.
//!
//! Called at the start of a worker, and of the loop without workers. It changes the speed only,
//! never the results. No pixel code in here.

use crate::error::{Error, Result};

const VARIABLE: &str = "FEATHERLOAD_CPU";

/// An instruction set with its own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuLevel {
    /// Plain Rust: the reference for the others, and the only one outside x86-64.
    Scalar,
    Sse41,
    Avx2,
}

impl CpuLevel {
    /// Slowest first.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Sse41, Self::Avx2];

    /// The value of `FEATHERLOAD_CPU`, else the best set that this CPU supports.
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
                    "{VARIABLE}={value} is invalid: use scalar, sse4.1 or avx2"
                ))
            })?;
        if !level.is_supported() {
            return Err(Error::config(format!(
                "{VARIABLE}={value}, but this CPU supports at most {}",
                Self::best().name()
            )));
        }
        Ok(level)
    }

    /// The best set that this CPU supports.
    pub(crate) fn best() -> Self {
        Self::ALL
            .into_iter()
            .rev()
            .find(|l| l.is_supported())
            .unwrap_or(Self::Scalar)
    }

    /// Its name in `FEATHERLOAD_CPU` and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse41 => "sse4.1",
            Self::Avx2 => "avx2",
        }
    }

    /// Whether this CPU supports it.
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
