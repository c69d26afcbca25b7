//! Tests of bytes from outside, good and bad.

#[path = "../common/mod.rs"]
mod common;

mod golden;
mod hostile;
mod mutate;
mod smoke;
mod targets;
