//! - `mistakes`: a table of what can be wrong. `values`: what a text means.
//! - `round_trip`: what is written reads back.

mod mistakes;
mod round_trip;
mod values;
