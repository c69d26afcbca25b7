//! The constants at the start of the sealed form.

/// Name of the memfd.
pub(crate) const NAME: &str = "featherload-index";

pub(crate) const MAGIC: &[u8; 8] = b"\x89FLIDX\r\n";
pub(crate) const VERSION: u32 = 2;
/// Bytes before the content.
pub(crate) const HEAD: usize = 64;
/// Bytes before the first section.
pub(crate) const COUNTS_END: usize = 128;

pub(crate) const KIND_NONE: u8 = 0;
pub(crate) const KIND_CLASS: u8 = 1;
pub(crate) const KIND_VECTOR: u8 = 2;
