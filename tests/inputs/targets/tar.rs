//! Tar shards, with and without DALI's index beside them.
//!
//! The first byte chooses the labels; the next two say how long the index is,
//! none when that is nothing, and the rest is the shard. A fuzzer never guesses a
//! header's checksum, so by the highest bit of the first byte it is made right in
//! every block that says that it is a header. What comes out must lie within the
//! file, and an index of it must answer every question.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use featherload::Index;
use featherload::index::{KeepIndex, Label, ShardLabels, ShardOptions};
use featherload::tests_support::members;

use super::Target;

const BLOCK: usize = 512;

fn labels(choice: u8) -> ShardLabels {
    match choice & 3 {
        0 => ShardLabels::Auto,
        1 => ShardLabels::None,
        2 => ShardLabels::Field("txt".into()),
        _ => ShardLabels::Json {
            field: "json".into(),
            pointer: "/a".into(),
        },
    }
}

/// The sum of a header's bytes, its own field as blanks, in octal.
fn mend(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

pub fn target() -> Target {
    let folder = tempfile::tempdir().expect("a folder");
    Box::new(move |data| run(folder.path(), data))
}

fn run(folder: &Path, data: &[u8]) {
    let Some((&[choice, low, high], rest)) = data.split_first_chunk::<3>() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
    let (index, shard) = rest.split_at(length);
    let mut shard = shard.to_vec();
    if choice & 0x80 != 0 {
        for block in shard.chunks_exact_mut(BLOCK) {
            if &block[257..262] == b"ustar" {
                mend(block);
            }
        }
    }
    let path = folder.join("a.tar");
    let beside = path.with_extension("idx");
    fs::write(&path, &shard).expect("a shard");
    if index.is_empty() {
        let _ = fs::remove_file(&beside);
    } else {
        fs::write(&beside, index).expect("an index");
    }

    let (members, lost) = members(&path).expect("a readable file");
    assert!(members.len() <= shard.len() / BLOCK && lost <= shard.len() as u64);
    let mut end = 0;
    for (name, at, size) in &members {
        assert!(!name.is_empty() && !name.contains(&0));
        assert!(*at >= end + BLOCK as u64 && at.is_multiple_of(BLOCK as u64));
        end = at + size;
        assert!(end <= shard.len() as u64);
    }

    let options = ShardOptions {
        labels: labels(choice),
        image_field: (choice & 4 != 0).then(|| "seg.png;jpg".into()),
        keep: KeepIndex::Nowhere,
        ..ShardOptions::default()
    };
    let Ok((index, report)) = Index::from_shards(&[path], &options) else {
        return;
    };
    assert!(!index.is_empty() && report.samples == index.len());
    assert_eq!(index.shards(), 1);
    let width = index.label_width();
    for id in 0..index.len() {
        let name = index.relative_path(id).as_os_str().as_bytes();
        assert!(!name.is_empty() && !name.starts_with(b"/"));
        match index.label(id) {
            Label::None => assert_eq!(width, 0),
            Label::Class(class) => {
                assert_eq!(width, 1);
                assert!(index.classes().is_empty() || index.classes().name(class).is_some());
            }
            Label::Vector(values) => {
                assert_eq!(values.len(), width);
                assert!(values.iter().all(f32::is_finite));
            }
        }
    }
}
