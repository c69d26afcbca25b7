//! Model test of the ring protocol: the production functions in every order.
//!
//! - `memory`: the model's words. A routine runs again from its record, and stops at its next
//!   operation,
//! - `processes`: what worker, consumer and coordinator do around the production functions,
//! - `plan`: the configuration of an exploration,
//! - `automaton`: the next operation of a process, computed once per record; the relevant part of a
//!   record,
//! - `state`: a global state, and its key,
//! - `steps`: possible events in a state and their effects; which operations need no interleaving,
//! - `explorer`: every order of operations, every place for a death,
//! - `properties`: who may change a row when; how every execution must end,
//! - `faults`: wrong versions of single rules, which must be detected,
//! - `cases`: the explored cases, and the planted faults,
//! - `loom`: the order of memory operations, on loom's atomics.
//!
//! The explorer is sequentially consistent; loom covers weak memory. Sleeps have no time limit, so
//! a lost wake is an execution that ends with a sleeper. Workers, coordinator and consumer may die
//! between any two operations, within a budget. A worker outlives its coordinator by any number of
//! operations, as the parent-death signal takes time. The consumer's sleep ends when the
//! coordinator is dead, as it checks a pidfd.
//!
//! Not modelled: time limits and hung workers, serials and sequences near their end, wrap-around of
//! the counters, strikes (the verdict after one death is the same in a whole exploration), respawn
//! back-off, overwritten words, and the kill 100 ms after a stop.
//!
//! The explored cases and their numbers of states are printed by `cargo test -p featherload-model
//! -- --nocapture`.
//!
//! The ring is not linked but compiled from the library's own files, `error`, `sys` and `pool`. So
//! this package can be optimised without compiling the whole library with optimisation.

// The model uses a part of the library's files.
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
