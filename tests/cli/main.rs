//! The command line: what each command prints, its exit code, its JSON.

#[path = "../common/mod.rs"]
mod common;

mod bench;
mod charts;
mod doctor;
mod foreign;
mod help;
mod options;
mod paddle;
mod pages;
mod plan;
mod preview;
mod recipe_mistakes;
mod report;
mod survey;
mod tables;
mod terminal;
