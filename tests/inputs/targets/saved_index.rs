//! Saved indexes whose checksums are right and whose content is anything.
//!
//! A checksum keeps accidents out, not malice, and a fuzzer never guesses one:
//! so the head is written here, over whatever content and root come. The first
//! two bytes say how long the root is; with the highest bit set the bytes are
//! the whole file instead. What is loaded must answer every question about
//! every sample within its own bytes.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use featherload::Index;
use featherload::index::Label;
use twox_hash::XxHash3_128;

use super::Target;

const HEAD: usize = 64;

fn file(data: &[u8]) -> Option<Vec<u8>> {
    let (&length, rest) = data.split_first_chunk::<2>()?;
    let length = u16::from_le_bytes(length);
    if length & 0x8000 != 0 {
        return Some(rest.to_vec());
    }
    let (content, root) = rest.split_at(rest.len().checked_sub(usize::from(length))?);
    let mut file = Vec::with_capacity(HEAD + rest.len());
    file.extend(b"\x89FLIDX\r\n");
    file.extend(2u32.to_le_bytes());
    file.extend(0u32.to_le_bytes());
    file.extend(XxHash3_128::oneshot(content).to_le_bytes());
    file.extend(XxHash3_128::oneshot(root).to_le_bytes());
    file.extend(((HEAD + content.len()) as u64).to_le_bytes());
    file.extend((root.len() as u64).to_le_bytes());
    file.extend(content);
    file.extend(root);
    Some(file)
}

pub fn target() -> Target {
    let folder = tempfile::tempdir().expect("a folder");
    Box::new(move |data| run(folder.path(), data))
}

fn run(folder: &Path, data: &[u8]) {
    let Some(bytes) = file(data) else {
        return;
    };
    let path = folder.join("index.fli");
    fs::write(&path, &bytes).expect("an index");
    let Ok(index) = Index::load(&path) else {
        return;
    };
    assert_eq!(index.bytes(), bytes.len() as u64);
    assert!(index.root().is_absolute());
    let width = index.label_width();
    // One more than there are: that must be nothing, not a panic.
    for id in 0..=index.len() {
        let there = id < index.len();
        let path = index.relative_path(id).as_os_str().as_bytes();
        assert_eq!(there, !path.is_empty());
        assert!(!path.contains(&0));
        match index.label(id) {
            Label::None => assert!(!there || width == 0),
            Label::Class(class) => {
                assert_eq!(width, 1);
                let classes = index.classes().len();
                assert!(classes == 0 || (class as usize) < classes);
            }
            Label::Vector(values) => assert_eq!(values.iter().len(), width),
        }
    }
    for id in 0..=index.len() {
        let found = index.pixel_box(id);
        assert_eq!(found.is_some(), index.has_boxes() && id < index.len());
        assert!(found.is_none_or(|b| b.left < b.right && b.top < b.bottom));
    }
    for (number, name) in index.classes().iter().enumerate() {
        assert_eq!(index.classes().get(name), Some(number as i64));
    }
}
