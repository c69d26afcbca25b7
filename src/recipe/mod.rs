//! What is done to one sample, as data.
//!
//! Read in every process. Pure: no I/O, no `unsafe`, no threads.

pub mod weights;
