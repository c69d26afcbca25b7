//! The ledger of a shard: its members, their offsets, and the files that list them.
//!
//! Runs in the consumer. Arithmetic and text only. The build and the disk estimate use the same
//! code.

use crate::data::shard::dali_index::DaliIndexText;
use crate::data::shard::manifest::{
    COLUMNS_MEMBER, HexHash64, HexHash128, Manifest, MemberEntry, SampleEntry, ShardManifest,
    SkippedEntry, TargetMembers, version_of,
};
use crate::data::shard::shard_writer::{END, encode_header, member_bytes};
use crate::error::{Error, Result};

/// The members of a shard so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ShardLedger {
    first_id: u64,
    /// Length of the members so far, bytes.
    at: u64,
    samples: Vec<SampleEntry>,
    columns: Option<MemberEntry>,
    targets: TargetMembers,
    skipped: Vec<SkippedEntry>,
}

/// A sample of the source, and the height and width of its image there if they are kept.
pub(super) type SourceSample = (u64, Option<(u32, u32)>);

/// A member of a shard, before or after it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct LedgerEntry<'a> {
    pub(super) name: &'a str,
    pub(super) size: u64,
    /// XXH3-64 of the data.
    pub(super) hash: u64,
}

impl ShardLedger {
    /// An empty shard. Its first sample will have id `first_id`, and each of them these targets.
    pub(super) fn new(first_id: u64, targets: TargetMembers) -> Self {
        Self {
            first_id,
            targets,
            ..Self::default()
        }
    }

    pub(super) fn samples(&self) -> u64 {
        self.samples.len() as u64
    }

    /// Length of the tar if it ended here, bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.at + END
    }

    /// Whether a sample with these members fits into a shard of at most `most` bytes. The first
    /// sample always fits.
    pub(super) fn takes<'a>(
        &self,
        members: impl Iterator<Item = LedgerEntry<'a>>,
        most: u64,
    ) -> bool {
        let more = members.map(|m| member_bytes(m.name, m.size));
        let bytes = more.fold(self.bytes(), u64::saturating_add);
        self.samples.is_empty() || bytes <= most
    }

    /// Adds a sample of the source with its members, in their order.
    pub(super) fn add<'a>(
        &mut self,
        (source, size): SourceSample,
        members: impl Iterator<Item = LedgerEntry<'a>>,
    ) {
        let members = members.map(|member| self.place(member)).collect();
        self.samples.push(SampleEntry {
            source,
            size,
            members,
        });
    }

    /// Adds the columns of all samples, which come after the last one.
    pub(super) fn add_columns(&mut self, size: u64, hash: u64) {
        let name = COLUMNS_MEMBER;
        self.columns = Some(self.place(LedgerEntry { name, size, hash }));
    }

    fn place(&mut self, member: LedgerEntry<'_>) -> MemberEntry {
        let header_at = self.at;
        self.at += member_bytes(member.name, member.size);
        MemberEntry {
            name: member.name.to_owned(),
            header_at,
            data_at: header_at + encode_header(member.name, member.size).len() as u64,
            size: member.size,
            hash: HexHash64(member.hash),
        }
    }

    /// Adds a left-out sample.
    pub(super) fn skip(&mut self, skipped: SkippedEntry) {
        self.skipped.push(skipped);
    }

    /// The manifest of the shard, whose tar has this hash.
    pub(super) fn manifest(self, hash: u128) -> ShardManifest {
        ShardManifest {
            format: ShardManifest::FORMAT.into(),
            version: version_of(self.columns.is_some(), self.targets),
            checksum: HexHash128(0),
            first_id: self.first_id,
            bytes: self.bytes(),
            hash: HexHash128(hash),
            targets: self.targets,
            samples: self.samples,
            columns: self.columns,
            skipped: self.skipped,
        }
    }
}

/// The text of a shard's `.idx`.
///
/// # Errors
/// A name that an index cannot hold. No build writes such a name.
pub(super) fn idx_text(manifest: &ShardManifest) -> Result<Vec<u8>> {
    let mut text = DaliIndexText::default();
    for member in manifest.samples.iter().flat_map(|s| &s.members) {
        text.push(member.name.as_bytes(), member.data_at, member.size)
            .map_err(|e| Error::protocol(e.to_string()))?;
    }
    Ok(text.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::shard::shard_writer::ShardWriter;

    fn entry(name: &str, size: u64) -> LedgerEntry<'_> {
        LedgerEntry {
            name,
            size,
            hash: 1,
        }
    }

    #[test]
    fn the_ledger_says_what_the_writer_does() {
        let mut writer = ShardWriter::new(Vec::new());
        let mut ledger = ShardLedger::new(3, TargetMembers::default());
        let long = "n".repeat(120);
        for (i, size) in [0usize, 1, 511, 512, 513, 5000].into_iter().enumerate() {
            let members = [entry("a.jpg", size as u64), entry(&long, 3)];
            ledger.add((i as u64, None), members.into_iter());
            let first = writer.append("a.jpg", &vec![1; size]).unwrap();
            let second = writer.append(&long, b"abc").unwrap();
            let said = &ledger.samples[i].members;
            for (said, placed) in said.iter().zip([first, second]) {
                assert_eq!(said.header_at, placed.header_at);
                assert_eq!(said.data_at, placed.data_at);
                assert_eq!(said.size, placed.size);
            }
        }
        let bytes = ledger.bytes();
        assert_eq!(writer.finish().unwrap().bytes, bytes);
        assert_eq!(ledger.manifest(9).bytes, bytes);
    }

    #[test]
    fn a_shard_takes_one_sample_at_least_and_no_more_than_fit() {
        let mut ledger = ShardLedger::new(0, TargetMembers::default());
        let members = || [entry("a.jpg", 10_000)].into_iter();
        assert!(ledger.takes(members(), 4096));
        ledger.add((0, None), members());
        // 512 + 10240 bytes each, and 1024 at the end.
        assert!(ledger.takes(members(), 2 * 10_752 + 1024));
        assert!(!ledger.takes(members(), 2 * 10_752 + 1023));
    }

    #[test]
    fn the_idx_is_dalis() {
        let mut ledger = ShardLedger::new(0, TargetMembers::default());
        let members = [entry("0_a.jpg", 5), entry("0_a.cls", 1)];
        ledger.add((0, None), members.into_iter());
        ledger.add((1, None), [entry("1_b.jpg", 600)].into_iter());
        let text = idx_text(&ledger.manifest(0)).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "v1.2 2\njpg 512 5 0_a.jpg cls 1536 1 0_a.cls\njpg 2560 600 1_b.jpg\n"
        );
    }
}
