//! Files that cannot be loaded, of every kind that occurs in real data sets.
//!
//! Every set has the same files, spread over the class folders. The name of each file states its
//! defect, and so does the manifest.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;

use featherload::{Error, FaultKind, Result};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::encode::{ChromaSampling, JpegCoding, JpegOptions, LosslessForm, PngOptions};
use super::files::{class_name, regular_file, write_whole};
use super::manifest::BrokenFile;
use super::random::hash;
use super::{chunks, scene};

const WIDTH: u16 = 320;
const HEIGHT: u16 = 240;
/// Far above every limit, and far above what a decoder should allocate.
const HUGE: u16 = 60_000;
const TENTHS: u8 = 10;

/// The defect of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// A JPEG that ends after this many tenths of its bytes.
    CutJpeg(u8),
    Empty,
    Text,
    HugeJpeg,
    HugePng,
    CutPng,
    CutWebP,
    /// A PNG with wrong bytes in the middle of its data.
    WrongPng,
    Fifo,
    DanglingLink,
    LinkLoop,
    NoPermission,
}

/// One broken file of a set.
pub(super) struct BrokenSpec {
    damage: Damage,
    /// The entry of the manifest.
    pub(super) listed: BrokenFile,
}

/// All broken files except the truncated JPEGs: name after `broken_`, faults, and defect as text.
#[rustfmt::skip] // A file a line.
const OTHERS: [(Damage, &str, &[FaultKind], &str); 11] = [
    (Damage::Empty, "empty.jpg", &[FaultKind::Truncated], "no bytes"),
    (Damage::Text, "text.jpg", &[FaultKind::Unsupported], "a text"),
    (Damage::HugeJpeg, "60000x60000.jpg", &[FaultKind::TooLarge], "a JPEG whose header says 60000 x 60000"),
    (Damage::HugePng, "60000x60000.png", &[FaultKind::TooLarge], "a PNG whose header says 60000 x 60000"),
    (Damage::CutPng, "cut.png", CUT, "a PNG cut off at half its length"),
    (Damage::CutWebP, "cut.webp", CUT, "a WebP cut off at half its length"),
    (Damage::WrongPng, "wrong_bytes.png", &[FaultKind::Corrupt], "a PNG with wrong bytes in its data"),
    (Damage::Fifo, "fifo.jpg", &[FaultKind::NotRegular], "a FIFO"),
    (Damage::DanglingLink, "dangling_link.jpg", &[FaultKind::Unreadable], "a link to nothing"),
    (Damage::LinkLoop, "link_to_itself.jpg", &[FaultKind::Unreadable], "a link to itself"),
    // Root can read it. The content is text, so the fault is another one.
    (Damage::NoPermission, "no_permission.jpg", &[FaultKind::Unreadable, FaultKind::Unsupported], "a text that nobody but root may read"),
];
const CUT: &[FaultKind] = &[FaultKind::Truncated, FaultKind::Corrupt];

/// The broken files of a set with `classes` class folders.
pub(super) fn files(classes: u32) -> Vec<BrokenSpec> {
    let broken = |class, damage, name: &str, faults: &[FaultKind], what: &str| BrokenSpec {
        damage,
        listed: BrokenFile {
            path: format!("{}/broken_{name}", class_name(class % classes)),
            faults: faults.iter().map(|f| f.name().to_owned()).collect(),
            what: what.to_owned(),
        },
    };
    let cut = (1..TENTHS).map(|tenths| {
        let name = format!("cut_at_{tenths}0_percent.jpg");
        let what = format!("a JPEG cut off at {tenths}0% of its length");
        let faults = &[FaultKind::Truncated];
        broken(
            u32::from(tenths) - 1,
            Damage::CutJpeg(tenths),
            &name,
            faults,
            &what,
        )
    });
    let others = (u32::from(TENTHS) - 1..).zip(OTHERS);
    let others =
        others.map(|(i, (damage, name, faults, what))| broken(i, damage, name, faults, what));
    cut.chain(others).collect()
}

impl BrokenSpec {
    /// Makes the file in the set at `root`, unless it exists.
    pub(super) fn make(&self, root: &Path, seed: u64) -> Result<()> {
        let path = root.join(&self.listed.path);
        let in_the_way = |is: fn(&fs::FileType) -> bool, e: io::Error| {
            let ours = e.kind() == ErrorKind::AlreadyExists
                && fs::symlink_metadata(&path).is_ok_and(|m| is(&m.file_type()));
            if ours {
                Ok(())
            } else {
                Err(Error::io_at("make", &path, e))
            }
        };
        match self.damage {
            Damage::Fifo => mkfifo(&path, Mode::from_bits_truncate(0o644))
                .or_else(|e| in_the_way(fs::FileType::is_fifo, e.into())),
            Damage::DanglingLink | Damage::LinkLoop => {
                let itself = path.file_name().filter(|_| self.damage == Damage::LinkLoop);
                let target = itself.unwrap_or("nowhere.jpg".as_ref());
                symlink(target, &path).or_else(|e| in_the_way(fs::FileType::is_symlink, e))
            }
            damage => {
                let there = regular_file(&path)?;
                if there.is_none_or(|bytes| bytes == 0 && damage != Damage::Empty) {
                    let bytes = damage
                        .bytes(seed)
                        .map_err(|e| Error::io_at("encode", &path, e))?;
                    write_whole(&path, &bytes)?;
                }
                // Also if the file exists: an interrupted call may have written it and then ended.
                if damage == Damage::NoPermission {
                    fs::set_permissions(&path, Permissions::from_mode(0o000))
                        .map_err(|e| Error::io_at("take the permissions of", &path, e))?;
                }
                Ok(())
            }
        }
    }
}

impl Damage {
    /// The content, for regular files.
    fn bytes(self, seed: u64) -> io::Result<Vec<u8>> {
        const TEXT: &[u8] = b"This is not a picture, whatever its name says.\n";
        let jpeg = || {
            picture(
                seed,
                JpegCoding::Jpeg(JpegOptions::Baseline(ChromaSampling::Quarter)),
            )
        };
        let png = || picture(seed, JpegCoding::Png(PngOptions::Rgb));
        Ok(match self {
            Self::CutJpeg(tenths) => {
                let mut jpeg = jpeg()?;
                jpeg.truncate(jpeg.len() * usize::from(tenths) / usize::from(TENTHS));
                jpeg
            }
            Self::Text | Self::NoPermission => TEXT.to_vec(),
            Self::HugeJpeg => {
                let mut jpeg = jpeg()?;
                // Marker, length, depth; then height and width.
                let frame = jpeg
                    .windows(2)
                    .position(|marker| marker == [0xff, 0xc0])
                    .and_then(|at| jpeg.get_mut(at + 5..at + 9))
                    .ok_or_else(|| io::Error::other("the encoder wrote no frame"))?;
                frame[..2].copy_from_slice(&HUGE.to_be_bytes());
                frame[2..].copy_from_slice(&HUGE.to_be_bytes());
                jpeg
            }
            Self::HugePng => chunks::far_too_large((HUGE.into(), HUGE.into()))?,
            Self::CutPng => half(png()?),
            Self::CutWebP => half(picture(seed, JpegCoding::Lossless(LosslessForm::WebP))?),
            Self::WrongPng => {
                let mut png = png()?;
                let data = chunks::first_data(&png)
                    .ok_or_else(|| io::Error::other("the encoder wrote no data"))?;
                let middle = data.start + data.len() / 2;
                for byte in &mut png[middle..middle + 8] {
                    *byte = !*byte;
                }
                png
            }
            Self::Empty | Self::Fifo | Self::DanglingLink | Self::LinkLoop => Vec::new(),
        })
    }
}

fn half(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() / 2);
    bytes
}

fn picture(seed: u64, coding: JpegCoding) -> io::Result<Vec<u8>> {
    let key = hash(seed, 3);
    let pixels = scene::paint(WIDTH.into(), HEIGHT.into(), key, key);
    coding.encode(WIDTH, HEIGHT, pixels, 90)
}

#[cfg(test)]
mod tests;
