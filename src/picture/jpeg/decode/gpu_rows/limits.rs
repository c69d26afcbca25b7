//! The largest pictures that rows take, and why.

/// Bytes of coded data of a picture. Kernels count bits in 32 bits, and a chain of damaged data
/// walks over 1,024 units at most: so a picture takes 2^35 lookups at most. Photos of 12 megapixels
/// take 3 to 8 MB.
pub(crate) const MAX_CODED: usize = 16 << 20;

/// Pixels of a picture: its blocks are counted in 32 bits, with room for ten a MCU, and a loop
/// over its MCUs stays short.
pub(crate) const MAX_PIXELS: usize = 1 << 26;

/// Segments between restart markers: one thread of a block of 512 does those of its turn.
pub(crate) const MAX_SEGMENTS: usize = 1 << 14;

/// Entries of a picture's lookups of single codes: with longer ones and staged data they must fit
/// the shared memory of Turing, 64 KiB a block.
pub(crate) const MAX_ENTRIES: usize = 8192;
