//! Restricts what a process may do, before it decodes untrusted bytes.
//!
//! Prepared in the coordinator. Each worker enters it before its first row, and cannot leave it.
//! Never in here: which processes enter it, and what happens after a violation.
//!
//! - [`calls`]: system calls, by seccomp;
//! - [`files`]: files, by Landlock.

pub(crate) mod calls;
pub(crate) mod files;
