//! What a process may still ask of the kernel once it runs decoders on bytes of strangers.
//!
//! Prepared in the coordinator, entered by each worker before its first row. Nothing can
//! be taken back. Never in here: which processes are kept so, and what becomes of one that
//! asks for more.
//!
//! - [`calls`]: which system calls, by seccomp;
//! - [`files`]: which files, by Landlock.

pub(crate) mod calls;
pub(crate) mod files;
