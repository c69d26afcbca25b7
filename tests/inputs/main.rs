//! Bytes from outside, good and bad, and what becomes of them.

#[path = "../common/mod.rs"]
mod common;

mod golden;
mod hostile;
mod mutate;
mod smoke;
mod targets;
