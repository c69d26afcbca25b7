//! Whole scenes, written to a folder and read again.

mod goldens;
