//! The library's own files.

#[path = "../../../src/pool/ring/mod.rs"]
pub(crate) mod ring;
