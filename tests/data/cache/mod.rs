//! Caches: built, resumed, refused, checked and described.
//!
//! `FEATHERLOAD_KILLS` says how often a builder is killed (default 6). Where no
//! tmpfs can be mounted the tests of full disks say `SKIP` and pass; with
//! `FEATHERLOAD_REQUIRE_MOUNT=1` they fail.

pub mod scene;
mod small;

mod apart;
mod bad_samples;
mod command;
mod contents;
mod force;
mod full_disk;
mod index_file;
mod info;
mod passing;
mod refused;
mod resume;
mod verify;
mod verify_command;
