//! The JPEG decoder beside libjpeg-turbo, in turns in one process: equality and rates of crops
//! and whole pictures, for each form of the decoder. `scripts/compare_jpeg FOLDER` runs it.
//!
//! Prints rates by sampling and by size of crop: the least time of each picture counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use featherload::tests_support::JpegForms;
use turbojpeg_sys as tj;

/// Crops of each picture.
const CROPS: u32 = 2;

/// A window of a picture: x, y, width, height.
type Window = [u32; 4];

/// Seconds and number of decodes: libjpeg-turbo's, and those of each form.
#[derive(Default)]
struct Row {
    windows: u32,
    theirs: f64,
    ours: BTreeMap<&'static str, f64>,
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let (Some(folder), rounds) = (args.next(), args.next()) else {
        eprintln!("jpeg: name a folder of JPEG files (scripts/compare_jpeg FOLDER [ROUNDS])");
        std::process::exit(2);
    };
    let rounds = rounds.map_or(5, |rounds| rounds.parse().expect("a number of rounds"));
    let mut forms = JpegForms::new(1 << 28, 1 << 30);
    let (mut rows, mut unequal) = (BTreeMap::<String, Row>::new(), 0);
    let mut random = Random(7);
    for jpeg in files(Path::new(&folder)) {
        let Some((size, sampling)) = header(&jpeg) else {
            continue;
        };
        let mut windows = vec![[0, 0, size.0, size.1]];
        windows.extend((0..CROPS).map(|_| random.crop(size)));
        for window in windows {
            let (theirs, ours, equal) = compare(&mut forms, &jpeg, size, window, rounds);
            unequal += u32::from(!equal);
            let share = f64::from(window[2]) * f64::from(window[3])
                / (f64::from(size.0) * f64::from(size.1));
            let (kind, part) = match share {
                1.0 => ("whole", "whole"),
                ..0.2 => ("crop", "crop, up to 20%"),
                ..0.4 => ("crop", "crop, up to 40%"),
                ..0.7 => ("crop", "crop, up to 70%"),
                _ => ("crop", "crop, over 70%"),
            };
            for name in [
                part.to_owned(),
                format!("{kind}, {sampling}"),
                format!("{kind}, all"),
            ] {
                if name == "whole" {
                    continue;
                }
                let row = rows.entry(name).or_default();
                row.windows += 1;
                row.theirs += theirs;
                for (form, seconds) in &ours {
                    *row.ours.entry(form).or_default() += seconds;
                }
            }
        }
    }
    println!("| part | windows | libjpeg-turbo /s | form | ours /s | ratio |");
    println!("|---|---|---|---|---|---|");
    for (name, row) in &rows {
        for (form, seconds) in &row.ours {
            let windows = f64::from(row.windows);
            println!(
                "| {name} | {windows} | {:.0} | {form} | {:.0} | {:.2} |",
                windows / row.theirs,
                windows / seconds,
                row.theirs / seconds
            );
        }
    }
    println!("{unequal} windows differ");
    std::process::exit(i32::from(unequal > 0));
}

/// Least seconds of libjpeg-turbo and of each form, and whether all pixels are equal.
fn compare(
    forms: &mut JpegForms,
    jpeg: &[u8],
    size: (u32, u32),
    window: Window,
    rounds: u32,
) -> (f64, BTreeMap<&'static str, f64>, bool) {
    let (mut theirs, mut ours, mut equal) = (f64::MAX, BTreeMap::new(), true);
    let region = cropping(jpeg, size, window);
    let mut pixels = Vec::new();
    for round in 0..rounds {
        let start = Instant::now();
        equal &= decode(jpeg, region, &mut pixels);
        theirs = theirs.min(start.elapsed().as_secs_f64());
        for (name, seconds) in forms.seconds(jpeg, window) {
            let least = ours.entry(name).or_insert(f64::MAX);
            *least = least.min(seconds);
        }
        if round == 0 {
            for (_, mine) in forms.decode(jpeg, 1, window) {
                equal &= mine.is_ok_and(|mine| is_same(&mine, window, &pixels, region));
            }
        }
    }
    (theirs, ours, equal)
}

/// Whether the pixels of `window` are those inside of `region`.
fn is_same(mine: &[u8], [x, y, w, _]: Window, theirs: &[u8], region: Window) -> bool {
    let mut rows = mine.chunks_exact(3 * w as usize).enumerate();
    rows.all(|(number, row)| {
        let line = (y - region[1]) as usize + number;
        let start = 3 * (line * region[2] as usize + (x - region[0]) as usize);
        theirs[start..].starts_with(row)
    })
}

fn files(folder: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let files = paths.iter().filter(|path| path.is_file());
    files
        .map(|path| std::fs::read(path).expect("a file"))
        .collect()
}

/// Numbers at random (SplitMix64).
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// As torchvision's RandomResizedCrop chooses: 8% to 100% of the area, 3:4 to 4:3.
    fn crop(&mut self, (width, height): (u32, u32)) -> Window {
        for _ in 0..10 {
            let area = f64::from(width) * f64::from(height) * (0.08 + 0.92 * self.unit());
            let ratio = (0.75f64.ln() * (1.0 - 2.0 * self.unit())).exp();
            let (w, h) = ((area * ratio).sqrt().round(), (area / ratio).sqrt().round());
            let (w, h) = (w as u32, h as u32);
            if w > 0 && h > 0 && w <= width && h <= height {
                let mut at = |room: u32| (self.unit() * f64::from(room + 1)) as u32;
                return [at(width - w), at(height - h), w, h];
            }
        }
        [0, 0, width, height]
    }
}

/// A decompressor that ends with its scope.
struct Handle(tj::tjhandle);

impl Handle {
    fn new(jpeg: &[u8]) -> Option<Self> {
        // SAFETY: takes no pointer; a null is caught on the next line.
        let handle = Self(unsafe { tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS as i32) });
        assert!(!handle.0.is_null(), "no memory for libjpeg-turbo");
        // SAFETY: the handle is live, and the library reads no more than `jpeg.len()` bytes.
        let rc = unsafe { tj::tj3DecompressHeader(handle.0, jpeg.as_ptr(), jpeg.len() as _) };
        (rc == 0).then_some(handle)
    }

    fn get(&self, parameter: u32) -> i32 {
        // SAFETY: the handle is live.
        unsafe { tj::tj3Get(self.0, parameter as i32) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and nothing uses it afterwards.
        unsafe { tj::tj3Destroy(self.0) };
    }
}

/// Width and height, and the sampling's name; none for what is no JPEG of RGB or grey pixels.
fn header(jpeg: &[u8]) -> Option<((u32, u32), &'static str)> {
    let handle = Handle::new(jpeg)?;
    let inks = [tj::TJCS_TJCS_CMYK, tj::TJCS_TJCS_YCCK].map(|space| space as i32);
    if inks.contains(&handle.get(tj::TJPARAM_TJPARAM_COLORSPACE)) {
        return None;
    }
    let sampling = match handle.get(tj::TJPARAM_TJPARAM_SUBSAMP) {
        tj::TJSAMP_TJSAMP_444 => "4:4:4",
        tj::TJSAMP_TJSAMP_422 => "4:2:2",
        tj::TJSAMP_TJSAMP_420 => "4:2:0",
        tj::TJSAMP_TJSAMP_GRAY => "grey",
        _ => "other",
    };
    let side = |parameter| handle.get(parameter) as u32;
    let size = (
        side(tj::TJPARAM_TJPARAM_JPEGWIDTH),
        side(tj::TJPARAM_TJPARAM_JPEGHEIGHT),
    );
    Some((size, sampling))
}

/// The region for libjpeg-turbo: from a column of blocks on, and with the pixels beside it that
/// a blend of chroma needs, so that the window's pixels are those of the whole picture.
fn cropping(jpeg: &[u8], (width, _): (u32, u32), [x, y, w, h]: Window) -> Window {
    let handle = Handle::new(jpeg).expect("a header that was read before");
    let (block, blends) = match handle.get(tj::TJPARAM_TJPARAM_SUBSAMP) {
        tj::TJSAMP_TJSAMP_420 | tj::TJSAMP_TJSAMP_422 => (16, true),
        tj::TJSAMP_TJSAMP_411 => (32, false),
        _ => (8, false),
    };
    let mut left = (x - u32::from(blends && x > 0)) / block * block;
    let mut end = x + w;
    if blends {
        end = end.max(width.min(x + 3));
        end += u32::from((end - left).is_multiple_of(2) && end < width);
    }
    while end - left < 3 && left > 0 {
        left -= block.min(left);
    }
    [left, y, end - left, h]
}

/// As the loader called it: a handle for each decode. False for a file that is refused.
fn decode(jpeg: &[u8], [x, y, w, h]: Window, pixels: &mut Vec<u8>) -> bool {
    let Some(handle) = Handle::new(jpeg) else {
        return false;
    };
    let [x, y, w, h] = [x, y, w, h].map(|number| number as i32);
    let needed = 3 * w as usize * h as usize;
    if pixels.len() < needed {
        pixels.resize(needed, 0);
    }
    // SAFETY: the handle is live, the region's pixels have `needed` bytes of `pixels`, and the
    // library reads no more than `jpeg.len()` bytes.
    unsafe {
        tj::tj3SetCroppingRegion(handle.0, tj::tjregion { x, y, w, h }) == 0
            && tj::tj3Decompress8(
                handle.0,
                jpeg.as_ptr(),
                jpeg.len() as _,
                pixels.as_mut_ptr(),
                3 * w,
                tj::TJPF_TJPF_RGB,
            ) == 0
    }
}
