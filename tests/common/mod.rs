//! Data sets that are made on the spot, rows to compare, processes to find.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod command;
pub mod cuda;
pub mod harness;
pub mod hunt;
pub mod processes;
pub mod rows;
pub mod scene;
pub mod standin;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use featherload::{LaunchMethod, Loader, LoaderBuilder, Source};
use jpeg_encoder::{ColorType, Encoder};

/// The command line, which is the helper too.
pub const FEATHERLOAD: &str = env!(
    "CARGO_BIN_EXE_featherload",
    "tests need the executable: give --features cli"
);

/// The same numbers every time (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// The coded data of the only scan of a JPEG, without stuffed zeros and restart markers.
pub fn coded(file: &[u8]) -> Vec<u8> {
    let scan = file.windows(2).position(|m| m == [0xFF, 0xDA]).unwrap();
    let header = usize::from(u16::from_be_bytes([file[scan + 2], file[scan + 3]]));
    let mut bytes = file[scan + 2 + header..].iter();
    let mut out = Vec::new();
    while let Some(&byte) = bytes.next() {
        if byte != 0xFF {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(0) => out.push(0xFF),
            Some(0xD0..=0xD7) => {}
            _ => break,
        }
    }
    out
}

/// What a picture is made of.
#[derive(Clone, Copy)]
pub struct Picture {
    pub width: u16,
    pub height: u16,
    pub seed: u64,
    pub quality: u8,
    pub grey: bool,
    pub progressive: bool,
}

impl Picture {
    pub fn rgb(width: u16, height: u16, seed: u64) -> Self {
        Self {
            width,
            height,
            seed,
            quality: 85,
            grey: false,
            progressive: false,
        }
    }

    /// Slopes with noise on them: every pixel differs from its neighbours, so
    /// a flip or a shift changes the bytes.
    pub fn encode(self) -> Vec<u8> {
        let mut random = Random(self.seed);
        let channels = if self.grey { 1 } else { 3 };
        let (w, h) = (usize::from(self.width), usize::from(self.height));
        let mut pixels = Vec::with_capacity(w * h * channels);
        let tint = random.next().to_le_bytes();
        for y in 0..h {
            for x in 0..w {
                let noise = random.next().to_le_bytes();
                for c in 0..channels {
                    let slope = (x * 160 / w + y * 60 / h) as u8;
                    pixels.push(slope.wrapping_add(tint[c] / 8).wrapping_add(noise[c] / 16));
                }
            }
        }
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out, self.quality);
        encoder.set_progressive(self.progressive);
        let color = if self.grey {
            ColorType::Luma
        } else {
            ColorType::Rgb
        };
        encoder
            .encode(&pixels, self.width, self.height, color)
            .unwrap();
        out
    }
}

/// A file as `numpy.save` writes an array of `u8` of this shape: noise.
pub fn npy(shape: &str, seed: u64) -> Vec<u8> {
    let sides = shape.trim_matches(['(', ')']).split(',');
    let count: usize = sides.map(|s| s.trim().parse::<usize>().unwrap()).product();
    let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = [b"\x93NUMPY\x01\0\x76\0", text.as_bytes()].concat();
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    let mut random = Random(seed);
    bytes.extend((0..count).map(|_| random.next() as u8));
    bytes
}

/// A picture that takes a worker a while: noise at high quality.
pub fn slow_picture(seed: u64) -> Vec<u8> {
    noise(3200, seed)
}

/// A picture that takes a worker about 6 s of its own time, at any scale (with
/// libjpeg-turbo 3.1.0 on a slow core): a small progressive JPEG of as many scans
/// as are let through, each of which walks 350 MB of coefficients.
pub fn endless_picture() -> Vec<u8> {
    const SIDE: u16 = 13_300;
    const SCANS: usize = 100;
    let blocks = usize::from(SIDE).div_ceil(8).pow(2);
    let segment = |out: &mut Vec<u8>, marker: u8, content: &[u8]| {
        out.extend([0xff, marker]);
        out.extend((content.len() as u16 + 2).to_be_bytes());
        out.extend(content);
    };
    let mut out = vec![0xff, 0xd8];
    segment(&mut out, 0xdb, &[&[0][..], &[1; 64]].concat());
    let [high, low] = SIDE.to_be_bytes();
    segment(&mut out, 0xc2, &[8, high, low, high, low, 1, 1, 0x11, 0]);
    // One code in each table, the bit 0: a DC difference of 0, and a run of
    // 2^14 blocks and more, as 14 further bits say, without a coefficient.
    for (table, symbol) in [(0x00, 0), (0x10, 0xe0)] {
        let lengths = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        segment(
            &mut out,
            0xc4,
            &[&[table][..], &lengths, &[symbol]].concat(),
        );
    }
    segment(&mut out, 0xda, &[1, 1, 0, 0, 0, 0]);
    out.extend(vec![0; blocks.div_ceil(8)]);
    // Bands of two frequencies, the last of one, bit by bit.
    let run = vec![0; blocks.div_ceil(1 << 14) * 15 / 8 + 1];
    let bands = (1..=63u8).step_by(2);
    let bits = bands.flat_map(|first| (0..14u8).rev().map(move |low| (first, low)));
    for (first, low) in bits.take(SCANS - 1) {
        let high = if low == 13 { 0 } else { low + 1 };
        let last = (first + 1).min(63);
        segment(&mut out, 0xda, &[1, 1, 0, first, last, high << 4 | low]);
        out.extend(&run);
    }
    out.extend([0xff, 0xd9]);
    out
}

/// A square of grey noise.
fn noise(side: u16, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let pixels: Vec<u8> = (0..usize::from(side) * usize::from(side) / 8)
        .flat_map(|_| random.next().to_le_bytes())
        .collect();
    let mut out = Vec::new();
    Encoder::new(&mut out, 95)
        .encode(&pixels, side, side, ColorType::Luma)
        .unwrap();
    out
}

/// `classes` folders with `each` pictures of mixed sizes and kinds.
pub fn class_folder(root: &Path, classes: u64, each: u64) -> PathBuf {
    let mut random = Random(7);
    for class in 0..classes {
        let folder = root.join(format!("class{class}"));
        fs::create_dir_all(&folder).unwrap();
        for i in 0..each {
            let picture = Picture {
                width: 80 + random.below(240) as u16,
                height: 80 + random.below(240) as u16,
                seed: random.next(),
                quality: 60 + random.below(35) as u8,
                grey: random.below(8) == 0,
                progressive: random.below(6) == 0,
            };
            fs::write(folder.join(format!("{i:03}.jpg")), picture.encode()).unwrap();
        }
    }
    root.to_owned()
}

/// A temporary data set of `classes * each` pictures.
pub fn data(classes: u64, each: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    class_folder(dir.path(), classes, each);
    dir
}

/// A flat folder of this number of JPEGs, `000.jpg` first. `size`: height and width of each.
pub fn sized_folder(images: u64, size: impl Fn(u64) -> (u16, u16)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..images {
        let (height, width) = size(i);
        let picture = Picture::rgb(width, height, i).encode();
        fs::write(dir.path().join(format!("{i:03}.jpg")), picture).unwrap();
    }
    dir
}

/// A loader over `dir`, by workers that the built executable starts.
pub fn builder(dir: &Path) -> LoaderBuilder {
    Loader::builder(Source::detect(dir).unwrap())
        .helper(FEATHERLOAD)
        .launch(LaunchMethod::Exec)
        .batch_size(8)
        .seed(11)
}

/// The folder of shared photos. None, said aloud, when nobody said where it is
/// and it is not in its usual place; a wrong `FEATHERLOAD_DATA` is an error.
pub fn photos(test: &str) -> Option<PathBuf> {
    let setting = std::env::var_os("FEATHERLOAD_DATA");
    let root = setting
        .as_ref()
        .map_or("../shared/data".as_ref(), Path::new);
    let photos = root.join("photos");
    if photos.is_dir() {
        return Some(photos);
    }
    assert!(
        setting.is_none(),
        "{test}: FEATHERLOAD_DATA is {}, which has no folder photos",
        root.display()
    );
    // Not by `eprintln`, which the harness catches.
    let mut err = std::io::stderr();
    writeln!(
        err,
        "SKIP: {test}: no {} (FEATHERLOAD_DATA names the folder that holds photos)",
        photos.display()
    )
    .unwrap();
    None
}
