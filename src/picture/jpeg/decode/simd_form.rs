//! The choice of a form of the hot loops, by the features of the processor.

use super::kernels::{PlainDecodeKernels, with_kernels};
#[cfg(target_arch = "x86_64")]
use super::wide;

/// The form of the hot loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimdForm {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Sse41,
    /// AVX2 with BMI1, BMI2 and MOVBE.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl SimdForm {
    /// All forms, slowest first.
    pub(crate) const ALL: &[Self] = &[
        Self::Plain,
        #[cfg(target_arch = "x86_64")]
        Self::Sse41,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
    ];

    /// The fastest form that this processor supports with registers of at most `bits` bits.
    pub(crate) fn best(bits: usize) -> Self {
        let forms = Self::supported().filter(|form| form.bits() <= bits);
        forms.last().unwrap_or(Self::Plain)
    }

    /// The forms that this processor supports, slowest first.
    pub(crate) fn supported() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|form| form.is_supported())
    }

    /// Bits of a register.
    fn bits(self) -> usize {
        match self {
            Self::Plain => 64,
            #[cfg(target_arch = "x86_64")]
            Self::Sse41 => 128,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => 256,
        }
    }

    /// Calls `task` in this form. Only code that is inlined is compiled for it.
    #[inline(always)]
    pub(super) fn call<R>(self, task: impl FnOnce() -> R) -> R {
        with_kernels!(self, kernels => kernels.call(task))
    }

    fn is_supported(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse41 => wide::Sse41::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => wide::Avx2::detect().is_some(),
        }
    }
}
