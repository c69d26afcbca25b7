//! The hot loops in wide registers, with one source for 128 bits (SSE4.1) and 256 bits (AVX2).
//!
//! A register holds the rows of one block or of two, one in each lane of 128 bits. The whole scan
//! is compiled once for each form, AVX2 with BMI.
//!
//! This is the only `unsafe` of this decoder: calls of functions for detected CPU features, in
//! `forms`, `kernels` and `lanes`, and loads and stores of whole arrays, in `lanes`.
//!
//! - `forms`: a token for each form, which proves that the processor supports it; `kernels`: the
//!   functions compiled for it.
//! - `lanes`: the operations on registers; `words`: arithmetic of rows of words.
//! - `transform`, `reduced`: inverse transforms; `filters`: upsampling and colour.

mod filters;
mod forms;
mod kernels;
mod lanes;
mod reduced;
mod transform;
mod words;

pub(super) use forms::{Avx2, Sse41};
