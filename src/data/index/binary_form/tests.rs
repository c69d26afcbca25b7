//! The sealed form: contents that come back unchanged, and bytes that are not an index.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::data::index::binary_form::words::word;
use crate::data::index::binary_form::*;
use crate::picture::PixelBox;

fn content(paths: &[&[u8]], labels: IndexLabels, classes: &[&str]) -> IndexContent {
    let mut content = IndexContent::default();
    for path in paths {
        content.push_path(path);
    }
    content.labels = labels;
    content.classes = ClassList::new(classes).unwrap();
    content
}

/// Three samples, in the second and the fourth of four shards.
fn of_shards(wide: bool) -> IndexContent {
    let mut content = IndexContent::default();
    content.begin_shard(b"none.tar");
    content.begin_shard(b"a-0.tar");
    content.push_part(b"a/1.jpg", 512, 7);
    content.push_part(b"a/\xff.npy", 4096, 0);
    content.begin_shard(b"a-1.tar");
    content.begin_shard(b"/else/b.tar");
    let bytes = if wide { 1 << 40 } else { 9 };
    content.push_part(b"3.png", 1 << 33, bytes);
    content.begin_shard(b"last.tar");
    content.labels = IndexLabels::Class(vec![0, 1, 2]);
    content
}

/// Three samples with boxes.
fn with_boxes() -> IndexContent {
    let paths: [&[u8]; 3] = [b"a/1.jpg", b"b/\xff.png", b"b/3.jpg"];
    let mut content = content(&paths, IndexLabels::Class(vec![0, 1, 1]), &["a", "b"]);
    content.boxes = (0..3).map(boxed).collect();
    content
}

fn boxed(id: u32) -> PixelBox {
    PixelBox {
        left: id,
        top: 10 * id,
        right: id + 1,
        bottom: u32::MAX,
    }
}

fn samples() -> [Vec<u8>; 7] {
    let paths: [&[u8]; 3] = [b"a/1.jpg", b"b/\xff.png", b"b/3.jpg"];
    let vector = IndexLabels::Vector {
        width: 2,
        values: vec![0.0, 1.0, -0.0, 0.5, f32::MAX, 1e-40],
    };
    [
        content(&paths, IndexLabels::None, &[]),
        content(&paths, IndexLabels::Class(vec![0, 1, 1]), &["a", "b"]),
        content(&paths, IndexLabels::Class(vec![-1, 5, 1 << 33]), &[]),
        content(&paths, vector, &[]),
        of_shards(false),
        of_shards(true),
        with_boxes(),
    ]
    .map(|c| c.encode(Path::new("/data")).unwrap().bytes().to_vec())
}

/// Corrects the checksums, so that the later checks run.
fn mend(bytes: &mut [u8]) {
    let Some(root_at) = word(bytes, 48).map(u64::from_le_bytes) else {
        return;
    };
    let root_at = (root_at as usize).clamp(HEAD, bytes.len());
    let content = XxHash3_128::oneshot(&bytes[HEAD..root_at]);
    let root = XxHash3_128::oneshot(&bytes[root_at..]);
    bytes[16..32].copy_from_slice(&content.to_le_bytes());
    bytes[32..48].copy_from_slice(&root.to_le_bytes());
}

/// Reads everything that can be read. Bytes that decode must be safe to use.
fn use_all(bytes: &[u8]) -> bool {
    let Ok((layout, classes)) = IndexLayout::decode(bytes) else {
        return false;
    };
    for number in 0..layout.shards() {
        let path = layout.shard_path(bytes, number);
        assert!(!path.is_empty() && !path.contains(&0));
    }
    for id in 0..layout.samples() {
        let path = layout.path(bytes, id);
        assert!(!path.is_empty() && !path.contains(&0));
        let part = layout.pixel_box(bytes, id);
        assert!(part.is_some() == layout.has_boxes() && !part.is_some_and(PixelBox::is_empty));
        match layout.part(bytes, id) {
            Some(part) => {
                assert!(part.shard < layout.shards() && part.range().end >= part.at);
            }
            None => assert_eq!(layout.shards(), 0),
        }
        match layout.label(bytes, id) {
            Label::None => assert_eq!(layout.label_width(), 0),
            Label::Class(class) => {
                assert!(classes.is_empty() || classes.name(class).is_some());
            }
            Label::Vector(v) => assert_eq!(v.iter().count(), layout.label_width()),
        }
    }
    assert!(layout.root(bytes).starts_with(b"/"));
    true
}

#[test]
fn a_part_of_a_shard_costs_twenty_bytes_and_its_name() {
    let mut content = IndexContent::default();
    content.begin_shard(b"s.tar");
    content.labels = IndexLabels::Class((0..100).collect());
    for i in 0..100u64 {
        content.push_part(format!("{i:04}.jpg").as_bytes(), i << 20, 1 << 20);
    }
    let sealed = content.encode(Path::new("/d")).unwrap();
    assert_eq!(
        sealed.bytes().len(),
        COUNTS_END + 100 * (20 + 8) + 16 + 5 + STAMP + 2
    );
}

#[test]
fn a_sample_costs_eight_bytes_and_its_path() {
    let paths: [&[u8]; 2] = [b"a/1.jpg", b"b/22.png"];
    let sealed = content(&paths, IndexLabels::Class(vec![0, 1]), &[])
        .encode(Path::new("/d"))
        .unwrap();
    assert_eq!(sealed.bytes().len(), COUNTS_END + 2 * 8 + 15 + 2);
}

#[test]
fn all_kinds_of_labels_come_back() {
    let [none, class, wide, vector, ..] = samples();
    for bytes in [&none, &class, &wide, &vector] {
        assert!(use_all(bytes));
        let (layout, _) = IndexLayout::decode(bytes).unwrap();
        assert_eq!(layout.path(bytes, 1), b"b/\xff.png");
        assert_eq!(layout.root(bytes), b"/data");
    }
    let label = |bytes: &[u8], id| match IndexLayout::decode(bytes).unwrap().0.label(bytes, id) {
        Label::None => vec![],
        Label::Class(c) => vec![c as f64],
        Label::Vector(v) => v.iter().map(f64::from).collect(),
    };
    assert!(label(&none, 2).is_empty());
    assert_eq!(label(&class, 2), [1.0]);
    assert_eq!(label(&wide, 0), [-1.0]);
    assert_eq!(label(&wide, 2), [(1u64 << 33) as f64]);
    assert_eq!(label(&vector, 1), [0.0, 0.5]);
    assert_eq!(
        label(&vector, 2),
        [f64::from(f32::MAX), f64::from(1e-40f32)]
    );
}

#[test]
fn parts_come_back_from_their_shards() {
    for wide in [false, true] {
        let bytes = of_shards(wide).encode(Path::new("/data")).unwrap();
        let bytes = bytes.bytes();
        let (layout, _) = IndexLayout::decode(bytes).unwrap();
        assert_eq!(layout.shards(), 5);
        assert_eq!(layout.shard_path(bytes, 1), b"a-0.tar");
        assert_eq!(layout.shard_path(bytes, 3), b"/else/b.tar");
        assert_eq!(layout.shard_path(bytes, 5), b"");
        let part = |id| layout.part(bytes, id).unwrap();
        let is = |shard, at, bytes| SampleLocation { shard, at, bytes };
        assert_eq!(part(0), is(1, 512, 7));
        assert_eq!(part(1), is(1, 4096, 0));
        assert_eq!(part(2), is(3, 1 << 33, if wide { 1 << 40 } else { 9 }));
        assert_eq!(layout.part(bytes, 3), None);
        assert_eq!(layout.path(bytes, 1), b"a/\xff.npy");
        assert_eq!(layout.label(bytes, 2), Label::Class(2));
    }
}

#[test]
fn boxes_come_back_and_cost_sixteen_bytes_where_there_are_some() {
    let plain = samples()[1].clone();
    let bytes = samples()[6].clone();
    assert_eq!(bytes.len(), plain.len() + 3 * 16);
    let (layout, _) = IndexLayout::decode(&bytes).unwrap();
    for id in 0..3 {
        assert_eq!(layout.pixel_box(&bytes, id), Some(boxed(id as u32)));
    }
    assert_eq!(layout.pixel_box(&bytes, 3), None);
    assert_eq!(
        (layout.label_width(), layout.path(&bytes, 2)),
        (1, &b"b/3.jpg"[..])
    );
    let (without, _) = IndexLayout::decode(&plain).unwrap();
    assert!(!without.has_boxes() && without.pixel_box(&plain, 0).is_none());
    assert_ne!(layout.hash(), without.hash());
    // The first of the four zero bytes holds the number of bytes per box.
    assert_eq!((plain[76..80].to_vec(), bytes[76]), (vec![0; 4], 16));
    let mut content = with_boxes();
    content.boxes.pop();
    let short = content.encode(Path::new("/data")).unwrap();
    assert!(IndexLayout::decode(short.bytes()).is_err());
}

#[test]
fn another_root_and_other_stamps_change_nothing_else() {
    for bytes in samples() {
        let (layout, _) = IndexLayout::decode(&bytes).unwrap();
        let stamp = |n: u64| FileStamp {
            bytes: n + 1,
            modified: -7 - n as i64,
            inode: u64::MAX - n,
        };
        let stamps: Vec<_> = (0..layout.shards()).map(stamp).collect();
        let to = Path::new("/moved/to");
        let moved = layout.rebased(&bytes, to, &stamps).unwrap();
        let (again, _) = IndexLayout::decode(moved.bytes()).unwrap();
        assert_eq!(again.root(moved.bytes()), b"/moved/to");
        assert_eq!(again.hash(), layout.hash());
        for n in 0..layout.shards() {
            assert_eq!(layout.stamp(&bytes, n), None);
            assert_eq!(again.stamp(moved.bytes(), n), Some(stamp(n)));
        }
        assert_eq!(again.stamp(moved.bytes(), layout.shards()), None);
        let none = vec![FileStamp::default(); stamps.len()];
        let back = again.rebased(moved.bytes(), Path::new("/data"), &none);
        assert!(back.unwrap().bytes() == bytes);
    }
}

#[test]
fn a_label_vector_is_read_in_every_way() {
    let bytes = samples()[3].clone();
    let (layout, _) = IndexLayout::decode(&bytes).unwrap();
    let Label::Vector(v) = layout.label(&bytes, 1) else {
        panic!("a vector is due");
    };
    assert_eq!((v.len(), v.is_empty()), (2, false));
    assert_eq!((v.get(1), v.get(2)), (Some(0.5), None));
    assert_eq!(v.as_bytes(), [0, 0, 0, 0x80, 0, 0, 0, 0x3f]);
    assert_eq!(format!("{v:?}"), "[-0.0, 0.5]");
}

#[test]
fn nothing_at_all_is_an_index_too() {
    let sealed = IndexContent::default().encode(Path::new("/")).unwrap();
    let (layout, classes) = IndexLayout::decode(sealed.bytes()).unwrap();
    assert_eq!((layout.samples(), classes.len()), (0, 0));
    assert_eq!(layout.path(sealed.bytes(), 0), b"");
}

#[test]
fn every_truncation_is_refused() {
    for good in samples() {
        for len in 0..good.len() {
            assert!(IndexLayout::decode(&good[..len]).is_err(), "{len}");
        }
    }
}

#[test]
fn every_changed_byte_is_refused_and_behind_a_right_checksum_it_is_harmless() {
    for good in samples() {
        for at in 0..good.len() {
            for value in 0..=255 {
                let mut bad = good.clone();
                bad[at] = value;
                assert_eq!(use_all(&bad), value == good[at], "{at}");
                mend(&mut bad);
                use_all(&bad);
            }
        }
    }
}

#[test]
fn damage_is_told_in_words() {
    let [_, good, .., of_boxes] = samples();
    let told_of = |good: &[u8], at: usize, with: &[u8]| {
        let mut bad = good.to_vec();
        bad[at..at + with.len()].copy_from_slice(with);
        if at >= 48 {
            mend(&mut bad);
        }
        IndexLayout::decode(&bad).unwrap_err().to_string()
    };
    let told = |at: usize, with: &[u8]| told_of(&good, at, with);
    assert_eq!(told(0, b"x"), "not an index file");
    let form = "an index of version 9, and this featherload reads version 2";
    assert_eq!(told(8, &[9]), form);
    let sum = "damaged: the checksum of its content is wrong";
    assert_eq!(told(16, &[0; 4]), sum);
    let many = u64::MAX.to_le_bytes();
    assert_eq!(
        told(64, &many),
        "damaged: its number of samples is impossible"
    );
    assert_eq!(
        told(73, &[5]),
        "damaged: its number of bytes per path end is impossible"
    );
    assert_eq!(
        told(128, &[9, 0, 0, 0, 3]),
        "damaged: the path's place of sample 1"
    );
    assert_eq!(told(128 + 12 + 4, &[2]), "damaged: the class of sample 1");
    let names = 128 + 12 + 12 + 16;
    assert_eq!(told(names, b"b"), "damaged: the duplicate name of class 1");
    assert_eq!(
        told(names + 2 + 8, &[0]),
        "damaged: the path's bytes of sample 1"
    );
    assert_eq!(
        told_of(&of_boxes, 76, &[8]),
        "damaged: its number of bytes per box is impossible"
    );
    let second = 128 + 12 + 12 + 16;
    assert_eq!(
        told_of(&of_boxes, second + 8, &[1]),
        "damaged: the box of sample 1"
    );
}

fn labels() -> impl Strategy<Value = (Vec<Vec<u8>>, IndexLabels)> {
    let path = vec(1u8..=255, 1..20);
    vec(path, 0..20).prop_flat_map(|paths| {
        let n = paths.len();
        let kinds = prop_oneof![
            Just(IndexLabels::None),
            vec(any::<i64>(), n).prop_map(IndexLabels::Class),
            vec(-1i64..1000, n).prop_map(IndexLabels::Class),
            (1usize..4).prop_flat_map(move |width| {
                vec(-1e9f32..1e9, n * width)
                    .prop_map(move |values| IndexLabels::Vector { width, values })
            }),
        ];
        (Just(paths), kinds)
    })
}

proptest! {
    #[test]
    fn what_is_sealed_comes_back((paths, labels) in labels()) {
        let slices: Vec<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        let content = content(&slices, labels.clone(), &[]);
        let sealed = content.encode(Path::new("/r")).unwrap();
        let bytes = sealed.bytes();
        let (layout, _) = IndexLayout::decode(bytes).unwrap();
        prop_assert_eq!(layout.samples(), paths.len() as u64);
        for (id, path) in paths.iter().enumerate() {
            prop_assert_eq!(layout.path(bytes, id as u64), path.as_slice());
            match (layout.label(bytes, id as u64), &labels) {
                (Label::None, IndexLabels::None) => {}
                (Label::Class(c), IndexLabels::Class(all)) => prop_assert_eq!(c, all[id]),
                (Label::Vector(v), IndexLabels::Vector { width, values }) => {
                    let want = &values[id * width..][..*width];
                    prop_assert_eq!(v.iter().collect::<Vec<_>>(), want);
                }
                (label, want) => prop_assert!(false, "{label:?} is not of {want:?}"),
            }
        }
    }

    #[test]
    fn any_bytes_are_refused_or_harmless(
        which in 0usize..7,
        changes in vec((HEAD..200usize, any::<u8>()), 1..12),
    ) {
        let mut bytes = samples()[which].clone();
        for (at, value) in changes {
            let len = bytes.len();
            bytes[at % len] = value;
        }
        mend(&mut bytes);
        use_all(&bytes);
    }
}
