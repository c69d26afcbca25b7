//! The operating system, one family of calls per file.
//!
//! Used in every process. Knows no images, rings or recipes. Most of the crate's `unsafe` is here,
//! behind functions that are safe to call.
//!
//! - `process`, `probe`: processes, and which calls the system supports; `threads`: threads for one
//!   call; `stack`: the least stack size;
//! - `stderr`: output that never blocks; `panics`: panics of decoders;
//! - `pid_namespace`: process numbers, and those that /proc shows;
//! - `futex`, `shared_memory`, `sealed_bytes`, `memory`: sleeps, shared memory, limits of memory;
//! - `byte_locks`: locks on bytes of a file; `socket`: messages;
//! - `clock`, `cpu`, `cgroup`: time, instruction sets, limits;
//! - `regular_file`: opens files without blocking; `atomic_file`: replaces files atomically;
//!   `text_file`, `whole_file`: read files up to a limit; `location`: resolved paths; `storage`:
//!   whether files are in memory;
//! - `sandbox`: restricts a process.

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
