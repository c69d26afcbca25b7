//! - `mistakes`: a table of what can be wrong. `printed`: whole lines that people get.
//!   `values`: what a text means.
//! - `round_trip`: what is written reads back.

mod mistakes;
mod printed;
mod round_trip;
mod values;
