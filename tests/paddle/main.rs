//! PaddleClas configs: as the recipe of a command, PaddleClas' own ones, and their
//! pixels.

#[path = "../common/mod.rs"]
mod common;

mod command;
mod configs;
mod opencv;
