//! Files of the library that the ring imports.

#[path = "../../../src/sys/futex.rs"]
pub(crate) mod futex;
#[path = "../../../src/sys/shared_memory.rs"]
pub(crate) mod shared_memory;
