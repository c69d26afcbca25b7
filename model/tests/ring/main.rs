//! The model test of the ring protocol: the production functions, in every
//! order.
//!
//! Each part by name:
//!
//! - `memory`: the model's `RingWords`: a routine is run again from its record and
//!   stopped at its next operation,
//! - `processes`: what worker, consumer and coordinator do around the
//!   production functions,
//! - `plan`: the configuration of an exploration,
//! - `automaton`: what a process does next, found out once for each record;
//!   what of a record matters,
//! - `state`: a global state, and what tells two apart,
//! - `steps`: what can happen in a state and what it does; which operations
//!   need no interleaving,
//! - `explorer`: every order of operations, every place for a death,
//! - `properties`: who may change a row when; how every execution must end,
//! - `faults`: wrong versions of single rules, which must be found,
//! - `cases`: what is explored, and the faults planted,
//! - `loom`: the orderings of memory, on loom's atomics.
//!
//! The explorer is sequentially consistent; weak memory is loom's part. Sleeps
//! have no time limit, so a lost wake is an execution that ends with a sleeper.
//! Workers, coordinator and consumer may die between any two operations, within
//! a budget. A worker outlives its coordinator by any number of operations (the
//! parent-death signal takes its time), and the consumer's sleep ends when the
//! coordinator is dead (it looks at a pidfd).
//!
//! Not modelled: time limits and hung workers, serials and sequences near their
//! end, wrap-around of the counters, strikes (who dies once is judged, alike in
//! a whole exploration), respawn back-off, words scribbled on by a decoder, and the
//! kill 100 ms after a stop.
//!
//! What was explored, and in how many states, is printed by
//! `cargo test -p featherload-model -- --nocapture`.
//!
//! The ring is not linked but compiled from the library's own files, `error`, `sys` and
//! `pool`: a package of its own can be optimised, where all of the library cannot be
//! without waiting for it.

// Of the library's files the model takes a part.
#![allow(dead_code, unused_imports, unused_macros)]

#[path = "../../../src/error/mod.rs"]
mod error;
mod pool;
mod sys;

mod automaton;
mod cases;
mod explorer;
mod faults;
mod loom;
mod memory;
mod plan;
mod processes;
mod properties;
mod state;
mod steps;
