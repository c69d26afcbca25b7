//! Rows of their own sizes: a recipe without resize and crop hands over every
//! picture as large as it is, packed into slots that a header scan has measured.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Duration;

use featherload::f16;
use featherload::internals::DrillBuilder;
use featherload::recipe::{
    AlphaMode, Decode, Normalize, Op, OrientationMode, RandomHorizontalFlip, RandomResizedCrop,
    Span,
};
use featherload::tests_support::unpack_goldens;
use featherload::{
    Batch, BatchLabels, DataType, DecodeMode, EpochTail, FaultKind, Loader, LoaderBuilder,
    MemoryLayout, OnError, Recipe, RowDescriptor, RowStatus, Source, State,
};
use image::{ImageFormat, RgbImage};
use nix::sys::signal::Signal;

use crate::common::processes::{send, wait_for};
use crate::common::rows::assert_same;
use crate::common::{FEATHERLOAD, Picture, Random, builder};

/// A picture as it is to be looked at.
#[derive(Clone)]
struct Pixels {
    height: usize,
    width: usize,
    rgb: Vec<u8>,
}

impl Pixels {
    fn random(height: usize, width: usize, random: &mut Random) -> Self {
        let rgb = (0..height * width * 3)
            .map(|_| random.next() as u8)
            .collect();
        Self { height, width, rgb }
    }

    /// As a file of a format that keeps every pixel.
    fn encoded(&self, format: ImageFormat) -> Vec<u8> {
        let (width, height) = (self.width as u32, self.height as u32);
        let image = RgbImage::from_raw(width, height, self.rgb.clone()).unwrap();
        let mut out = Cursor::new(Vec::new());
        image.write_to(&mut out, format).unwrap();
        out.into_inner()
    }

    fn png(&self) -> Vec<u8> {
        self.encoded(ImageFormat::Png)
    }

    fn at(&self, y: usize, x: usize) -> [u8; 3] {
        let at = 3 * (y * self.width + x);
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// What EXIF says of a stored picture with this tag: where the pixel of the
    /// upright picture at (y, x) is stored.
    fn upright(&self, tag: u8) -> Self {
        let (h, w) = (self.height, self.width);
        let (height, width) = if tag >= 5 { (w, h) } else { (h, w) };
        let mut rgb = Vec::with_capacity(self.rgb.len());
        for y in 0..height {
            for x in 0..width {
                let (sy, sx) = match tag {
                    1 => (y, x),
                    2 => (y, w - 1 - x),
                    3 => (h - 1 - y, w - 1 - x),
                    4 => (h - 1 - y, x),
                    5 => (x, y),
                    6 => (h - 1 - x, y),
                    7 => (h - 1 - x, w - 1 - y),
                    8 => (x, w - 1 - y),
                    _ => panic!("no tag {tag}"),
                };
                rgb.extend(self.at(sy, sx));
            }
        }
        Self { height, width, rgb }
    }

    fn mirrored(&self) -> Self {
        self.upright(2)
    }
}

/// The same JPEG with an EXIF block that holds nothing but the orientation.
pub fn with_orientation(jpeg: &[u8], tag: u8) -> Vec<u8> {
    let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([tag, 0, 0, 0, 0, 0, 0, 0]);
    let mut out = jpeg[..2].to_vec();
    out.extend([0xff, 0xe1]);
    out.extend((exif.len() as u16 + 2).to_be_bytes());
    out.extend(exif);
    out.extend(&jpeg[2..]);
    out
}

/// The same JPEG with other numbers in its frame header.
fn with_claimed_size(jpeg: &[u8], height: u16, width: u16) -> Vec<u8> {
    let mut out = jpeg.to_vec();
    let frame = out
        .windows(2)
        .position(|w| w == [0xff, 0xc0])
        .expect("a baseline frame header");
    out[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    out[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    out
}

/// Decoded by the path of fixed sizes, which is compared with other decoders
/// elsewhere: a random crop that has no choice but the whole picture.
fn decoded(jpeg: &[u8], height: u32, width: u32) -> Pixels {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("one.jpg"), jpeg).unwrap();
    let shape = f64::from(width) / f64::from(height);
    let recipe = Recipe::new("whole")
        .then(RandomResizedCrop {
            scale: Span(1.0, 1.0),
            ratio: Span(shape, shape),
            ..RandomResizedCrop::new((height, width))
        })
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc);
    let mut loader = builder(dir.path())
        .num_workers(0)
        .recipe(recipe.with_decode(DecodeMode::Full))
        .build()
        .unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    Pixels {
        height: height as usize,
        width: width as usize,
        rgb: batch.pixels().unwrap().as_slice::<u8>().unwrap().to_vec(),
    }
}

/// What each file of a folder holds.
type Truth = BTreeMap<PathBuf, Pixels>;

/// Pictures of many sizes, from one pixel on, in several formats and all
/// orientations.
fn mixed(dir: &Path) -> Truth {
    mixed_read_as(dir, OrientationMode::Exif)
}

fn mixed_read_as(dir: &Path, upright: OrientationMode) -> Truth {
    let mut truth = Truth::new();
    let mut random = Random(5);
    let mut sizes = vec![(1, 1), (1, 97), (61, 1), (2, 3), (64, 64), (130, 40)];
    for _ in 0..18 {
        sizes.push((1 + random.below(90) as usize, 1 + random.below(90) as usize));
    }
    for (i, (height, width)) in sizes.into_iter().enumerate() {
        let pixels = Pixels::random(height, width, &mut random);
        // A name says nothing about the content.
        let path = dir.join(format!(
            "p{i:02}.{}",
            if i % 2 == 0 { "png" } else { "jpg" }
        ));
        let formats = [
            ImageFormat::Png,
            ImageFormat::Bmp,
            ImageFormat::WebP,
            ImageFormat::Tiff,
            ImageFormat::Qoi,
        ];
        fs::write(&path, pixels.encoded(formats[i % formats.len()])).unwrap();
        truth.insert(path, pixels);
    }
    for tag in 1..=8u8 {
        let (height, width) = (20 + 7 * u16::from(tag), 50 - 3 * u16::from(tag));
        let jpeg = Picture {
            progressive: tag % 3 == 0,
            grey: tag == 5,
            ..Picture::rgb(width, height, u64::from(tag))
        }
        .encode();
        let stored = decoded(&jpeg, height.into(), width.into());
        let path = dir.join(format!("exif{tag}.jpg"));
        fs::write(&path, with_orientation(&jpeg, tag)).unwrap();
        let seen = match upright {
            OrientationMode::Exif => stored.upright(tag),
            OrientationMode::Stored => stored,
        };
        truth.insert(path, seen);
    }
    truth
}

fn full(dir: &Path) -> LoaderBuilder {
    builder(dir).recipe(Recipe::full())
}

/// Every row of a batch against the pictures, and its bytes against the table.
fn check_batch(batch: &Batch, loader: &featherload::Index, truth: &Truth) {
    let table = batch.descriptors().unwrap();
    let packed = batch.pixels().unwrap().bytes();
    assert_eq!(table.len(), batch.len());
    for (row, d) in table.iter().enumerate() {
        let want = &truth[&loader.path(batch.ids()[row])];
        let size = (want.height, want.width);
        let name = loader.path(batch.ids()[row]);
        assert_eq!(batch.row(row).unwrap().size(), size, "{}", name.display());
        assert_eq!(batch.row(row).unwrap().shape(), [size.0, size.1, 3]);
        assert!(
            batch.row(row).unwrap().as_slice::<u8>().unwrap() == want.rgb,
            "{}",
            name.display()
        );
        assert_eq!(d.offset % 64, 0);
        assert_eq!(d.flags, 0);
        let bytes = &packed[d.offset as usize..(d.offset + d.bytes) as usize];
        assert!(bytes == want.rgb);
        let own: &RowDescriptor =
            bytemuck::from_bytes(&packed[row * RowDescriptor::BYTES..][..RowDescriptor::BYTES]);
        assert_eq!(own, d, "what was written is what is said");
    }
}

#[test]
fn rows_are_the_pictures_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let truth = mixed(dir.path());
    for workers in [0, 2] {
        let mut loader = full(dir.path()).num_workers(workers).build().unwrap();
        let index = Source::detect(dir.path()).unwrap().open().unwrap().0;
        let mut rows = 0;
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            check_batch(&batch, &index, &truth);
            rows += batch.len();
            assert_eq!(batch.labels(), &BatchLabels::Classes(vec![-1; batch.len()]));
            for refused in [
                batch.shape().map(|_| ()),
                batch.pixels().unwrap().dense().map(|_| ()),
                batch.pixels().unwrap().as_slice::<u8>().map(|_| ()),
                batch.row(0).unwrap().as_slice::<f32>().map(|_| ()),
                batch.row(batch.len()).map(|_| ()),
            ] {
                assert!(refused.unwrap_err().is_usage());
            }
        }
        assert_eq!(rows, truth.len());
    }
}

#[test]
fn stored_rows_are_the_pictures_as_their_files_have_them() {
    let dir = tempfile::tempdir().unwrap();
    let truth = mixed_read_as(dir.path(), OrientationMode::Stored);
    let recipe = Recipe::full().with_orientation(OrientationMode::Stored);
    let loader = |workers| {
        let loader = builder(dir.path()).recipe(recipe.clone());
        loader.num_workers(workers)
    };
    for workers in [0, 2] {
        let index = Source::detect(dir.path()).unwrap().open().unwrap().0;
        let mut rows = 0;
        for batch in loader(workers).build().unwrap().epoch() {
            let batch = batch.unwrap();
            check_batch(&batch, &index, &truth);
            rows += batch.len();
        }
        assert_eq!(rows, truth.len());
    }
    // The forecast says the same sizes.
    let tall = |p: &Pixels| p.height > p.width;
    let flat = |recipe: Recipe| {
        let only = tempfile::tempdir().unwrap();
        fs::copy(dir.path().join("exif6.jpg"), only.path().join("a.jpg")).unwrap();
        let forecast = builder(only.path())
            .recipe(recipe)
            .num_workers(1)
            .memory_plan(1);
        let largest = forecast.unwrap().largest.unwrap();
        (largest.height as usize, largest.width as usize)
    };
    let stored = &truth[&dir.path().join("exif6.jpg")];
    assert!(tall(stored));
    assert_eq!(flat(recipe.clone()), (stored.height, stored.width));
    assert_eq!(flat(Recipe::full()), (stored.width, stored.height));
}

/// Against Pillow: files and colours are those of `scripts/op_goldens/alpha.py`.
#[test]
fn dropped_alpha_leaves_the_colours_that_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let goldens = folder.path();
    unpack_goldens("alpha", goldens).unwrap();
    #[derive(serde::Deserialize)]
    struct Expected {
        height: usize,
        width: usize,
        rgb: Vec<u8>,
    }
    let text = fs::read_to_string(goldens.join("expected.json")).unwrap();
    let expected: BTreeMap<String, Expected> = serde_json::from_str(&text).unwrap();
    let truth: Truth = expected
        .into_iter()
        .map(|(name, Expected { height, width, rgb })| {
            let pixels = Pixels { height, width, rgb };
            (goldens.join("in").join(name), pixels)
        })
        .collect();
    let index = Source::detect(goldens.join("in"))
        .unwrap()
        .open()
        .unwrap()
        .0;
    let dropped = Decode {
        alpha: AlphaMode::Drop,
        ..Decode::default()
    };
    let recipe = |decode: Decode| {
        let full = Recipe::full();
        let ops = full
            .ops
            .into_iter()
            .filter(|op| !matches!(op, Op::Decode(_)));
        Recipe {
            ops: std::iter::once(decode.into()).chain(ops).collect(),
            ..Recipe::new("drop")
        }
    };
    let mut rows = 0;
    let load = |decode| {
        builder(&goldens.join("in"))
            .recipe(recipe(decode))
            .num_workers(0)
    };
    for batch in load(dropped).build().unwrap().epoch() {
        let batch = batch.unwrap();
        check_batch(&batch, &index, &truth);
        rows += batch.len();
    }
    assert_eq!(rows, truth.len());
    // Composited, every one of them is another.
    for batch in load(Decode::default()).build().unwrap().epoch() {
        let batch = batch.unwrap();
        for (row, id) in batch.ids().iter().enumerate() {
            let path = index.path(*id);
            assert!(
                batch.row(row).unwrap().as_slice::<u8>().unwrap() != truth[&path].rgb,
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn batches_of_one_size_have_no_table() {
    let dir = crate::common::data(1, 3);
    let mut loader = builder(dir.path()).num_workers(0).build().unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    assert!(batch.descriptors().is_none());
    assert!(
        batch
            .pixels()
            .unwrap()
            .packed()
            .unwrap_err()
            .to_string()
            .contains("use BatchPixels::dense")
    );
    assert_eq!(batch.row(1).unwrap().shape(), [3, 224, 224]);
    let all = batch.pixels().unwrap().as_slice::<f16>().unwrap();
    let row = 3 * 224 * 224;
    assert_eq!(
        batch.row(1).unwrap().as_slice::<f16>().unwrap(),
        &all[row..2 * row]
    );
}

/// A row with its size.
type SizedRow = ((usize, usize), crate::common::rows::Row);

fn sized(batch: &Batch) -> Vec<SizedRow> {
    let sizes = (0..batch.len()).map(|row| batch.row(row).unwrap().size());
    sizes.zip(crate::common::rows::rows(batch)).collect()
}

fn sized_stream(loader: &mut Loader, until: u64) -> Vec<SizedRow> {
    let mut rows = Vec::new();
    while loader.state().epoch < until {
        for batch in loader.epoch() {
            rows.extend(sized(&batch.unwrap()));
        }
    }
    rows
}

fn assert_same_sized(got: &[SizedRow], want: &[SizedRow], what: &str) {
    let split = |rows: &[SizedRow]| -> (Vec<_>, Vec<_>) { rows.iter().cloned().unzip() };
    let ((sizes, rows), (want_sizes, want_rows)) = (split(got), split(want));
    assert_same(&rows, &want_rows, what);
    assert_eq!(sizes, want_sizes, "{what}");
}

#[test]
fn any_number_of_workers_gives_the_stream_of_none() {
    let dir = tempfile::tempdir().unwrap();
    mixed(dir.path());
    let recipe = Recipe::full().then(RandomHorizontalFlip::default());
    let with = |workers| {
        let loader = builder(dir.path())
            .recipe(recipe.clone())
            .num_workers(workers);
        loader.batch_size(5).build().unwrap()
    };
    let want = sized_stream(&mut with(0), 2);
    for workers in [1, 2, 8] {
        let got = sized_stream(&mut with(workers), 2);
        assert_same_sized(&got, &want, &format!("{workers} workers"));
    }
}

#[test]
fn workers_killed_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    mixed(dir.path());
    let want = sized_stream(&mut full(dir.path()).num_workers(0).build().unwrap(), 6);
    let mut loader = full(dir.path())
        .num_workers(3)
        .depth(2)
        .epochs(6)
        .kill_workers_every(Duration::from_millis(5))
        .build()
        .unwrap();
    let mut random = Random(9);
    let mut got = Vec::new();
    while loader.state().epoch < 6 {
        let mut epoch = loader.epoch();
        while let Some(batch) = epoch.next() {
            got.extend(sized(&batch.unwrap()));
            if random.below(2) == 0 {
                let workers = epoch.report().unwrap().processes.workers;
                if let Some(victim) = workers.first() {
                    send(*victim, Signal::SIGKILL);
                }
            }
        }
    }
    // The coordinator may count a death later than the consumer gets the last batch.
    let died = || (loader.report().unwrap().worker_deaths > 0).then_some(());
    assert!(
        wait_for(Duration::from_secs(20), died).is_some(),
        "no worker died"
    );
    assert_same_sized(&got, &want, "killed");
}

#[test]
fn a_run_goes_on_where_it_stood() {
    let dir = tempfile::tempdir().unwrap();
    mixed(dir.path());
    let want = sized_stream(&mut full(dir.path()).num_workers(0).build().unwrap(), 2);
    let mut first = full(dir.path()).num_workers(2).build().unwrap();
    let mut got = Vec::new();
    let mut epoch = first.epoch();
    for _ in 0..2 {
        got.extend(sized(&epoch.next().unwrap().unwrap()));
    }
    let state = serde_json::to_string(&epoch.state()).unwrap();
    drop(epoch);
    let state: State = serde_json::from_str(&state).unwrap();
    let mut second = full(dir.path())
        .num_workers(1)
        .resume(state.clone())
        .build()
        .unwrap();
    got.extend(sized_stream(&mut second, 2));
    assert_same_sized(&got, &want, "resumed");
    let other = builder(dir.path()).recipe(Recipe::eval224()).resume(state);
    assert!(other.build().unwrap_err().to_string().contains("recipe"));
}

/// With substitutes a row has room for each sample that may stand in it, and
/// shows the one that does.
#[test]
fn substitutes_bring_their_own_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let truth = mixed(dir.path());
    for i in 0..6 {
        fs::write(dir.path().join(format!("k{i}.png")), b"no picture").unwrap();
    }
    let good = Picture::rgb(60, 60, 1).encode();
    let cut = &good[..good.len() - 40];
    fs::write(dir.path().join("m-cut.jpg"), cut).unwrap();
    let index = Source::detect(dir.path()).unwrap().open().unwrap().0;
    let stream = |workers: usize, kill: Option<Duration>| {
        let mut builder = full(dir.path())
            .num_workers(workers)
            .batch_size(5)
            .epochs(3)
            .on_error(OnError::Substitute);
        if let Some(every) = kill {
            builder = builder.kill_workers_every(every);
        }
        let mut loader = builder.build().unwrap();
        let (mut rows, mut substituted) = (Vec::new(), 0);
        while loader.state().epoch < 3 {
            for batch in loader.epoch() {
                let batch = batch.unwrap();
                check_batch(&batch, &index, &truth);
                substituted += batch
                    .status()
                    .iter()
                    .filter(|s| **s == RowStatus::Substituted)
                    .count();
                rows.extend(sized(&batch));
            }
        }
        assert_eq!(substituted, 3 * 7);
        rows
    };
    let want = stream(0, None);
    for (workers, kill) in [(1, None), (3, Some(Duration::from_millis(5)))] {
        let got = stream(workers, kill);
        assert_same_sized(&got, &want, &format!("{workers} workers"));
    }
}

/// Flip, normalise, cast and layout on rows of their own sizes, element by
/// element.
#[test]
fn other_operations_combine_with_own_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let truth = mixed(dir.path());
    let (mean, std) = ([0.4, 0.5, 0.6], [0.2, 0.3, 0.25]);
    let recipe = Recipe::new("floats")
        .then(RandomHorizontalFlip { p: 1.0 })
        .then(Normalize::new(mean, std))
        .with_dtype(DataType::F32)
        .with_layout(MemoryLayout::Nchw);
    let mut loader = builder(dir.path())
        .recipe(recipe)
        .num_workers(2)
        .build()
        .unwrap();
    let index = Source::detect(dir.path()).unwrap().open().unwrap().0;
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        for row in 0..batch.len() {
            let want = truth[&index.path(batch.ids()[row])].mirrored();
            let (h, w) = (want.height, want.width);
            assert_eq!(batch.row(row).unwrap().shape(), [3, h, w]);
            let got = batch.row(row).unwrap().as_slice::<f32>().unwrap();
            for y in 0..h {
                for x in 0..w {
                    for (c, v) in want.at(y, x).into_iter().enumerate() {
                        let v = (f32::from(v) / 255.0 - mean[c]) / std[c];
                        assert_eq!(got[(c * h + y) * w + x], v);
                    }
                }
            }
        }
    }
}

/// A slot holds the largest pictures in one batch, and hardly more.
#[test]
fn a_batch_of_the_largest_fits_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    let mut truth = Truth::new();
    for i in 0..6 {
        let pixels = Pixels::random(40 + i, 50, &mut random);
        let path = dir.path().join(format!("{i}.png"));
        fs::write(&path, pixels.png()).unwrap();
        truth.insert(path, pixels);
    }
    let rows: u64 = (40..46)
        .map(|h: u64| (h * 50 * 3).next_multiple_of(64))
        .sum();
    for batch in [6, 20] {
        let mut loader = full(dir.path())
            .num_workers(1)
            .depth(1)
            .batch_size(batch)
            .build()
            .unwrap();
        let index = Source::detect(dir.path()).unwrap().open().unwrap().0;
        let mut epoch = loader.epoch();
        let all = epoch.next().unwrap().unwrap();
        check_batch(&all, &index, &truth);
        assert_eq!(all.len(), 6);
        let table = u64::from(batch) * 32;
        let end = all.pixels().unwrap().bytes().len() as u64;
        assert!(end <= table + rows && end + 64 > table + rows, "{end}");
        // Beside it the ring's own words, in whole pages; and a page for each of 64 workers,
        // which no other one can write.
        let ring = epoch.report().unwrap().ring_bytes;
        let workers = 64 * 4096;
        let least = table + rows + workers;
        assert!(ring >= least && ring < least + 8 * 4096, "{ring}");
    }
}

#[test]
fn tails_and_batches_larger_than_the_data_set() {
    let dir = tempfile::tempdir().unwrap();
    let truth = mixed(dir.path());
    let n = truth.len();
    let index = Source::detect(dir.path()).unwrap().open().unwrap().0;
    for workers in [0, 2] {
        for (tail, size, lengths) in [
            (EpochTail::Short, 50, vec![n]),
            (EpochTail::Pad, 50, vec![50]),
            (EpochTail::Pad, 12, vec![12, 12, 12]),
            (EpochTail::Drop, 12, vec![12, 12]),
        ] {
            let mut loader = full(dir.path())
                .num_workers(workers)
                .batch_size(size)
                .tail(tail)
                .build()
                .unwrap();
            let mut left = n;
            let mut seen = Vec::new();
            for batch in loader.epoch() {
                let batch = batch.unwrap();
                seen.push(batch.len());
                for (row, d) in batch.descriptors().unwrap().iter().enumerate() {
                    if batch.status()[row] == RowStatus::Padding {
                        assert_eq!(left, 0);
                        assert!(d.is_masked() && d.bytes == 0);
                        assert_eq!(batch.row(row).unwrap().shape(), [0, 0, 3]);
                        assert_eq!(batch.row(row).unwrap().bytes().unwrap(), b"");
                    } else {
                        left -= 1;
                        let want = &truth[&index.path(batch.ids()[row])];
                        assert!(batch.row(row).unwrap().bytes().unwrap() == want.rgb);
                    }
                }
                // The table has a place for each row of a full batch.
                let unused =
                    batch.len() * RowDescriptor::BYTES..size as usize * RowDescriptor::BYTES;
                assert!(
                    batch.pixels().unwrap().bytes()[unused]
                        .iter()
                        .all(|b| *b == 0)
                );
            }
            assert_eq!(seen, lengths, "{tail:?}");
        }
    }
}

/// A loader of one row a batch over three pictures, the last of which is
/// changed between the header scan and its turn.
fn changed_meanwhile(workers: usize, before: &[u8], after: &[u8]) -> Batch {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(2);
    for name in ["a.png", "b.png"] {
        let png = Pixels::random(30, 20, &mut random).png();
        fs::write(dir.path().join(name), png).unwrap();
    }
    let last = dir.path().join("c.jpg");
    fs::write(&last, before).unwrap();
    let mut loader = full(dir.path())
        .num_workers(workers)
        .depth(1)
        .batch_size(1)
        .shuffle(false)
        .on_error(OnError::Skip)
        .build()
        .unwrap();
    fs::write(dir.path().join("new"), after).unwrap();
    fs::rename(dir.path().join("new"), &last).unwrap();
    let last = loader.epoch().nth(2).unwrap().unwrap();
    drop(loader);
    last
}

#[test]
fn a_file_that_was_replaced_after_the_scan_fails_or_is_another_row() {
    let mut random = Random(3);
    let (a, b) = (
        Pixels::random(25, 31, &mut random),
        Pixels::random(25, 31, &mut random),
    );
    let turned = Pixels::random(31, 25, &mut random);
    for workers in [0, 1] {
        let same_size = changed_meanwhile(workers, &a.png(), &b.png());
        assert_eq!(same_size.status(), [RowStatus::Ok]);
        assert!(same_size.row(0).unwrap().bytes().unwrap() == b.rgb);

        let other = changed_meanwhile(workers, &a.png(), &turned.png());
        assert_eq!(other.status(), [RowStatus::Failed]);
        let fault = &other.faults()[0].fault;
        assert_eq!(fault.kind, FaultKind::Changed);
        assert_eq!(
            fault.reason,
            "the image is now 25 x 31, and was 31 x 25 when headers were read"
        );
        // The room is that of the scan, and nothing of the other picture is in it.
        assert_eq!(other.row(0).unwrap().size(), (25, 31));
        assert!(
            other
                .row(0)
                .unwrap()
                .bytes()
                .unwrap()
                .iter()
                .all(|b| *b == 0)
        );
        assert!(other.descriptors().unwrap()[0].is_masked());

        let gone = changed_meanwhile(workers, &a.png(), b"");
        assert_eq!(gone.faults()[0].fault.kind, FaultKind::Truncated);

        let mended = changed_meanwhile(workers, b"no picture", &a.png());
        let fault = &mended.faults()[0].fault;
        assert_eq!(fault.kind, FaultKind::Changed);
        assert!(fault.reason.contains("could not be read"), "{fault}");
        assert_eq!(mended.row(0).unwrap().bytes().unwrap(), b"");
    }
}

#[test]
fn unreadable_and_too_large_pictures_take_no_room_and_fail_with_their_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let truth = mixed(dir.path());
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    let good = Picture::rgb(60, 60, 1).encode();
    write("x-text.jpg", b"no picture");
    write("x-empty.png", b"");
    write("x-cut.jpg", &good[..100]);
    write("x-huge.jpg", &with_claimed_size(&good, 60_000, 60_000));
    // 75 MB as RGB, though not over max_pixels.
    write("x-wide.jpg", &with_claimed_size(&good, 5000, 5000));
    nix::unistd::mkfifo(
        &dir.path().join("x-fifo.jpg"),
        nix::sys::stat::Mode::S_IRWXU,
    )
    .unwrap();
    // Its header is whole, its data are not: it has room, and zeros.
    write("x-half.jpg", &good[..good.len() - 40]);
    for workers in [0, 2] {
        let mut loader = full(dir.path())
            .num_workers(workers)
            .max_scratch(64 << 20)
            .on_error(OnError::Skip)
            .build()
            .unwrap();
        let index = Source::detect(dir.path()).unwrap().open().unwrap().0;
        let mut failed = BTreeMap::new();
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            for fault in batch.faults() {
                let name = fault.path.file_name().unwrap().to_str().unwrap().to_owned();
                let size = batch.row(fault.row).unwrap().size();
                assert!(
                    batch
                        .row(fault.row)
                        .unwrap()
                        .bytes()
                        .unwrap()
                        .iter()
                        .all(|b| *b == 0)
                );
                failed.insert(name, (fault.fault.kind, size, fault.fault.reason.clone()));
            }
            for row in (0..batch.len()).filter(|r| batch.status()[*r] == RowStatus::Ok) {
                let want = &truth[&index.path(batch.ids()[row])];
                assert!(batch.row(row).unwrap().bytes().unwrap() == want.rgb);
            }
        }
        for (name, kind, size, text) in [
            ("x-text.jpg", FaultKind::Unsupported, (0, 0), ""),
            ("x-empty.png", FaultKind::Truncated, (0, 0), "empty"),
            ("x-cut.jpg", FaultKind::Truncated, (0, 0), ""),
            (
                "x-huge.jpg",
                FaultKind::TooLarge,
                (0, 0),
                "max_pixels = 178956970",
            ),
            (
                "x-wide.jpg",
                FaultKind::TooLarge,
                (0, 0),
                "max_scratch = 64 MiB",
            ),
            ("x-fifo.jpg", FaultKind::NotRegular, (0, 0), "FIFO"),
            ("x-half.jpg", FaultKind::Truncated, (60, 60), ""),
        ] {
            let (k, s, reason) = &failed[name];
            assert_eq!((*k, *s), (kind, size), "{name}: {reason}");
            assert!(reason.contains(text), "{name}: {reason}");
        }
        assert_eq!(failed.len(), 7, "{failed:?}");
    }
    let mut loader = full(dir.path()).num_workers(1).build().unwrap();
    let error = loader.epoch().find_map(Result::err).unwrap();
    assert!(error.is_sample(), "{error}");
}

#[test]
fn a_ring_that_cannot_fit_is_refused_with_the_largest_pictures() {
    let dir = tempfile::tempdir().unwrap();
    mixed(dir.path());
    let good = Picture::rgb(60, 60, 1).encode();
    for i in 0..8 {
        let name = format!("giant{i}.jpg");
        let bytes = with_claimed_size(&good, 10_000, 12_000 + i);
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    let error = full(dir.path())
        .num_workers(1)
        .depth(1024)
        .build()
        .unwrap_err();
    assert!(error.is_usage());
    let text = error.to_string();
    for part in [
        "lower `batch_size` or `depth`",
        "Each of 1024 slots",
        "giant7.jpg (12007 x 10000) takes 344 MiB",
        "giant6.jpg",
        "giant5.jpg",
    ] {
        assert!(text.contains(part), "{text} lacks {part}");
    }
}

/// A PNG that consists of its header and no data.
fn empty_png(height: u32, width: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend([8, 2, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(b"\0\0\0\x0cIDATabcdefghijkl\0\0\0\0\0\0\0\0IEND\xae\x42\x60\x82");
    bytes
}

#[test]
fn a_forged_header_takes_no_room() {
    let dir = tempfile::tempdir().unwrap();
    mixed(dir.path());
    fs::write(dir.path().join("x-forged.png"), empty_png(13_300, 13_300)).unwrap();
    let mut farbfeld = b"farbfeld".to_vec();
    farbfeld.extend(13_300u32.to_be_bytes().repeat(2));
    fs::write(dir.path().join("x-forged.jpg"), farbfeld).unwrap();
    for workers in [0, 1] {
        let mut loader = full(dir.path())
            .num_workers(workers)
            .on_error(OnError::Skip)
            .build()
            .unwrap();
        let mut failed = 0;
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            assert!(batch.pixels().unwrap().bytes().len() < 16 << 20);
            for fault in batch.faults() {
                failed += 1;
                assert_eq!(fault.fault.kind, FaultKind::Truncated, "{fault:?}");
                assert!(fault.fault.reason.contains("13300 x 13300"), "{fault:?}");
                assert_eq!(batch.row(fault.row).unwrap().size(), (0, 0));
            }
        }
        assert_eq!(failed, 2);
    }
}

#[test]
fn a_few_giants_in_a_ring_are_named() {
    let dir = tempfile::tempdir().unwrap();
    mixed(dir.path());
    let warned = || {
        let src = dir.path().to_str().unwrap();
        let out = std::process::Command::new(FEATHERLOAD)
            .args(["bench", src, "--recipe", "full", "--batch-size", "7"])
            .args(["--num-workers", "1", "--on-error", "skip"])
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stderr).unwrap()
    };
    let even = warned();
    assert!(!even.contains("make the ring large"), "{even}");
    let good = Picture::rgb(60, 60, 1).encode();
    // Twice the ring, and nothing to speak of.
    fs::write(
        dir.path().join("giant.jpg"),
        with_claimed_size(&good, 200, 200),
    )
    .unwrap();
    let little = warned();
    assert!(!little.contains("make the ring large"), "{little}");
    let giant = with_claimed_size(&good, 1500, 1500);
    fs::write(dir.path().join("giant.jpg"), giant).unwrap();
    let text = warned();
    for part in [
        "a few images make the ring large",
        "giant.jpg (1500 x 1500) takes 6.44 MiB",
    ] {
        assert!(text.contains(part), "{text} lacks {part}");
    }
}

#[test]
fn scaled_decoding_has_nothing_to_scale_to() {
    let dir = crate::common::data(1, 2);
    let recipe = Recipe::full().with_decode(DecodeMode::Scaled);
    let error = builder(dir.path()).recipe(recipe).build().unwrap_err();
    assert!(error.to_string().contains("use mode: full"), "{error}");
}

/// `bench` gives one digest for any number of workers, and `index` the sizes.
#[test]
fn the_command_line_knows_own_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let truth = mixed(dir.path());
    let src = dir.path().to_str().unwrap();
    let run = |args: &[&str]| -> serde_json::Value {
        let out = std::process::Command::new(FEATHERLOAD)
            .args(args)
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let digest = |workers: &str| {
        let args = [
            "bench",
            src,
            "--recipe",
            "full",
            "--batch-size",
            "7",
            "--digest",
            "--json",
        ];
        run(&[&args[..], &["--num-workers", workers]].concat())["digest"].clone()
    };
    let want = digest("0");
    assert!(want.is_string());
    assert_eq!(digest("2"), want);
    let index = run(&["index", src, "--json"]);
    let area = |p: &Pixels| p.height * p.width;
    let largest = truth.values().map(area).max().unwrap();
    let sizes = &index["headers"]["sizes"];
    assert_eq!(sizes["pixels"]["max"], largest);
    assert_eq!(sizes["pixels"]["min"], 1);
    let bytes: usize = truth.values().map(|p| 3 * area(p)).sum();
    assert_eq!(sizes["decoded_bytes"], bytes);
}
