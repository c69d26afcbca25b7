//! The library's own files, those that the ring imports.

#[path = "../../../src/sys/futex.rs"]
pub(crate) mod futex;
#[path = "../../../src/sys/shared.rs"]
pub(crate) mod shared;
