//! One picture of a set of any kind: its name, its size, its bytes.

use std::io;

use super::args::Kind;
use super::mixed::Mixed;
use super::photo::Photo;

pub(super) enum Picture {
    Photo(Photo),
    Mixed(Mixed),
}

impl Picture {
    /// Picture `i` of the set, which is of class `class`.
    pub(super) fn new(kind: Kind, seed: u64, i: u64, class: u64) -> Self {
        match kind {
            Kind::Photos => Self::Photo(Photo::new(seed, i, class)),
            Kind::Large => Self::Photo(Photo::large(seed, i, class)),
            Kind::Mixed => Self::Mixed(Mixed::new(seed, i, class)),
        }
    }

    /// What the `number`-th file of a class is called.
    pub(super) fn file_name(&self, number: u32) -> String {
        match self {
            Self::Photo(_) => format!("{number:04}.jpg"),
            Self::Mixed(mixed) => format!("{number:04}_{}", mixed.form().name),
        }
    }

    pub(super) fn pixels(&self) -> u64 {
        match self {
            Self::Photo(photo) => photo.pixels(),
            Self::Mixed(mixed) => mixed.pixels(),
        }
    }

    /// The file.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Photo(photo) => photo.jpeg().map_err(io::Error::other),
            Self::Mixed(mixed) => mixed.encode(),
        }
    }
}
