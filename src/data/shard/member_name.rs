//! Splits a member's name as WebDataset does: the key of its sample, and its extension.
//!
//! Runs in the consumer. Works on names alone.

/// Key and extension of a member's name, split at the first dot after the last slash. The extension
/// keeps its case. `None` if the member belongs to no sample: the file name has no dot, or begins
/// with one (a hidden file).
pub(crate) fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let file = name.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    let dot = name[file..].iter().position(|&b| b == b'.')?;
    (dot > 0).then(|| (&name[..file + dot], &name[file + dot + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_end_at_the_first_dot_of_the_file() {
        for (name, key, extension) in [
            ("a.jpg", "a", "jpg"),
            ("a.b.c/d.JPG", "a.b.c/d", "JPG"),
            ("./x/001.seg.png", "./x/001", "seg.png"),
            ("d/a.", "d/a", ""),
        ] {
            let split = split(name.as_bytes());
            assert_eq!(
                split,
                Some((key.as_bytes(), extension.as_bytes())),
                "{name}"
            );
        }
        for name in ["", "a", "a.b/c", ".hidden", "d/.hidden.jpg", "a.jpg/"] {
            assert_eq!(split(name.as_bytes()), None, "{name}");
        }
    }
}
