//! The header walk: finds every member of a shard, in the order of the file.
//!
//! Runs in the consumer. It reads through a buffer of 8 KiB. It holds at most 64 KiB of one name or
//! of the pax records of one header. Every step moves forward by at least one block, so the walk
//! ends for any file.
//!
//! - **End.** The first block of zeros ends a shard. GNU tar, the `tar` crate and Python's tarfile,
//!   which WebDataset uses, do the same. A shard may also end after a member, without a block of
//!   zeros. Data after the end are not read: a lone block of zeros may be followed by more members,
//!   or by a second archive. The walk reports such data as damage; the other readers do not. It
//!   also reports more zeros than a tar writer pads with. A crash leaves such a tail, and so does
//!   an interrupted copy that allocated its file first.
//! - **Damage.** The walk skips a block that is not a valid header, up to the next block with the
//!   magic of ustar, pax or GNU. The other readers stop there. If the skipped block may have held
//!   the name of the next member, that member is skipped too. A member whose data are cut off by
//!   the end of the file is not returned.

use std::fmt;
use std::fs::File;
use std::io;

use crate::data::shard::header;
use crate::data::shard::header::{BLOCK, HeaderFault, HeaderKind, TarBlock, TarHeader};
use crate::data::shard::pax::PaxRecords;
use crate::data::shard::read_at;

/// Bytes per read. Many small members lie within one read.
const READ: usize = 16 * BLOCK as usize;
/// The longest long name, and the longest pax records of one header, bytes.
const MAX_RECORDS: u64 = 64 << 10;
/// The record that tar writers fill up by default: 10 KiB.
const USUAL_RECORD: u64 = 20 * BLOCK;
/// This many zeros at the end are never damage, whatever the length of the file.
const MOST_PADDING: u64 = 1 << 20;
/// The largest tar record, or block size of a copy, that the length of a file may indicate. Larger
/// ones are rare. A larger tail of zeros is more likely lost data of an interrupted copy.
const LARGEST_RECORD: u64 = 16 << 20;
/// Damaged places that are listed one by one. All are counted.
const KEPT: usize = 16;

/// A regular file in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShardMember {
    /// Not empty, and without NUL bytes.
    pub(crate) name: Vec<u8>,
    /// Offset of the first of its headers.
    pub(crate) header_at: u64,
    /// Offset of its data: a multiple of 512.
    pub(crate) data_at: u64,
    /// Length of its data, bytes. All of them lie within the file.
    pub(crate) size: u64,
    /// Whether there is damage between the member before it and this one.
    pub(crate) after_damage: bool,
}

/// How a shard ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardEnding {
    /// At a block of zeros.
    Blocks,
    /// After a member, without the blocks of zeros. Nothing else is missing.
    NoBlocks,
    /// Within a header, within data, or in bytes that are not a header.
    Cut,
}

/// One place where a shard is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShardDamage {
    /// Offset in the shard.
    pub(crate) at: u64,
    /// Bytes that were skipped here.
    pub(crate) lost: u64,
    pub(crate) what: DamageKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DamageKind {
    /// Not a header, or one with impossible values.
    Header(HeaderFault),
    /// The file ends within this member's data.
    Cut { name: Vec<u8>, missing: u64 },
    /// The file ends within a header, or after one that describes a missing member.
    CutHeader,
    /// Bytes other than zero after the end.
    BehindTheEnd,
    /// Zeros up to the end of the file, more than a tar writer pads with.
    Zeros,
}

impl fmt::Display for ShardDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, lost, what } = self;
        match what {
            DamageKind::Header(fault) => {
                write!(f, "damaged at byte {at}: no valid header ({fault}); ")?;
                write!(f, "{lost} bytes are lost")
            }
            DamageKind::Cut { name, missing } => {
                write!(f, "cut off: it ends within '{}' ", name.escape_ascii())?;
                write!(f, "at byte {at}, and {missing} bytes of it are missing")
            }
            DamageKind::CutHeader => write!(f, "cut off: it ends within the header at byte {at}"),
            DamageKind::BehindTheEnd => write!(
                f,
                "the archive ends at byte {at}, but {lost} bytes with more data follow: they are \
                 not read"
            ),
            DamageKind::Zeros => write!(
                f,
                "the archive ends at byte {at}, and {lost} bytes after it are zero. A tar ends \
                 with a few KiB of zeros: data may be lost (an interrupted copy?)"
            ),
        }
    }
}

/// Files of a shard that are left out for one reason. Examples are sparse files and links, whose
/// data are not one range of bytes of the shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SkippedFiles {
    pub(crate) count: u64,
    /// The first three names, sorted by their bytes.
    pub(crate) names: Vec<Vec<u8>>,
}

impl SkippedFiles {
    const NAMES: usize = 3;

    pub(crate) fn add(&mut self, name: Vec<u8>) {
        self.count += 1;
        let at = self.names.partition_point(|known| *known <= name);
        if at < Self::NAMES {
            self.names.insert(at, name);
            self.names.truncate(Self::NAMES);
        }
    }
}

/// What a walk found besides the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WalkResult {
    pub(crate) ending: ShardEnding,
    /// The first places of damage.
    pub(crate) damage: Vec<ShardDamage>,
    /// Number of damaged places.
    pub(crate) places: u64,
    /// Bytes that were skipped at all places.
    pub(crate) lost: u64,
    /// The last place, also if `damage` has no room for it.
    pub(crate) last: Option<ShardDamage>,
    /// Whether there is damage after the last member, or at the end of the shard. False if the only
    /// damage there is a cut member: `last` has its name.
    pub(crate) tail_is_damaged: bool,
    pub(crate) not_plain: SkippedFiles,
}

/// A walk over one shard.
pub(crate) struct HeaderWalk<'a> {
    file: &'a File,
    len: u64,
    /// Where the next header begins.
    at: u64,
    buffer: Box<[u8; READ]>,
    buffer_at: u64,
    buffered: usize,
    /// The data of one `L`, `x` or `g` header.
    records: Vec<u8>,
    /// From `L` and `x` headers, for the next member.
    name: Option<Vec<u8>>,
    pax: Option<PaxRecords>,
    /// From `g` headers.
    global: PaxRecords,
    /// Offset of the first header that describes the next member.
    described_from: Option<u64>,
    behind_damage: bool,
    /// The next member may have lost its name.
    nameless: Nameless,
    out: WalkResult,
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nameless {
    No,
    /// Only if the name field of its header is full.
    IfFull,
    Yes,
}

impl<'a> HeaderWalk<'a> {
    /// A walk over the first `len` bytes of `file`.
    pub(crate) fn new(file: &'a File, len: u64) -> Self {
        Self {
            file,
            len,
            at: 0,
            buffer: Box::new([0; READ]),
            buffer_at: 0,
            buffered: 0,
            records: Vec::new(),
            name: None,
            pax: None,
            global: PaxRecords::default(),
            described_from: None,
            behind_damage: false,
            nameless: Nameless::No,
            out: WalkResult {
                ending: ShardEnding::NoBlocks,
                damage: Vec::new(),
                places: 0,
                lost: 0,
                last: None,
                tail_is_damaged: false,
                not_plain: SkippedFiles::default(),
            },
            ended: false,
        }
    }

    /// The next member; `None` at the end, and in every call after that.
    ///
    /// # Errors
    /// When the file cannot be read. Damage is not an error: [`HeaderWalk::finish`] reports it.
    pub(crate) fn next(&mut self) -> io::Result<Option<ShardMember>> {
        while !self.ended {
            if self.at >= self.len {
                self.end_of_file();
                break;
            }
            let at = self.at;
            let Some(block) = self.block(at)? else {
                self.cut(at, DamageKind::CutHeader);
                break;
            };
            match TarHeader::parse(&block) {
                Ok(None) => self.end_blocks(at)?,
                Ok(Some(header)) => match self.header(at, &header)? {
                    Ok(None) => {}
                    Ok(Some(member)) => return Ok(Some(member)),
                    Err(fault) => self.skip_damage(at, fault, &block)?,
                },
                Err(fault) => self.skip_damage(at, fault, &block)?,
            }
        }
        Ok(None)
    }

    /// Continues at the header at `at`. Ignores any description of a member from before.
    pub(crate) fn resume_at(&mut self, at: u64) {
        self.at = at;
        self.ended = false;
        self.forget();
    }

    /// Whether the walk has found damage so far.
    pub(crate) fn has_damage(&self) -> bool {
        self.out.places > 0
    }

    /// Ends the walk and returns what it found so far.
    pub(crate) fn finish(mut self) -> WalkResult {
        let is_member = |last: &ShardDamage| matches!(last.what, DamageKind::Cut { .. });
        let is_cut_within_one = self.out.last.as_ref().is_some_and(is_member);
        self.out.tail_is_damaged |=
            self.behind_damage || (self.out.ending == ShardEnding::Cut && !is_cut_within_one);
        self.out
    }

    /// Handles a valid header. Returns a member if it is the header of a file, and `None` if it
    /// describes the next member or is skipped.
    fn header(
        &mut self,
        at: u64,
        header: &TarHeader<'_>,
    ) -> io::Result<Result<Option<ShardMember>, HeaderFault>> {
        let data_at = at + BLOCK;
        match header.kind {
            HeaderKind::LongName | HeaderKind::Pax | HeaderKind::PaxGlobal => {
                if header.size > MAX_RECORDS {
                    return Ok(Err(HeaderFault::TooLong { bytes: header.size }));
                }
                if self.len - data_at.min(self.len) < header.size {
                    self.cut(at, DamageKind::CutHeader);
                    return Ok(Ok(None));
                }
                // `header.size` is at most 64 KiB.
                self.records.resize(header.size as usize, 0);
                if read_at(self.file, &mut self.records, data_at)? < self.records.len() {
                    self.cut(at, DamageKind::CutHeader);
                    return Ok(Ok(None));
                }
                if let Err(fault) = self.describe(header.kind) {
                    return Ok(Err(fault));
                }
                if header.kind != HeaderKind::PaxGlobal {
                    self.described_from.get_or_insert(at);
                }
                self.at = block_after(data_at, header.size);
                Ok(Ok(None))
            }
            // It describes a link, whose own header follows.
            HeaderKind::LongLink => {
                self.described_from.get_or_insert(at);
                self.at = block_after(data_at, header.size);
                Ok(Ok(None))
            }
            HeaderKind::Link | HeaderKind::Bare => {
                if header.kind == HeaderKind::Link {
                    let name = self.name_of(header, self.pax.as_ref());
                    self.out.not_plain.add(name);
                }
                self.forget();
                self.at = data_at;
                Ok(Ok(None))
            }
            HeaderKind::Sparse { more_map } => {
                let name = self.name_of(header, self.pax.as_ref());
                self.out.not_plain.add(name);
                self.sparse(at, more_map, header.size).map(Ok)
            }
            HeaderKind::Other => {
                self.skip(at, data_at, header.size);
                Ok(Ok(None))
            }
            HeaderKind::File => Ok(self.member(at, header)),
        }
    }

    /// Stores the contents of an `L`, `x` or `g` header, which are in `records`.
    fn describe(&mut self, kind: HeaderKind) -> Result<(), HeaderFault> {
        match kind {
            HeaderKind::LongName => {
                let name = self.records.split(|&b| b == 0).next().unwrap_or_default();
                if name.is_empty() {
                    return Err(HeaderFault::Name);
                }
                self.name = Some(name.to_vec());
                Ok(())
            }
            HeaderKind::PaxGlobal => self.global.read(&self.records),
            _ => {
                let mut pax = self.pax.take().unwrap_or_else(|| self.global.clone());
                pax.read(&self.records)?;
                self.pax = Some(pax);
                Ok(())
            }
        }
    }

    /// The name of a file: from `pax` or a long-name header, else from its own header.
    fn name_of(&self, header: &TarHeader<'_>, pax: Option<&PaxRecords>) -> Vec<u8> {
        let path = pax.and_then(|pax| pax.path.as_ref());
        path.or(self.name.as_ref()).cloned().unwrap_or_else(|| {
            let mut name = Vec::new();
            header.write_name(&mut name);
            name
        })
    }

    fn member(
        &mut self,
        at: u64,
        header: &TarHeader<'_>,
    ) -> Result<Option<ShardMember>, HeaderFault> {
        let pax = self.pax.take().unwrap_or_else(|| self.global.clone());
        let described = pax.path.is_some() || self.name.is_some();
        let header_at = self.described_from.unwrap_or(at);
        let name = self.name_of(header, Some(&pax));
        self.forget();
        if name.is_empty() {
            return Err(HeaderFault::Name);
        }
        let data_at = at + BLOCK;
        // Checks the whole name: a cut name in the header may end in a slash too.
        if header.may_be_old_folder() && name.ends_with(b"/") {
            self.at = data_at;
            return Ok(None);
        }
        let size = pax.size.unwrap_or(header.size);
        self.at = block_after(data_at, size);
        let there = self.len.saturating_sub(data_at);
        if there < size {
            let missing = size - there;
            self.cut(header_at, DamageKind::Cut { name, missing });
            return Ok(None);
        }
        let nameless = std::mem::replace(&mut self.nameless, Nameless::No);
        let lost_its_name = match nameless {
            Nameless::No => false,
            Nameless::IfFull => !described && header.name_may_be_cut(),
            Nameless::Yes => !described,
        };
        if lost_its_name {
            // It counts as part of the damage before it.
            self.lose(self.at.min(self.len) - header_at);
            return Ok(None);
        }
        if pax.sparse {
            self.out.not_plain.add(name);
            return Ok(None);
        }
        let behind_damage = std::mem::take(&mut self.behind_damage);
        Ok(Some(ShardMember {
            name,
            header_at,
            data_at,
            size,
            after_damage: behind_damage,
        }))
    }

    /// Skips a sparse file, whose data are in pieces.
    fn sparse(
        &mut self,
        at: u64,
        mut more_map: bool,
        size: u64,
    ) -> io::Result<Option<ShardMember>> {
        let mut data_at = at + BLOCK;
        while more_map {
            let Some(map) = self.block(data_at)? else {
                self.cut(at, DamageKind::CutHeader);
                return Ok(None);
            };
            more_map = map[header::SPARSE_CONTINUES] != 0;
            data_at += BLOCK;
        }
        self.skip(at, data_at, size);
        Ok(None)
    }

    /// Skips the entry with its header at `at`, which is not a member.
    fn skip(&mut self, at: u64, data_at: u64, size: u64) {
        let size = self.pax.take().and_then(|pax| pax.size).unwrap_or(size);
        self.at = block_after(data_at, size);
        if self.len.saturating_sub(data_at) < size {
            self.cut(at, DamageKind::CutHeader);
        }
        self.forget();
    }

    /// Clears the name and size of a member, so that they do not apply to the next one.
    fn forget(&mut self) {
        self.name = None;
        self.pax = None;
        self.described_from = None;
    }

    /// Finds the next header after the invalid one at `from`.
    fn skip_damage(&mut self, from: u64, fault: HeaderFault, block: &TarBlock) -> io::Result<()> {
        self.nameless = if header::may_extend_next(block) {
            Nameless::Yes
        } else {
            Nameless::IfFull
        };
        let from = self.described_from.unwrap_or(from).min(from);
        self.forget();
        self.behind_damage = true;
        let mut at = self.at.max(from) + BLOCK;
        loop {
            let Some(block) = self.block(at)? else {
                self.out.ending = ShardEnding::Cut;
                self.ended = true;
                at = self.len;
                break;
            };
            if matches!(TarHeader::parse(&block), Ok(Some(header)) if header.has_magic()) {
                break;
            }
            at += BLOCK;
        }
        self.at = at;
        self.damaged(from, at - from, DamageKind::Header(fault));
        Ok(())
    }

    /// The file ends where a header would begin.
    fn end_of_file(&mut self) {
        match self.described_from {
            Some(from) => self.cut(from, DamageKind::CutHeader),
            None => self.ended = true,
        }
    }

    /// The file ends within the entry that began at `from`.
    fn cut(&mut self, from: u64, what: DamageKind) {
        let from = self.described_from.unwrap_or(from).min(from);
        self.damaged(from, self.len.saturating_sub(from), what);
        self.out.ending = ShardEnding::Cut;
        self.ended = true;
    }

    /// Ends the walk at the block of zeros at `end`. Reads the rest of the file, which should be a
    /// few KiB of zeros that fill up a record.
    fn end_blocks(&mut self, end: u64) -> io::Result<()> {
        if let Some(from) = self.described_from {
            // The described member does not follow.
            self.damaged(from, end - from, DamageKind::CutHeader);
            self.out.tail_is_damaged = true;
        }
        self.ended = true;
        self.out.ending = ShardEnding::Blocks;
        let mut at = end + BLOCK;
        while let Some(block) = self.block(at)? {
            if !header::is_zero(&block) {
                self.damaged(end, self.len - at, DamageKind::BehindTheEnd);
                self.out.tail_is_damaged = true;
                return Ok(());
            }
            at += BLOCK;
        }
        if self.len - end > most_padding(self.len) {
            self.damaged(end, self.len - end, DamageKind::Zeros);
            self.out.tail_is_damaged = true;
        }
        Ok(())
    }

    fn damaged(&mut self, at: u64, lost: u64, what: DamageKind) {
        self.out.places += 1;
        self.out.lost += lost;
        let damage = ShardDamage { at, lost, what };
        if self.out.damage.len() < KEPT {
            self.out.damage.push(damage.clone());
        }
        self.out.last = Some(damage);
    }

    /// Adds to the bytes lost at the last place.
    fn lose(&mut self, bytes: u64) {
        self.out.lost += bytes;
        if let Some(last) = &mut self.out.last {
            last.lost += bytes;
        }
        if self.out.places <= KEPT as u64
            && let Some(last) = self.out.damage.last_mut()
        {
            last.lost += bytes;
        }
    }

    /// The block at `at`; `None` if the file ends before the block does.
    fn block(&mut self, at: u64) -> io::Result<Option<TarBlock>> {
        if at.checked_add(BLOCK).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        let held = at
            .checked_sub(self.buffer_at)
            .filter(|&skip| skip + BLOCK <= self.buffered as u64);
        let skip = match held {
            Some(skip) => skip as usize,
            None => {
                let due = usize::try_from(self.len - at).map_or(READ, |left| left.min(READ));
                self.buffered = 0;
                self.buffered = read_at(self.file, &mut self.buffer[..due], at)?;
                self.buffer_at = at;
                0
            }
        };
        // Shorter than `due` only if the file has shrunk since it was opened.
        let bytes = self.buffer[..self.buffered].get(skip..);
        Ok(bytes.and_then(|bytes| bytes.first_chunk()).copied())
    }
}

/// The most zeros, from the first block of zeros on, that a shard of `len` bytes may end with
/// without damage.
///
/// A writer fills up its last record (`tar -b 4096`). A copy with large blocks does the same (`dd
/// bs=4M conv=sync`). Both leave a file of whole records, so the size of a record divides the
/// length of the file.
///
/// Some lost data go unnoticed. One of 256 lengths that are multiples of 10 KiB is a multiple of
/// 2.5 MiB by chance. A copy that allocated such a file first may then lose that much. For other
/// lengths, a loss of up to [`MOST_PADDING`] goes unnoticed.
fn most_padding(len: u64) -> u64 {
    let twos = len.trailing_zeros();
    let by_two = 1 << twos.min(LARGEST_RECORD.trailing_zeros());
    // 5 times a power of two: 10 KiB, or its doubles.
    let by_ten = match len.is_multiple_of(5) {
        true => 5 << twos.min((LARGEST_RECORD / 5).ilog2()),
        false => 0,
    };
    // One of the two end blocks may be in the record before. A copy may pad a tar that is padded
    // already.
    MOST_PADDING.max(by_two.max(by_ten) + USUAL_RECORD) + BLOCK
}

/// Offset of the block after `size` bytes of data at `at`. Returns `u64::MAX`, which is after the
/// end of every file, if the sum overflows.
pub(crate) fn block_after(at: u64, size: u64) -> u64 {
    size.checked_next_multiple_of(BLOCK)
        .and_then(|bytes| at.checked_add(bytes))
        .unwrap_or(u64::MAX)
}
