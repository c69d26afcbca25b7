//! - `mistakes`: a table of mistakes; `printed`: whole error lines;
//! - `values`: the meaning of a text;
//! - `round_trip`: written recipes are read back.

mod mistakes;
mod printed;
mod round_trip;
mod values;
