//! Whole scenes, written to a folder and read again.
//!
//! - `scenes_on_disk`: writes scenes; `goldens`: compares with nerfstudio's functions;
//! - `transforms`, `colmap`, `folders`, `points`, `summary_and_svg`, `llff`: valid scenes;
//! - `names`, `dialects`: files of other systems and tools; `several_models`: several models and
//!   descriptions of a scene;
//! - `hostile`: invalid scenes and their errors.

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
