//! Reads small text files of unknown origin: states, and manifests of demo sets.
//!
//! Their size is limited, so that a wrong or sparse file is not read to its end.

use std::io::Read;
use std::path::Path;

use featherload::{Error, Result};

/// Both have a few hundred bytes. A manifest of broken files has a few KiB.
const MOST_BYTES: u64 = 1 << 20;

/// The text of the opened file at `path`. `what` names its kind in errors.
pub fn read(file: impl Read, path: &Path, what: &str) -> Result<String> {
    let refused = |why: &str| Error::dataset(path, format!("is not a {what}: {why}"));
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::dataset(path, format!("cannot be read: {e}")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refused(&format!(
            "it is longer than {}: name another file",
            featherload::error::size(MOST_BYTES)
        )));
    }
    String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8: name another file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_up_to_its_limit() {
        let path = Path::new("a/state.json");
        assert_eq!(read(&b"{}"[..], path, "state").unwrap(), "{}");
        let full = vec![b' '; MOST_BYTES as usize];
        assert_eq!(read(&full[..], path, "state").unwrap().len(), full.len());
        let e = read(std::io::repeat(b' '), path, "state").unwrap_err();
        let e = e.to_string();
        for expected in [
            "a/state.json",
            "not a state",
            "longer than 1 MiB",
            "name another",
        ] {
            assert!(e.contains(expected), "{e}");
        }
        let e = read(&b"\xff"[..], path, "state").unwrap_err().to_string();
        assert!(e.contains("a/state.json") && e.contains("UTF-8"), "{e}");
    }
}
