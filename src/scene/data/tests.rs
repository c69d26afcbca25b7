//! Whole scenes, written to a folder and read again.
//!
//! - `written`: what writes them; `goldens`: against nerfstudio's functions;
//! - `transforms`, `colmap`, `folders`, `points`, `shown`, `llff`: what is read;
//! - `names`, `dialects`: what other systems and tools write; `several`: several models and
//!   descriptions of a scene;
//! - `hostile`: what is refused, and how.

mod colmap;
mod dialects;
mod folders;
mod goldens;
mod hostile;
mod llff;
mod names;
mod points;
mod scenes_on_disk;
mod several_models;
mod speed;
mod summary_and_svg;
mod transforms;
