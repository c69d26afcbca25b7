//! The output of a build: the same bytes for any number of workers, and the pixels and labels of
//! the source, in members that other tools read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use featherload::cache::{BuildOptions, CacheResize};
use featherload::index::{Index, Label};
use featherload::internals::DrillBuilder;
use featherload::recipe::{Decode, Resize};
use featherload::{DataType, DecodeMode, MemoryLayout, Recipe, Source};

use super::scene::{all_members, assert_same, build, built, copy, files, jpeg, raw};
use crate::common::{Picture, builder, data};

#[test]
fn the_bytes_are_the_same_by_any_number_of_workers() {
    let src = data(3, 12);
    let dst = tempfile::tempdir().unwrap();
    let shuffled = BuildOptions {
        shuffle: Some(5),
        resize: Some(CacheResize::Shorter(64)),
        ..jpeg(90)
    };
    let sets = [
        ("copy", copy()),
        ("jpeg", jpeg(80)),
        ("raw", raw()),
        ("mixed", shuffled),
    ];
    for (name, options) in sets {
        let mut first = None;
        for workers in [0, 1, 2, 4, 2] {
            let to = dst.path().join(format!("{name}-{workers}"));
            let _ = fs::remove_dir_all(&to);
            let report = built(src.path(), &to, options)
                .num_workers(workers)
                .build()
                .unwrap();
            assert!(report.complete && report.shards > 1, "{report:?}");
            assert_eq!(report.samples, 36);
            let got = files(&to);
            match &first {
                None => first = Some(got),
                Some(first) => assert_same(first, &got, &format!("{name}, {workers} workers")),
            }
        }
        let to = dst.path().join(format!("{name}-killed"));
        let report = built(src.path(), &to, options)
            .kill_workers_every(Duration::from_millis(10))
            .build()
            .unwrap();
        assert!(report.complete);
        assert_same(
            first.as_ref().unwrap(),
            &files(&to),
            &format!("{name}, killed"),
        );
    }
}

#[test]
fn copies_are_the_files_and_labels_stand_beside_them() {
    let src = data(3, 5);
    let dst = tempfile::tempdir().unwrap();
    let report = build(src.path(), dst.path(), copy());
    let (source, _) = Source::detect(src.path()).unwrap().open().unwrap();
    let all = all_members(dst.path());
    assert_eq!(all.len(), 2 * source.len() as usize);
    for (id, pair) in (0..).zip(all.chunks(2)) {
        let [(_, picture), (_, label)] = pair else {
            panic!("odd");
        };
        let path = source.path(id);
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(picture.name, format!("{id:08}_{stem}.jpg"));
        assert_eq!(label.name, format!("{id:08}_{stem}.cls"));
        assert!(picture.data == fs::read(&path).unwrap());
        let Label::Class(class) = source.label(id) else {
            panic!("no class");
        };
        assert_eq!(label.data, class.to_string().as_bytes());
    }
    let tars = files(dst.path())
        .into_iter()
        .filter(|(n, _)| n.ends_with(".tar"));
    assert_eq!(report.bytes, tars.map(|(_, b)| b.len() as u64).sum::<u64>());

    let index = Index::load(&dst.path().join("index.fli")).unwrap();
    assert_eq!(index.len(), source.len());
    assert_eq!(index.shards(), report.shards);
    assert_eq!(index.classes(), source.classes());
    for id in 0..index.len() {
        assert_eq!(index.label(id), source.label(id));
        assert_eq!(
            index.relative_path(id).to_str().unwrap(),
            all[2 * id as usize].1.name
        );
    }
}

/// Height, width and pixels of every sample of a folder, by a loader.
fn pixels_of(folder: &Path, recipe: Recipe) -> Vec<(usize, usize, Vec<u8>)> {
    let mut loader = builder(folder)
        .num_workers(0)
        .sampler(featherload::Sampler::Sequential)
        .recipe(recipe)
        .build()
        .unwrap();
    let mut all = Vec::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        for row in 0..batch.len() {
            let (height, width) = batch.row(row).unwrap().size();
            all.push((
                height,
                width,
                batch.row(row).unwrap().as_slice::<u8>().unwrap().to_vec(),
            ));
        }
    }
    all
}

/// Height, width and pixels of a `.npy` array in a shard.
fn array(data: &[u8]) -> (usize, usize, &[u8]) {
    assert_eq!(&data[..8], b"\x93NUMPY\x01\0");
    let len = usize::from(u16::from_le_bytes([data[8], data[9]]));
    let text = std::str::from_utf8(&data[10..10 + len]).unwrap();
    let shape = text.split("'shape': (").nth(1).unwrap();
    let sides: Vec<usize> = shape[..shape.find(')').unwrap()]
        .split(", ")
        .map(|n| n.parse().unwrap())
        .collect();
    assert!(
        text.contains("'descr': '|u1', 'fortran_order': False"),
        "{text}"
    );
    let [height, width, 3] = sides[..] else {
        panic!("{text}");
    };
    (height, width, &data[10 + len..])
}

/// The same JPEG with an EXIF block that holds only the orientation.
pub(super) fn with_orientation(jpeg: &[u8], tag: u8) -> Vec<u8> {
    let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([tag, 0, 0, 0, 0, 0, 0, 0]);
    let mut out = jpeg[..2].to_vec();
    out.extend([0xff, 0xe1]);
    out.extend((exif.len() as u16 + 2).to_be_bytes());
    out.extend(exif);
    out.extend(&jpeg[2..]);
    out
}

#[test]
fn raw_pixels_are_the_loaders_and_begin_at_blocks_of_the_file() {
    let src = data(2, 6);
    // An image that EXIF rotates, and a transparent one.
    let stored = Picture::rgb(90, 60, 3).encode();
    fs::write(
        src.path().join("class0/turned.jpg"),
        with_orientation(&stored, 6),
    )
    .unwrap();
    let clear = image::RgbaImage::from_fn(31, 17, |x, y| {
        image::Rgba([x as u8 * 8, y as u8 * 15, 99, (x * y) as u8])
    });
    clear.save(src.path().join("class1/clear.png")).unwrap();
    let dst = tempfile::tempdir().unwrap();
    let nhwc = |recipe: Recipe| {
        recipe
            .with_dtype(DataType::U8)
            .with_layout(MemoryLayout::Nhwc)
    };
    let exact = nhwc(
        Recipe::new("exact")
            .then(Decode::default())
            .then(Resize::exact(70, 90))
            .with_decode(DecodeMode::Full),
    );
    let sets = [
        (None, Recipe::full()),
        (
            Some(CacheResize::Exact {
                height: 70,
                width: 90,
            }),
            exact,
        ),
    ];
    for (resize, recipe) in sets {
        let to = dst.path().join(format!("{}", resize.is_some()));
        build(src.path(), &to, BuildOptions { resize, ..raw() });
        let expected = pixels_of(src.path(), recipe);
        let all = all_members(&to);
        let pictures: Vec<_> = all.iter().filter(|m| m.1.name.ends_with(".npy")).collect();
        assert_eq!(pictures.len(), expected.len());
        for ((tar, member), (height, width, pixels)) in pictures.into_iter().zip(expected) {
            let (h, w, got) = array(&member.data);
            assert_eq!((h, w), (height, width));
            assert!(got == pixels, "{}", member.name);
            let begin = member.at + (member.data.len() - got.len()) as u64;
            assert_eq!(begin % 512, 0);
            let whole = fs::read(tar).unwrap();
            assert!(whole[begin as usize..].starts_with(got));
        }
    }
}

#[test]
fn resizes_keep_shapes_and_never_enlarge_unless_they_are_exact() {
    let src = data(1, 30);
    let dst = tempfile::tempdir().unwrap();
    let full = pixels_of(src.path(), Recipe::full());
    type Due = fn(usize, usize) -> (usize, usize);
    let sets: [(CacheResize, Due); 2] = [
        (CacheResize::Shorter(150), |h, w| match h.min(w) {
            short if short <= 150 => (h, w),
            short => (h * 150 / short, w * 150 / short),
        }),
        (CacheResize::Longer(200), |h, w| match h.max(w) {
            long if long <= 200 => (h, w),
            long => (h * 200 / long, w * 200 / long),
        }),
    ];
    for (resize, wanted_value) in sets {
        let to = dst.path().join(resize.to_string());
        let resize = Some(resize);
        build(src.path(), &to, BuildOptions { resize, ..raw() });
        let all = all_members(&to);
        let pictures = all.iter().filter(|m| m.1.name.ends_with(".npy"));
        let (mut kept, mut changed) = (0, 0);
        for ((_, member), (height, width, pixels)) in pictures.zip(&full) {
            let (h, w, got) = array(&member.data);
            assert_eq!((h, w), wanted_value(*height, *width));
            if (h, w) == (*height, *width) {
                assert!(got == pixels, "no pixel is changed");
                kept += 1;
            } else {
                changed += 1;
            }
        }
        assert!(kept > 0 && changed > 0, "{kept} kept, {changed} changed");
    }
}

#[test]
fn jpegs_decode_close_to_what_they_were_made_of() {
    let src = data(1, 8);
    let dst = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    for quality in [50, 95] {
        let to = dst.path().join(quality.to_string());
        bytes.push(build(src.path(), &to, jpeg(quality)).bytes);
        let out = dst.path().join(format!("out-{quality}"));
        fs::create_dir(&out).unwrap();
        for (_, member) in all_members(&to) {
            if member.name.ends_with(".jpg") {
                fs::write(out.join(&member.name), &member.data).unwrap();
            }
        }
        let was = pixels_of(src.path(), Recipe::full());
        let is = pixels_of(&out, Recipe::full());
        assert_eq!(was.len(), is.len());
        for ((h, w, a), (height, width, b)) in was.into_iter().zip(is) {
            assert_eq!((h, w), (height, width));
            let far = a.iter().zip(&b).map(|(a, b)| f64::from(a.abs_diff(*b)));
            let mean = far.sum::<f64>() / a.len() as f64;
            // 4:2:0 loses noise in chroma at any quality.
            assert!(mean < 9.0, "mean {mean}");
        }
    }
    assert!(bytes[0] < bytes[1]);
}

#[test]
fn a_shuffled_cache_has_every_sample_once_under_its_own_label() {
    let src = data(4, 10);
    let dst = tempfile::tempdir().unwrap();
    let mut orders = Vec::new();
    for seed in [Some(1), Some(2), None] {
        let to = dst.path().join(format!("{seed:?}"));
        let options = BuildOptions {
            shuffle: seed,
            ..copy()
        };
        build(src.path(), &to, options);
        let (source, _) = Source::detect(src.path()).unwrap().open().unwrap();
        let by_bytes: BTreeMap<Vec<u8>, u64> = (0..source.len())
            .map(|id| (fs::read(source.path(id)).unwrap(), id))
            .collect();
        let index = Index::load(&to.join("index.fli")).unwrap();
        let all = all_members(&to);
        let order: Vec<u64> = all
            .iter()
            .filter(|m| m.1.name.ends_with(".jpg"))
            .map(|m| by_bytes[&m.1.data])
            .collect();
        for (at, id) in (0..).zip(&order) {
            assert_eq!(index.label(at), source.label(*id));
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..source.len()).collect::<Vec<_>>());
        orders.push(order);
    }
    assert!(orders[0] != orders[1] && orders[1] != orders[2]);
    assert!(orders[2].is_sorted());
}
