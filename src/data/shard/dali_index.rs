//! DALI's index of a shard: the text file that its `wds2idx` writes. DALI's WebDataset reader needs
//! it beside the shard.
//!
//! Runs in the consumer. The first line is `v1.2 SAMPLES`. Every other line is one sample. It has
//! `extension offset size name` for each member, where the offset is that of the data. Single
//! blanks separate all words, so an index cannot hold a name with a blank.
//!
//! Two differences from `wds2idx`:
//! - Members whose names have no dot are left out. `wds2idx` writes each of them as a sample, with
//!   the whole name as extension.
//! - The index of `a.b.tar` is `a.b.idx`. `wds2idx` names it `a.idx`, which is also its name for
//!   the index of `a.c.tar`.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::data::shard::header::{BLOCK, HeaderKind, TarBlock, TarHeader};
use crate::data::shard::walk::{HeaderWalk, ShardMember, SkippedFiles, block_after};
use crate::data::shard::{member_name, read_at};
use crate::sys::regular_file;
use crate::sys::text_file::{self, TextReadError};

const VERSION: &str = "v1.2";
/// Bytes that always hold the first line: the version, and a number of at most 18 digits.
const LONGEST_HEAD: u64 = 64;

/// The longest index that is read, bytes: about two million members. A shard with more members is
/// walked.
const MOST_BYTES: u64 = 128 << 20;

/// The path of the index of the shard at `shard`.
pub(crate) fn path_of(shard: &Path) -> PathBuf {
    shard.with_extension("idx")
}

/// Whether an index was changed after its shard, or at the same instant.
pub(crate) fn is_newer(index: &Metadata, shard: &Metadata) -> bool {
    let time = |meta: &Metadata| (meta.mtime(), meta.mtime_nsec());
    time(index) >= time(shard)
}

/// An index that was read, and that matches its shard.
#[derive(Debug)]
pub(crate) struct DaliIndex {
    text: Vec<u8>,
    samples: u64,
    /// Sparse files and links between the listed members, and after them.
    pub(crate) not_plain: SkippedFiles,
    /// Files there that belong to no sample.
    pub(crate) unnamed: UnnamedFiles,
}

/// Why a file is not the index of a shard.
#[derive(Debug)]
pub(crate) enum IdxFault {
    Read(io::Error),
    /// The file is too long, or not text.
    Refused(TextReadError),
    /// The first line is not `v1.2` and a number.
    Version,
    /// This line, counted from 1, is malformed.
    Line(u64),
    /// The number of samples in the first line is wrong.
    Samples {
        said: u64,
        found: u64,
    },
    /// This line lists a member that the shard does not have there.
    OtherShard(u64),
    /// At or after this byte, the shard has damage or a member of a sample that the index does not
    /// list.
    Lacks(u64),
}

impl fmt::Display for IdxFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(e) => write!(f, "cannot be read: {e}"),
            Self::Refused(refused) => write!(f, "{refused}"),
            Self::Version => write!(f, "does not begin with '{VERSION}' and a number"),
            Self::Line(line) => write!(f, "line {line} is not `extension offset size name ...`"),
            Self::Samples { said, found } => {
                write!(f, "states {said} samples, but lists {found}")
            }
            Self::OtherShard(line) => {
                write!(
                    f,
                    "line {line} names a member that the shard does not have there"
                )
            }
            Self::Lacks(at) => write!(
                f,
                "does not list all members of the shard from byte {at} on"
            ),
        }
    }
}

impl DaliIndex {
    /// Reads the index at `path`, and compares it with `shard`, which has `len` bytes. It checks:
    /// - the form of all lines;
    /// - that all offsets are in order and within the shard;
    /// - the headers of the first and the last member;
    /// - that no member of a sample lies between the listed members or after them.
    ///
    /// Code that reads a member must check its header too. If the index belongs to an earlier
    /// version of the shard, a size may be wrong by less than one block.
    ///
    /// # Errors
    /// When the file cannot be read, is malformed, or does not match the shard.
    pub(crate) fn read(path: &Path, shard: &File, len: u64) -> Result<Self, IdxFault> {
        let mut idx = Self::text_at(path)?;
        (idx.not_plain, idx.unnamed) = idx.check(shard, len)?;
        Ok(idx)
    }

    /// The whole text of the index at `path`, not compared with a shard. Reads only the beginning
    /// of a file that does not begin like an index.
    fn text_at(path: &Path) -> Result<Self, IdxFault> {
        let (file, _) = regular_file::open(path).map_err(IdxFault::Read)?;
        let mut head = Vec::new();
        (&file)
            .take(LONGEST_HEAD)
            .read_to_end(&mut head)
            .map_err(IdxFault::Read)?;
        stated_samples(&head).ok_or(IdxFault::Version)?;
        let text =
            text_file::read(head.as_slice().chain(&file), MOST_BYTES).map_err(IdxFault::Refused)?;
        let samples = stated_samples(&text).ok_or(IdxFault::Version)?;
        Ok(Self {
            text,
            samples,
            not_plain: SkippedFiles::default(),
            unnamed: UnnamedFiles::default(),
        })
    }

    /// The number of samples that the index at `path` lists, counted by members with a dot:
    /// `wds2idx` makes a sample of each member without one. If a line is malformed, the number in
    /// the first line. `None` if the file is not an index.
    pub(crate) fn samples_at(path: &Path) -> Option<u64> {
        let idx = Self::text_at(path).ok()?;
        let samples = idx.samples;
        let mut found = 0;
        let mut key = Vec::new();
        for (_, member) in idx.entries() {
            let Some(member) = member else {
                return Some(samples);
            };
            if let Some((of_member, _)) = member_name::split(&member.name)
                && key != of_member
            {
                found += 1;
                key.clear();
                key.extend_from_slice(of_member);
            }
        }
        Some(found)
    }

    /// The members, in the order of the shard. Their `header_at` is the last header before the
    /// data, because an index knows no others.
    pub(crate) fn members(&self) -> impl Iterator<Item = ShardMember> {
        self.entries().filter_map(|(_, entry)| entry)
    }

    /// Each member with the number of its line; `None` for a malformed one.
    fn entries(&self) -> impl Iterator<Item = (u64, Option<ShardMember>)> {
        let lines = self.text.split(|&b| b == b'\n');
        (1..).zip(lines).skip(1).flat_map(|(number, line)| {
            let mut words = line.split(|&b| b == b' ').peekable();
            std::iter::from_fn(move || {
                words.peek().filter(|_| !line.is_empty())?;
                Some((number, entry(&mut words)))
            })
        })
    }

    fn check(&self, shard: &File, len: u64) -> Result<(SkippedFiles, UnnamedFiles), IdxFault> {
        let lines = self.text.split(|&b| b == b'\n').skip(1);
        let found = lines.filter(|line| !line.is_empty()).count() as u64;
        if found != self.samples {
            let said = self.samples;
            return Err(IdxFault::Samples { said, found });
        }
        if !self.text.ends_with(b"\n") {
            return Err(IdxFault::Line(found + 1));
        }
        let (mut end, mut next_at) = (0u64, 0u64);
        let mut last = None;
        let mut walk = HeaderWalk::new(shard, len);
        let mut unnamed = UnnamedFiles::default();
        for (line, member) in self.entries() {
            let member = member.ok_or(IdxFault::Line(line))?;
            let other = IdxFault::OtherShard(line);
            let within = member.header_at >= end && member.data_at.is_multiple_of(BLOCK);
            end = match member.data_at.checked_add(member.size) {
                Some(end) if within && end <= len => end,
                _ => return Err(other),
            };
            if last.is_none() && !has_header(shard, &member) {
                return Err(other);
            }
            // There may be headers of a long name, or members of no sample.
            if member.header_at > next_at || member_name::split(&member.name).is_none() {
                let found = sample_at(&mut walk, next_at, &mut unnamed)?;
                // A member without a dot, which wds2idx lists, belongs to no sample.
                let is_next = match member_name::split(&member.name) {
                    Some(_) => found == Some(member.data_at),
                    None => found.is_none_or(|at| at > member.data_at),
                };
                if !is_next {
                    return Err(IdxFault::Lacks(next_at));
                }
            }
            next_at = block_after(member.data_at, member.size);
            last = Some((line, member));
        }
        if let Some((line, member)) = last
            && !has_header(shard, &member)
        {
            return Err(IdxFault::OtherShard(line));
        }
        match sample_at(&mut walk, next_at, &mut unnamed)? {
            Some(_) => Err(IdxFault::Lacks(next_at)),
            None => Ok((walk.finish().not_plain, unnamed)),
        }
    }
}

/// Files that belong to no sample. An index lists few of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnnamedFiles {
    /// Files with a path component that begins with a dot.
    pub(crate) hidden: SkippedFiles,
    /// Files without an extension.
    pub(crate) others: SkippedFiles,
    /// End of the last counted file. Files before it are not counted again.
    counted: u64,
}

impl UnnamedFiles {
    fn add(&mut self, member: ShardMember) {
        if member.header_at < self.counted {
            return;
        }
        self.counted = block_after(member.data_at, member.size);
        let is_hidden = |part: &[u8]| part.starts_with(b".") && !matches!(part, b"." | b"..");
        match member.name.split(|&b| b == b'/').any(is_hidden) {
            true => self.hidden.add(member.name),
            false => self.others.add(member.name),
        }
    }
}

fn stated_samples(text: &[u8]) -> Option<u64> {
    let line = text.split(|&b| b == b'\n').next()?;
    let number = line.strip_prefix(VERSION.as_bytes())?.strip_prefix(b" ")?;
    decimal(number)
}

/// Parses the next member of a line.
fn entry<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Option<ShardMember> {
    let extension = words.next()?;
    let data_at = decimal(words.next()?)?;
    let size = decimal(words.next()?)?;
    let name = words.next()?;
    // wds2idx gets names from GNU tar, which escapes unusual bytes with backslashes.
    if name.is_empty() || name.contains(&b'\\') || name.contains(&0) {
        return None;
    }
    // wds2idx states the whole name as the extension of a name without a dot.
    let due = member_name::split(name).map_or(name, |(_, extension)| extension);
    if due != extension {
        return None;
    }
    Some(ShardMember {
        name: name.to_vec(),
        header_at: data_at.checked_sub(BLOCK)?,
        data_at,
        size,
        after_damage: false,
    })
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The offset of the data of the first member of a sample at or after `at`. `None` if no such
/// member follows. Adds files of no sample on the way to `unnamed`.
fn sample_at(
    walk: &mut HeaderWalk<'_>,
    at: u64,
    unnamed: &mut UnnamedFiles,
) -> Result<Option<u64>, IdxFault> {
    walk.resume_at(at);
    let found = loop {
        match walk.next().map_err(IdxFault::Read)? {
            Some(member) if member_name::split(&member.name).is_none() => unnamed.add(member),
            found => break found,
        }
    };
    match walk.has_damage() {
        true => Err(IdxFault::Lacks(at)),
        false => Ok(found.map(|member| member.data_at)),
    }
}

/// Whether the block before the member's data is its header.
fn has_header(shard: &File, member: &ShardMember) -> bool {
    let mut block: TarBlock = [0; BLOCK as usize];
    matches!(read_at(shard, &mut block, member.header_at), Ok(n) if n == block.len())
        && is_header_of(&block, &member.name, member.size, true)
}

/// Whether `block` can be the last header of a file with this name and size. A long name or size
/// may be in another header, so a cut name is accepted. With `may_be_long`, size 0 is accepted too.
pub(crate) fn is_header_of(block: &TarBlock, member: &[u8], size: u64, may_be_long: bool) -> bool {
    let Ok(Some(header)) = TarHeader::parse(block) else {
        return false;
    };
    let mut name = Vec::new();
    header.write_name(&mut name);
    // A name or size that did not fit is in another header.
    let same_name = name == member || header.name_may_be_cut() || !member.is_ascii();
    let same_size = header.size == size || (may_be_long && header.size == 0);
    header.kind == HeaderKind::File && same_name && same_size
}

/// Builds the text of an index, member by member.
#[derive(Debug, Default)]
pub(crate) struct DaliIndexText {
    lines: Vec<u8>,
    key: Vec<u8>,
    samples: u64,
}

/// A name that an index cannot hold: it has a blank, a backslash or a control character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnwritableName {
    pub(crate) name: Vec<u8>,
}

impl fmt::Display for UnwritableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = OsStr::from_bytes(&self.name);
        write!(
            f,
            "the member {name:?} has a blank, a backslash or a control character in its name, \
             which an index cannot hold: rename it, or use no index"
        )
    }
}

impl DaliIndexText {
    /// Adds the next member of the shard. Ignores a member that belongs to no sample.
    ///
    /// # Errors
    /// A name that an index cannot hold.
    pub(crate) fn push(
        &mut self,
        name: &[u8],
        data_at: u64,
        size: u64,
    ) -> Result<(), UnwritableName> {
        let Some((key, extension)) = member_name::split(name) else {
            return Ok(());
        };
        if name.iter().any(|&b| b <= b' ' || b == 0x7f || b == b'\\') {
            return Err(UnwritableName {
                name: name.to_vec(),
            });
        }
        if self.samples > 0 && self.key == key {
            self.lines.push(b' ');
        } else {
            if self.samples > 0 {
                self.lines.push(b'\n');
            }
            self.samples += 1;
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        self.lines.extend_from_slice(extension);
        self.lines
            .extend_from_slice(format!(" {data_at} {size} ").as_bytes());
        self.lines.extend_from_slice(name);
        Ok(())
    }

    /// Number of samples so far.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// The text of the whole file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.samples > 0 {
            self.lines.push(b'\n');
        }
        let mut text = format!("{VERSION} {}\n", self.samples).into_bytes();
        text.append(&mut self.lines);
        text
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::data::shard::walk::HeaderWalk;

    /// Two samples of two members each, and a member without a dot.
    fn shard(dir: &Path) -> (File, u64) {
        let path = dir.join("a.tar");
        let mut tar = tar::Builder::new(File::create(&path).unwrap());
        let long = format!("{}/2.jpg", "d".repeat(150));
        for (name, size) in [
            ("d/1.JPG", 700),
            ("d/1.cls", 1),
            ("README", 3),
            (&long, 0),
            (&long.replace("jpg", "seg.png"), 600),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(size);
            let data = vec![1; size as usize];
            tar.append_data(&mut header, name, &data[..]).unwrap();
        }
        tar.finish().unwrap();
        crate::data::shard::open(&path).unwrap()
    }

    fn text(shard: &File, len: u64) -> Vec<u8> {
        let mut text = DaliIndexText::default();
        let mut walk = HeaderWalk::new(shard, len);
        while let Some(member) = walk.next().unwrap() {
            text.push(&member.name, member.data_at, member.size)
                .unwrap();
        }
        text.finish()
    }

    #[test]
    fn the_text_is_that_of_wds2idx() {
        let dir = tempfile::tempdir().unwrap();
        let (shard, len) = shard(dir.path());
        let d = "d".repeat(150);
        let want = format!(
            "v1.2 2\nJPG 512 700 d/1.JPG cls 2048 1 d/1.cls\n\
             jpg 5120 0 {d}/2.jpg seg.png 6656 600 {d}/2.seg.png\n"
        );
        assert_eq!(String::from_utf8(text(&shard, len)).unwrap(), want);
        assert_eq!(DaliIndexText::default().finish(), b"v1.2 0\n");
    }

    #[test]
    fn an_index_comes_back_as_the_members_of_samples() {
        let dir = tempfile::tempdir().unwrap();
        let (shard, len) = shard(dir.path());
        let path = path_of(&dir.path().join("a.tar"));
        assert_eq!(path, dir.path().join("a.idx"));
        fs::write(&path, text(&shard, len)).unwrap();
        let idx = DaliIndex::read(&path, &shard, len).unwrap();
        assert_eq!(DaliIndex::samples_at(&path), Some(2));
        let of_idx: Vec<_> = idx.members().map(|m| (m.name, m.data_at, m.size)).collect();
        let mut walk = HeaderWalk::new(&shard, len);
        let mut of_walk = Vec::new();
        while let Some(m) = walk.next().unwrap() {
            if m.name != b"README" {
                of_walk.push((m.name, m.data_at, m.size));
            }
        }
        assert_eq!(of_idx, of_walk);
        assert_eq!(of_idx.len(), 4);
    }

    #[test]
    fn an_index_of_another_form_or_shard_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let (shard, len) = shard(dir.path());
        let good = String::from_utf8(text(&shard, len)).unwrap();
        let path = dir.path().join("b.idx");
        let told = |text: &str| {
            fs::write(&path, text).unwrap();
            match DaliIndex::read(&path, &shard, len) {
                Ok(_) => "used".to_owned(),
                Err(e) => e.to_string(),
            }
        };
        assert_eq!(told(&good), "used");
        // wds2idx writes a member without a dot like this.
        let with_readme = good
            .replace("v1.2 2", "v1.2 3")
            .replace("\njpg", "\nREADME 3072 3 README\njpg");
        assert_eq!(told(&with_readme), "used");
        let other = |line| format!("line {line} names a member that the shard does not have there");
        let form = |line| format!("line {line} is not `extension offset size name ...`");
        for (from, to, want) in [
            (
                "v1.2",
                "v1.1",
                "does not begin with 'v1.2' and a number".into(),
            ),
            ("v1.2 2", "v1.2 3", "states 3 samples, but lists 2".into()),
            ("JPG 512 700", "JPG 512 701", other(2)),
            ("JPG 512", "JPG 1024", other(2)),
            ("JPG 512", "JPG 0", form(2)),
            ("JPG 512", "JPG 513", other(2)),
            ("d/1.JPG", "d/2.JPG", other(2)),
            ("d/1.JPG", "d/1 .JPG", form(2)),
            ("d/1.JPG", "d/1\\ .JPG", form(2)),
            ("JPG 512", "jpg 512", form(2)),
            ("cls 2048", "cls 512", other(2)),
            ("cls 2048 1", "cls 2048 99999999", other(2)),
            ("cls 2048 1", "cls 2048 9223372036854775807", form(2)),
            ("cls 2048 1", "cls 2048 -1", form(2)),
            ("6656 600", "6656 500", other(3)),
            (
                "6656 600",
                "7168 600",
                "does not list all members of the shard from byte 5120 on".into(),
            ),
        ] {
            assert!(good.contains(from), "{from}");
            assert_eq!(told(&good.replacen(from, to, 1)), want, "{from} {to}");
        }
        for len in 0..good.len() {
            assert_ne!(told(&good[..len]), "used", "{len}");
        }
        assert!(DaliIndex::read(dir.path(), &shard, len).is_err());
        assert!(DaliIndex::read(&dir.path().join("none"), &shard, len).is_err());
    }

    #[test]
    fn a_hole_in_an_index_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.idx");
        fs::write(&path, "v1.2 1\njpg 512 1 a.jpg\n").unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(64 << 20).unwrap();
        let found = DaliIndex::text_at(&path).map(|idx| idx.text.len());
        assert!(found.is_err(), "{found:?} bytes are held");
        let said = found.unwrap_err().to_string();
        assert!(said.contains("a zero byte"), "{said}");
        assert_eq!(DaliIndex::samples_at(&path), None);
    }

    #[test]
    fn names_that_an_index_cannot_hold_are_refused() {
        for name in ["a b.jpg", "a\n.jpg", "a\t.jpg", "a\\.jpg", "a.j g"] {
            let mut text = DaliIndexText::default();
            let e = text.push(name.as_bytes(), 512, 1).unwrap_err();
            assert_eq!(e.name, name.as_bytes());
            assert!(e.to_string().contains(&format!("{name:?}")), "{e}");
        }
        let mut text = DaliIndexText::default();
        text.push(b"no dot", 512, 1).unwrap();
        assert_eq!(text.samples(), 0);
    }
}
