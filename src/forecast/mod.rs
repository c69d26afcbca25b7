//! What a run will take, said before it begins.
//!
//! - `cut`: what is decoded for a sample, and the memory of one sample.

pub(crate) mod cut;
