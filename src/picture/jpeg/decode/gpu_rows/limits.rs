//! The largest pictures that rows can hold, with reasons.

/// Maximum bytes of a picture's coded data. Kernels count bits in 32 bits. A chain of damaged data
/// visits at most 1,024 units, so a picture needs at most 2^35 lookups. Photos of 12 megapixels
/// have 3 to 8 MB.
pub(crate) const MAX_CODED: usize = 16 << 20;

/// Maximum pixels of a picture. Its blocks are counted in 32 bits, up to ten per MCU, and a loop
/// over its MCUs stays short.
pub(crate) const MAX_PIXELS: usize = 1 << 26;

/// Maximum segments between restart markers. The 512 threads of a block share them.
pub(crate) const MAX_SEGMENTS: usize = 1 << 14;

/// Maximum entries of a picture's lookups of single codes. With the lookups of several codes and
/// staged data, they must fit Turing's shared memory of 64 KiB per block.
pub(crate) const MAX_ENTRIES: usize = 8192;
