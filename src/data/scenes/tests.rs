//! Whole scenes, written to a folder and read again.
//!
//! - `written`: what writes them; `goldens`: against nerfstudio's functions;
//! - `transforms`, `colmap`, `folders`, `points`, `shown`: what is read;
//! - `hostile`: what is refused, and how.

mod colmap;
mod folders;
mod goldens;
mod hostile;
mod points;
mod shown;
mod speed;
mod transforms;
mod written;
