//! Files that no loader can load, of every kind that data sets really hold.
//!
//! The same ones in every set, whatever its kind, spread over the class folders.
//! Each says by its name what is wrong; the manifest says it to programs.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;

use featherload::{Error, FaultKind, Result};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::encode::{Chroma, Coding, Jpeg, Lossless, Png};
use super::files::{class_name, regular_file, write_whole};
use super::manifest::BrokenFile;
use super::random::hash;
use super::{chunks, scene};

const WIDTH: u16 = 320;
const HEIGHT: u16 = 240;
/// Far over every limit, and far over what a decoder should allocate.
const HUGE: u16 = 60_000;
const TENTHS: u8 = 10;
const LINK_LOOP: &str = "broken_link_to_itself.jpg";

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// A JPEG that ends after so many tenths.
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
pub(super) struct Broken {
    damage: Damage,
    class: u32,
}

/// Those of a set with `classes` class folders.
pub(super) fn files(classes: u32) -> Vec<Broken> {
    let cut = (1..TENTHS).map(Damage::CutJpeg);
    let others = [
        Damage::Empty,
        Damage::Text,
        Damage::HugeJpeg,
        Damage::HugePng,
        Damage::CutPng,
        Damage::CutWebP,
        Damage::WrongPng,
        Damage::Fifo,
        Damage::DanglingLink,
        Damage::LinkLoop,
        Damage::NoPermission,
    ];
    (0..)
        .zip(cut.chain(others))
        .map(|(i, damage)| Broken {
            damage,
            class: i % classes,
        })
        .collect()
}

impl Broken {
    fn name(&self) -> String {
        match self.damage {
            Damage::CutJpeg(tenths) => return format!("broken_cut_at_{tenths}0_percent.jpg"),
            Damage::Empty => "broken_empty.jpg",
            Damage::Text => "broken_text.jpg",
            Damage::HugeJpeg => "broken_60000x60000.jpg",
            Damage::HugePng => "broken_60000x60000.png",
            Damage::CutPng => "broken_cut.png",
            Damage::CutWebP => "broken_cut.webp",
            Damage::WrongPng => "broken_wrong_bytes.png",
            Damage::Fifo => "broken_fifo.jpg",
            Damage::DanglingLink => "broken_dangling_link.jpg",
            Damage::LinkLoop => LINK_LOOP,
            Damage::NoPermission => "broken_no_permission.jpg",
        }
        .to_owned()
    }

    fn path(&self) -> String {
        format!("{}/{}", class_name(self.class), self.name())
    }

    /// As the manifest lists it.
    pub(super) fn listed(&self) -> BrokenFile {
        let (faults, what): (&[FaultKind], String) = match self.damage {
            Damage::CutJpeg(tenths) => (
                &[FaultKind::Truncated],
                format!("a JPEG cut off at {tenths}0% of its length"),
            ),
            Damage::Empty => (&[FaultKind::Truncated], "no bytes".into()),
            Damage::Text => (&[FaultKind::Unsupported], "a text".into()),
            Damage::HugeJpeg => (
                &[FaultKind::TooLarge],
                format!("a JPEG whose header says {HUGE} x {HUGE}"),
            ),
            Damage::HugePng => (
                &[FaultKind::TooLarge],
                format!("a PNG whose header says {HUGE} x {HUGE}"),
            ),
            Damage::CutPng => (
                &[FaultKind::Truncated, FaultKind::Corrupt],
                "a PNG cut off at half its length".into(),
            ),
            Damage::CutWebP => (
                &[FaultKind::Truncated, FaultKind::Corrupt],
                "a WebP cut off at half its length".into(),
            ),
            Damage::WrongPng => (
                &[FaultKind::Corrupt],
                "a PNG with wrong bytes in its data".into(),
            ),
            Damage::Fifo => (&[FaultKind::NotRegular], "a FIFO".into()),
            Damage::DanglingLink => (&[FaultKind::Unreadable], "a link to nothing".into()),
            Damage::LinkLoop => (&[FaultKind::Unreadable], "a link to itself".into()),
            // Root may read it, and finds a text.
            Damage::NoPermission => (
                &[FaultKind::Unreadable, FaultKind::Unsupported],
                "a text that nobody but root may read".into(),
            ),
        };
        BrokenFile {
            path: self.path(),
            faults: faults.iter().map(|f| f.name().to_owned()).collect(),
            what,
        }
    }

    /// Makes it in the set at `root`, unless it is there.
    pub(super) fn make(&self, root: &Path, seed: u64) -> Result<()> {
        let path = root.join(self.path());
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
            Damage::DanglingLink => {
                symlink("nowhere.jpg", &path).or_else(|e| in_the_way(fs::FileType::is_symlink, e))
            }
            Damage::LinkLoop => {
                symlink(LINK_LOOP, &path).or_else(|e| in_the_way(fs::FileType::is_symlink, e))
            }
            damage => {
                let there = regular_file(&path)?;
                if there.is_none_or(|bytes| bytes == 0 && damage != Damage::Empty) {
                    let bytes = damage
                        .bytes(seed)
                        .map_err(|e| Error::io_at("encode", &path, e))?;
                    write_whole(&path, &bytes)?;
                }
                // Also when a killed call wrote it and came no further.
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
    /// The content of those that are regular files.
    fn bytes(self, seed: u64) -> io::Result<Vec<u8>> {
        const TEXT: &[u8] = b"This is not a picture, whatever its name says.\n";
        let jpeg = || picture(seed, Coding::Jpeg(Jpeg::Baseline(Chroma::Quarter)));
        let png = || picture(seed, Coding::Png(Png::Rgb));
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
            Self::CutWebP => half(picture(seed, Coding::Lossless(Lossless::WebP))?),
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

fn picture(seed: u64, coding: Coding) -> io::Result<Vec<u8>> {
    let key = hash(seed, 3);
    let pixels = scene::paint(WIDTH.into(), HEIGHT.into(), key, key);
    coding.encode(WIDTH, HEIGHT, pixels, 90)
}

#[cfg(test)]
mod tests;
