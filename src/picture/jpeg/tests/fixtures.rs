//! JPEGs made in memory, for tests of this and other folders.

use turbojpeg_sys as tj;

use super::oracle::{Options, compress};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampling {
    S444,
    S422,
    S420,
    S411,
    S440,
    S441,
    Grey,
    /// RGB stored without a colour transform (Adobe marker, transform 0).
    AdobeRgb,
    Cmyk,
    /// YCCK with chroma halved both ways.
    Ycck420,
}

impl Sampling {
    pub(crate) const ALL: [Self; 10] = [
        Self::S444,
        Self::S422,
        Self::S420,
        Self::S411,
        Self::S440,
        Self::S441,
        Self::Grey,
        Self::AdobeRgb,
        Self::Cmyk,
        Self::Ycck420,
    ];

    pub(crate) fn is_cmyk(self) -> bool {
        matches!(self, Self::Cmyk | Self::Ycck420)
    }
}

/// The usual file: quality 90, baseline, no restart markers.
pub(crate) fn jpeg(w: u32, h: u32, sampling: Sampling) -> Vec<u8> {
    encode(w, h, sampling, 90, false, 0)
}

/// Encodes a picture with gradients, edges and noise, the same on every run.
pub(crate) fn encode(
    w: u32,
    h: u32,
    sampling: Sampling,
    quality: i32,
    progressive: bool,
    restart_blocks: i32,
) -> Vec<u8> {
    build(w, h, sampling, quality, progressive, false, restart_blocks)
}

pub(crate) fn encode_arithmetic(w: u32, h: u32, sampling: Sampling, progressive: bool) -> Vec<u8> {
    build(w, h, sampling, 90, progressive, true, 0)
}

fn build(
    w: u32,
    h: u32,
    sampling: Sampling,
    quality: i32,
    progressive: bool,
    arithmetic: bool,
    restart_blocks: i32,
) -> Vec<u8> {
    let (format, channels) = match sampling {
        Sampling::Grey => (tj::TJPF_TJPF_GRAY, 1),
        Sampling::Cmyk | Sampling::Ycck420 => (tj::TJPF_TJPF_CMYK, 4),
        _ => (tj::TJPF_TJPF_RGB, 3),
    };
    let subsampling = match sampling {
        Sampling::S444 | Sampling::AdobeRgb | Sampling::Cmyk => tj::TJSAMP_TJSAMP_444,
        Sampling::S422 => tj::TJSAMP_TJSAMP_422,
        Sampling::S420 | Sampling::Ycck420 => tj::TJSAMP_TJSAMP_420,
        Sampling::S411 => tj::TJSAMP_TJSAMP_411,
        Sampling::S440 => tj::TJSAMP_TJSAMP_440,
        Sampling::S441 => tj::TJSAMP_TJSAMP_441,
        Sampling::Grey => tj::TJSAMP_TJSAMP_GRAY,
    };
    let colorspace = match sampling {
        Sampling::AdobeRgb => Some(tj::TJCS_TJCS_RGB as i32),
        Sampling::Cmyk => Some(tj::TJCS_TJCS_CMYK as i32),
        Sampling::Ycck420 => Some(tj::TJCS_TJCS_YCCK as i32),
        _ => None,
    };
    let options = Options {
        format,
        colorspace,
        subsampling,
        quality,
        progressive,
        arithmetic,
        restart_blocks,
    };
    compress(&pattern(w, h, channels), w, h, &options)
}

/// A file of a grey picture of 16 x 16 pixels with `scans` scans, 1 to 200: progressive ones, or
/// repeated ones of a sequential file of three components.
pub(crate) fn many_scans(scans: usize, progressive: bool) -> Vec<u8> {
    let mut out = vec![0xff, 0xd8];
    let mut segment = |marker: u8, content: &[u8], data: &[u8]| {
        out.extend([0xff, marker]);
        out.extend((content.len() as u16 + 2).to_be_bytes());
        out.extend(content);
        out.extend(data);
    };
    segment(0xdb, &[&[0][..], &[1; 64]].concat(), &[]);
    let components = [1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0];
    let (marker, components) = match progressive {
        true => (0xc2, &components[..3]),
        false => (0xc0, &components[..]),
    };
    let count = components.len() as u8 / 3;
    segment(
        marker,
        &[&[8, 0, 16, 0, 16, count], components].concat(),
        &[],
    );
    // One code in each table, the bit 0. In AC tables it ends a block, or a run of many.
    let ac = if progressive { 0xe0 } else { 0 };
    for (table, symbol) in [(0x00, 0), (0x10, ac)] {
        let lengths = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        segment(0xc4, &[&[table][..], &lengths, &[symbol]].concat(), &[]);
    }
    for scan in 0..scans {
        match progressive {
            true if scan == 0 => segment(0xda, &[1, 1, 0, 0, 0, 0], &[0]),
            // Bit by bit, one group of frequencies after the other.
            true => {
                let (band, bit) = ((scan - 1) / 14, 13 - (scan - 1) % 14);
                let (first, low) = (1 + 4 * band as u8, bit as u8);
                let high = if low == 13 { 0 } else { low + 1 };
                let bits = high << 4 | low;
                segment(0xda, &[1, 1, 0, first, first + 3, bits], &[0, 0]);
            }
            false => segment(0xda, &[1, 1 + (scan % 3) as u8, 0, 0, 63, 0], &[0]),
        }
    }
    out.extend([0xff, 0xd9]);
    out
}

/// A file whose scans have one component each. Each component is encoded as a grey picture of its
/// size, with quantization and Huffman tables of its own. `factors` has one entry per component, as
/// in the frame header. The scans are ordered by component.
pub(crate) fn one_component_scans(
    (w, h): (u32, u32),
    factors: &[u8],
    quality: i32,
    progressive: bool,
    restart_blocks: i32,
) -> Vec<u8> {
    let largest = |shift: u32| factors.iter().map(|f| u32::from(f >> shift & 15)).max();
    let (h_max, v_max) = (largest(4).unwrap(), largest(0).unwrap());
    let mut out = vec![0xff, 0xd8];
    let mut frame = Vec::new();
    let (mut tables, mut scans) = (Vec::new(), Vec::new());
    for (number, factor) in factors.iter().enumerate() {
        let number = number as u8;
        let width = (w * u32::from(factor >> 4)).div_ceil(h_max);
        let height = (h * u32::from(factor & 15)).div_ceil(v_max);
        let grey = encode(
            width,
            height,
            Sampling::Grey,
            quality,
            progressive,
            restart_blocks,
        );
        frame.extend([number + 1, *factor, number]);
        let mut at = 2;
        while grey[at + 1] != 0xd9 {
            let length = usize::from(u16::from_be_bytes([grey[at + 2], grey[at + 3]])) + 2;
            let mut segment = grey[at..at + length].to_vec();
            at += length;
            match segment[1] {
                0xdb => {
                    segment[4] |= number;
                    tables.extend(segment);
                }
                0xc4 => {
                    segment[4] |= number;
                    scans.extend(segment);
                }
                0xda => {
                    (segment[5], segment[6]) = (number + 1, number << 4 | number);
                    scans.extend(segment);
                    let data = grey[at..].windows(2);
                    let is_end = |m: &[u8]| m[0] == 0xff && !matches!(m[1], 0 | 0xd0..=0xd7);
                    let length = data.take_while(|&m| !is_end(m)).count();
                    scans.extend(&grey[at..at + length]);
                    at += length;
                }
                0xdd => scans.extend(segment),
                _ => {}
            }
        }
    }
    out.extend(tables);
    out.extend([0xff, if progressive { 0xc2 } else { 0xc1 }]);
    out.extend((frame.len() as u16 + 8).to_be_bytes());
    let side = |n: u32| (n as u16).to_be_bytes();
    out.extend([&[8][..], &side(h), &side(w), &[factors.len() as u8], &frame].concat());
    out.extend(scans);
    out.extend([0xff, 0xd9]);
    out
}

/// A JPEG with this EXIF orientation, 1 to 8, before its other segments.
pub(crate) fn turned(mut jpeg: Vec<u8>, orientation: u8) -> Vec<u8> {
    let tiff = [
        b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0",
        &[orientation, 0, 0, 0, 0, 0, 0, 0][..],
    ]
    .concat();
    let length = (tiff.len() as u16 + 2).to_be_bytes();
    let marker = [&[0xff, 0xe1], &length[..], &tiff].concat();
    jpeg.splice(2..2, marker);
    jpeg
}

/// Gradients, slanted edges and noise, different in every channel.
pub(crate) fn pattern(w: u32, h: u32, channels: u32) -> Vec<u8> {
    let mut noise = Random::new(u64::from(w) << 32 | u64::from(h));
    let mut pixels = Vec::with_capacity((w * h * channels) as usize);
    for y in 0..h {
        for x in 0..w {
            for c in 0..channels {
                let ramp = (x * (3 + c) + y * (5 - c)) % 256;
                let edge = if (x + y * (c + 1)) / 11 % 2 == 0 {
                    70
                } else {
                    0
                };
                let grain = noise.below(48) as u32;
                pixels.push((ramp / 2 + edge + grain).min(255) as u8);
            }
        }
    }
    pixels
}

/// Repeatable numbers (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn in_range(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(u64::from(high - low + 1)) as u32
    }
}

/// All photos of the shared data folder, or none if it is absent.
pub(crate) fn photos() -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let data = std::env::var("FEATHERLOAD_DATA").unwrap_or_else(|_| "../shared/data".into());
    let root = std::path::Path::new(&data).join("photos");
    let mut files = Vec::new();
    let folders = std::fs::read_dir(&root).into_iter().flatten().flatten();
    for folder in folders.map(|e| e.path()).filter(|p| p.is_dir()) {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            files.push(entry.path());
        }
    }
    if files.is_empty() {
        eprintln!("SKIP: no photos under {}", root.display());
    }
    files.sort();
    files
        .into_iter()
        .map(|p| {
            let bytes = std::fs::read(&p).unwrap();
            (p, bytes)
        })
        .collect()
}
