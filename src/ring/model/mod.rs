//! The model test of the ring protocol.

mod automaton;
mod cases;
mod explorer;
mod faults;
mod memory;
mod processes;
mod properties;
