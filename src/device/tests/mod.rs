//! What tests of the device compare with.
//!
//! - `reference`: the kernel's meaning, on the CPU.

pub(crate) mod reference;
