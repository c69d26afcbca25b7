//! Caches: built, resumed, rejected, verified and described.
//!
//! `FEATHERLOAD_KILLS` is the number of kills of a builder (default 6). If no tmpfs can be mounted,
//! the tests of full disks print `SKIP` and pass. With `FEATHERLOAD_REQUIRE_MOUNT=1` they fail.

pub mod scene;
mod small;

mod apart;
mod bad_samples;
mod columns;
mod command;
mod contents;
mod force;
mod full_disk;
mod index_file;
mod info;
mod passing;
mod rasters;
mod refused;
mod resume;
mod targets;
mod text_files;
mod verify;
mod verify_command;
