//! The operating system, one family of calls a file.
//!
//! Runs in every process. Knows nothing of images, rings or recipes; most of
//! the crate's `unsafe` lives here, behind functions that are safe to call.
//!
//! - `process`, `probe`: processes, and which calls there are; `threads`: for one call;
//!   `stderr`: words that nobody waits for; `panics`: those of decoders; `stack`: its least size;
//! - `pid_namespace`: numbers of processes, and those that /proc shows;
//! - `futex`, `shared`, `sealed`, `memory`: sleeps, and memory that processes share;
//! - `turns`: locks on bytes of a file; `socket`: messages;
//! - `clock`, `cpu`, `cgroup`: time, instruction sets, limits;
//! - `regular`: files, opened without waiting; `replace`: files that are replaced whole;
//!   `text_file`, `whole_file`: texts and other files, read up to a limit;
//!   `location`: where a path leads; `storage`: whether files are memory;
//! - `sandbox`: what a process may still ask of the kernel.

pub(crate) mod atomic_file;
pub(crate) mod byte_locks;
pub(crate) mod cgroup;
pub(crate) mod clock;
pub(crate) mod cpu;
pub(crate) mod futex;
pub(crate) mod location;
pub(crate) mod memory;
pub(crate) mod panics;
pub(crate) mod pid_namespace;
pub(crate) mod probe;
pub(crate) mod process;
pub(crate) mod regular_file;
pub(crate) mod sandbox;
pub(crate) mod sealed_bytes;
pub(crate) mod shared_memory;
pub(crate) mod socket;
pub(crate) mod stack;
pub(crate) mod stderr;
pub(crate) mod storage;
pub(crate) mod text_file;
pub(crate) mod threads;
pub(crate) mod whole_file;
