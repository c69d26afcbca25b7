//! Checks a tar without an intact manifest, header by header.
//!
//! There are no checksums of the data. For a tar of a cache, headers are encoded again and
//! compared, and padding must be zero. For other tars, only bounds and the checksums of headers are
//! checked.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::cache::verify::file_window::FileWindow;
use crate::cache::verify::findings::{DamagedSample, FindingKind, FindingLog, VerifyFinding};
use crate::data::shard::member_name;
use crate::data::shard::shard_writer::{END, encode_header, padding};
use crate::data::shard::walk::{DamageKind, HeaderWalk, ShardDamage, ShardEnding, ShardMember};

/// Checks the tar at `path`. `ours` is set for a tar of a cache: its length, or none if it is not
/// known.
pub(super) fn check(path: &Path, name: &Path, ours: Option<Option<u64>>, found: &FindingLog<'_>) {
    let (file, len) = match crate::data::shard::open(path) {
        Ok(opened) => opened,
        Err(e) => {
            return found.add_file_finding(name, FindingKind::Unreadable, None, e.to_string());
        }
    };
    let tar = CheckedTar {
        name,
        file: &file,
        len,
        ours: ours.is_some(),
        found,
    };
    if let Some(due) = ours.flatten().filter(|due| *due != len) {
        let message = format!("has {len} bytes, and the cache's manifest says {due}");
        found.add_file_finding(name, FindingKind::Length, Some(len.min(due)), message);
    }
    if let Err((at, e)) = tar.walk() {
        let message = format!("cannot be read: {e}");
        found.add_file_finding(name, FindingKind::Unreadable, Some(at), message);
    }
}

struct CheckedTar<'a> {
    name: &'a Path,
    file: &'a File,
    len: u64,
    ours: bool,
    found: &'a FindingLog<'a>,
}

impl CheckedTar<'_> {
    fn walk(&self) -> Result<(), (u64, io::Error)> {
        let mut walk = HeaderWalk::new(self.file, self.len);
        let (mut samples, mut end) = (0, 0);
        let mut key: Vec<u8> = Vec::new();
        let mut bytes = FileWindow::new(self.file, self.len, self.found);
        while let Some(member) = walk.next().map_err(|e| (end, e))? {
            let next = member_name::split(&member.name).map(|(key, _)| key);
            if let Some(next) = next.filter(|next| *next != key) {
                key = next.to_vec();
                samples += 1;
            }
            if self.ours {
                self.check_member(&member, &mut bytes)
                    .map_err(|e| (member.header_at, e))?;
            }
            let data_end = member.data_at + member.size;
            end = data_end + padding(member.size);
        }
        self.found.shard(samples);
        let walked = walk.finish();
        if !self.ours {
            // The data were not read. Counts them as done.
            self.found.read(self.len);
        }
        for damage in &walked.damage {
            self.tell_damage(damage);
        }
        let told = walked.damage.len() as u64;
        if walked.places > told {
            let message = format!("{} more places are damaged", walked.places - told);
            self.tell(FindingKind::Header, end, None, message);
        }
        // Other tars may end with one block of zeros, or with a record of them.
        let due = end.saturating_add(END);
        let is_short = self.ours && self.len < due;
        let message = if walked.ending == ShardEnding::NoBlocks || is_short {
            "ends without two zero blocks: samples after it may be missing".into()
        } else if self.ours && self.len > due {
            let more = self.len - due;
            format!("{more} zero bytes follow its end: samples may be missing")
        } else {
            return Ok(());
        };
        if walked.damage.is_empty() {
            self.tell(FindingKind::EndBlocks, end.min(self.len), None, message);
        }
        Ok(())
    }

    /// Checks header and padding, which our writer makes in only one way.
    fn check_member(&self, member: &ShardMember, bytes: &mut FileWindow<'_>) -> io::Result<()> {
        let data_end = member.data_at + member.size;
        let end = (data_end + padding(member.size)).min(self.len);
        let shown = String::from_utf8_lossy(&member.name);
        let header = encode_header(&shown, member.size);
        let is_whole = header.len() as u64 == member.data_at - member.header_at;
        let differs = match is_whole {
            true => bytes.differ_from(member.header_at, &header)?,
            false => Some(member.header_at),
        };
        if let Some(at) = differs {
            let message = FindingKind::Header.of_member(&shown);
            self.tell(FindingKind::Header, at, Some(member), message);
        }
        if let Some(at) = bytes.not_zero(data_end, end)? {
            let message = FindingKind::Padding.of_member(&shown);
            self.tell(FindingKind::Padding, at, Some(member), message);
        }
        Ok(())
    }

    fn tell_damage(&self, damage: &ShardDamage) {
        let kind = match damage.what {
            DamageKind::Header(_) => FindingKind::Header,
            DamageKind::Cut { .. } | DamageKind::CutHeader => FindingKind::Length,
            DamageKind::BehindTheEnd | DamageKind::Zeros => FindingKind::EndBlocks,
        };
        self.tell(kind, damage.at, None, damage.to_string());
    }

    fn tell(&self, kind: FindingKind, at: u64, member: Option<&ShardMember>, message: String) {
        self.found.add(VerifyFinding {
            file: self.name.into(),
            offset: Some(at),
            kind,
            sample: member.map(|member| DamagedSample::of_member(None, &member.name)),
            message,
        });
    }
}
