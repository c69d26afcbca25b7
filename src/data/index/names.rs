//! Names of files: image extensions, hidden names, names of featherload's own files, and names in
//! messages.
//!
//! Used in the consumer. Reads no file.

use crate::error::pieces;
use crate::sys::atomic_file;

pub use crate::picture::{ARRAY_EXTENSION, IMAGE_EXTENSIONS};

/// The start of the names of featherload's own files in the folders of a data set, such as the
/// manifest of the demo set. They are not part of the data, so a scan neither enters nor reports
/// them.
pub const OWN_PREFIX: &str = atomic_file::OWN_PREFIX;

/// Whether a name or a path ends in a known image extension. A name such as `.jpg` has no
/// extension.
pub(crate) fn has_image_extension(name: &[u8]) -> bool {
    let name = name.rsplit(|&b| b == b'/').next().unwrap_or_default();
    match name.iter().rposition(|&b| b == b'.') {
        None | Some(0) => false,
        Some(dot) => {
            let extension = &name[dot + 1..];
            IMAGE_EXTENSIONS
                .iter()
                .any(|known| extension.eq_ignore_ascii_case(known.as_bytes()))
        }
    }
}

/// Folders that operating systems and disk stations create, in any folder or at the root of a
/// volume. Some of them hold thumbnails with image names.
const SYSTEM_FOLDERS: [&str; 6] = [
    "__MACOSX",
    "@eaDir",
    "#recycle",
    "$RECYCLE.BIN",
    "System Volume Information",
    "lost+found",
];

/// Whether the name of a file or a folder begins with a dot: `.DS_Store`, `._1.jpg`.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".") && !matches!(name, b"." | b"..")
}

/// Whether a folder of this name belongs to an operating system, or is an unpacked tar header
/// (`PaxHeaders.123`). Such a folder is never a class.
pub(crate) fn is_system_folder(name: &[u8]) -> bool {
    let is_pax = |rest: &[u8]| matches!(rest, b"" | b"s") || rest.starts_with(b"s.");
    SYSTEM_FOLDERS.iter().any(|known| known.as_bytes() == name)
        || name.strip_prefix(b"PaxHeader").is_some_and(is_pax)
}

/// Formats bytes of a path or a text for a message: [printable](crate::error::printable), at most
/// 60 characters, then `...`.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 60;
    let mut text = String::new();
    let mut left = MOST;
    for (_, shown) in pieces(bytes) {
        let Some(less) = left.checked_sub(shown.chars().count()) else {
            return text + "...";
        };
        text.push_str(&shown);
        left = less;
    }
    text
}

/// The rank of an image extension in lower case. The image of a sample is the field with the lowest
/// rank.
pub(crate) fn rank(extension: &[u8]) -> Option<usize> {
    IMAGE_EXTENSIONS
        .iter()
        .chain([&ARRAY_EXTENSION])
        .position(|known| known.as_bytes() == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_begin_with_a_dot_and_are_no_steps_of_a_path() {
        for yes in [".DS_Store", "._1.jpg", ".a", "...", "..a"] {
            assert!(is_hidden(yes.as_bytes()), "{yes}");
        }
        for no in ["", ".", "..", "a.b", "_1.jpg", "__MACOSX"] {
            assert!(!is_hidden(no.as_bytes()), "{no}");
        }
    }

    #[test]
    fn image_names() {
        for yes in [
            "a.jpg", "a.JPEG", "a.b.PnG", "..jpg", "d/x.jfif", "x.Jpe", "-.pbm",
        ] {
            assert!(has_image_extension(yes.as_bytes()), "{yes}");
        }
        for no in [
            "",
            "jpg",
            ".jpg",
            "a.jpg.txt",
            "a.",
            "a.jp",
            "x.jpg/y",
            "d/.png",
        ] {
            assert!(!has_image_extension(no.as_bytes()), "{no}");
        }
    }
}
