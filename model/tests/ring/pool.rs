//! Files of the library.

#[path = "../../../src/pool/ring/mod.rs"]
pub(crate) mod ring;
