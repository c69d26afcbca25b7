//! Recognizes a file by its first bytes, which it reads.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::binary;
use super::file_kind::{ForeignKind, is_text};
use super::text;
use crate::data::index::text_encoding::TextEncoding;
use crate::sys::regular_file;

/// Most bytes that are read of a file. Keys of a JSON document are found up to here.
pub(super) const MOST_READ: usize = 64 << 10;
/// Most bytes of the first line that are checked for binary content.
const FIRST_LINE: usize = 512;

/// The kind of a file that is not a list, a tar or a saved index, with a fix.
///
/// The text is a fragment that begins with `is`. `None` if the file may be a list, or cannot be
/// read.
pub(crate) fn of_file(path: &Path) -> Option<String> {
    let kind = kind_of(path)?;
    Some(format!("is {}: {}", kind.what, kind.fix))
}

/// Like [`of_file`], for a file named as JSON lines: recognizes binary files only.
pub(crate) fn of_file_of_json_lines(path: &Path) -> Option<String> {
    let head = beginning(path)?;
    let kind = match is_binary(&head) {
        true => binary::kind(path, &head),
        false => binary::marked(path, &head)?,
    };
    Some(format!("is {}: {}", kind.what, kind.fix))
}

pub(super) fn kind_of(path: &Path) -> Option<ForeignKind> {
    let head = beginning(path)?;
    if let Some(encoding) = TextEncoding::of(&head) {
        let said = encoding.text(path);
        let (what, fix) = said.strip_prefix("is ")?.split_once(": ")?;
        return Some(ForeignKind::new(what, fix));
    }
    if let Some(kind) = binary::marked(path, &head) {
        return Some(kind);
    }
    match is_text(&head) {
        true => text::kind(path, head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head)),
        false if is_binary(&head) => Some(binary::kind(path, &head)),
        false => binary::picture(&head),
    }
}

/// Whether the first line is binary.
///
/// A zero byte alone does not make it binary, because text may have one by mistake. The reader of
/// the list then reports that line.
fn is_binary(head: &[u8]) -> bool {
    let line = &head[..head.len().min(FIRST_LINE)];
    let line = line.split(|b| *b == b'\n').next().unwrap_or(line);
    let controls = line.iter().filter(|b| b.is_ascii_control()).count();
    line.contains(&0) && (controls * 3 > line.len() || std::str::from_utf8(line).is_err())
}

pub(super) fn beginning(path: &Path) -> Option<Vec<u8>> {
    let (file, _) = regular_file::open(path).ok()?;
    Some(begin_of(&file))
}

fn begin_of(file: &File) -> Vec<u8> {
    let mut head = vec![0; MOST_READ];
    let mut filled = 0;
    while let Ok(read @ 1..) = file.read_at(&mut head[filled..], filled as u64) {
        filled += read;
    }
    head.truncate(filled);
    head
}
