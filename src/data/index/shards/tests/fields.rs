//! Fields with dots: which one is the image, and which one is the label.

use crate::data::index::shards::tests::*;

fn with(image_field: &str) -> ShardOptions {
    ShardOptions {
        image_field: Some(image_field.into()),
        ..nowhere(ShardLabels::Auto)
    }
}

fn of(members: &[&str], options: &ShardOptions) -> Result<(Index, ScanReport)> {
    all_of(&[members], options)
}

/// Reads shards with these members. The data of a member is its position in the shard.
fn all_of(shards: &[&[&str]], options: &ShardOptions) -> Result<(Index, ScanReport)> {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..shards.len())
        .map(|i| dir.path().join(format!("{i}.tar")))
        .collect();
    for (path, members) in paths.iter().zip(shards) {
        let data: Vec<_> = (0..members.len()).map(|i| i.to_string()).collect();
        let members = members.iter().zip(&data).map(|(n, d)| (*n, d.as_str()));
        write(path, &members.collect::<Vec<_>>());
    }
    Index::from_shards(&paths, options)
}

fn refused(members: &[&str], options: &ShardOptions) -> String {
    let e = of(members, options).unwrap_err();
    assert!(e.is_usage());
    e.to_string()
}

const AUTO: fn() -> ShardOptions = || nowhere(ShardLabels::Auto);

#[test]
fn the_only_field_that_ends_as_a_picture_is_the_picture() {
    // `list(webdataset.WebDataset(...))` has the keys and fields of each case.
    for (members, want) in [
        (
            &["0.image.jpg", "0.label.cls", "1.image.jpg", "1.label.cls"][..],
            &["0.image.jpg", "1.image.jpg"][..],
        ),
        (
            &["a/0.input.PNG", "a/1.input.png"],
            &["a/0.input.PNG", "a/1.input.png"],
        ),
        (&["a.0.png", "b.0.png", "b.txt"], &["a.0.png", "b.0.png"]),
        (
            &["./0.x.y.webp", "./1.x.y.webp"],
            &["./0.x.y.webp", "./1.x.y.webp"],
        ),
        // Arrays beside it, and fields that are not images, do not count.
        (
            &["0.image.tif", "0.features.npy", "0.txt"],
            &["0.image.tif"],
        ),
    ] {
        let (index, report) = of(members, &AUTO()).unwrap();
        assert_eq!(names(&index), want);
        assert_eq!(report.skipped_total(), 0);
    }
}

#[test]
fn a_field_without_a_dot_is_the_picture_where_any_shard_has_one() {
    let (index, report) = all_of(
        &[&["0.mask.png", "0.cls"], &["1.jpg", "1.mask.png", "1.cls"]],
        &AUTO(),
    )
    .unwrap();
    assert_eq!(
        (names(&index), classes(&index)),
        (vec!["1.jpg".into()], vec![2])
    );
    assert_eq!(report.skipped[&SkipReason::NoPicture].count, 1);
    assert_eq!(report.other_fields["mask.png"], 1);
}

#[test]
fn pictures_in_several_fields_are_an_error_that_lists_them() {
    let pair = [
        "a.input.jpg",
        "a.target.jpg",
        "b.input.jpg",
        "b.target.jpg",
        "c.input.jpg",
    ];
    let e = refused(&pair, &AUTO());
    for due in [
        "0.tar: images are in several fields: input.jpg (3 samples), target.jpg (2): ",
        "choose one with `image_field: input.jpg`",
    ] {
        assert!(e.contains(due), "{e}");
    }
    assert!(!e.contains("first dot"), "{e}");
    // Two fields in two different shards are also several.
    let apart = all_of(&[&["a.left.jpg"], &["b.right.jpg", "b.cls"]], &AUTO());
    let e = apart.unwrap_err().to_string();
    assert!(e.contains("left.jpg (1 sample), right.jpg (1)"), "{e}");

    let (index, report) = of(&pair, &with("target.jpg")).unwrap();
    assert_eq!(names(&index), ["a.target.jpg", "b.target.jpg"]);
    assert_eq!(report.skipped[&SkipReason::NoPicture].count, 1);
    assert_eq!(report.other_fields["input.jpg"], 2);
}

#[test]
fn keys_with_dots_are_explained() {
    let numbers = ["d/22.00.png", "d/22.00.cls", "d/22.01.png", "d/22.01.cls"];
    let e = refused(&numbers, &AUTO());
    for due in [
        "00.png (1 sample), 01.png (1)",
        "22.00.png is the field 00.png of sample 22",
        "ends at its first dot",
        "such as 22_00.png",
        "`image_field: 00.png`",
    ] {
        assert!(e.contains(due), "{e}");
    }
    let e = refused(&["1.2.3.png", "1.2.4.png"], &AUTO());
    assert!(e.contains("such as 1_2_3.png"), "{e}");
    // Names with versions: each sample has its own field.
    let e = refused(&["v1.cat.png", "v1.dog.png", "v2.cow.png"], &AUTO());
    assert!(
        e.contains("v1.cat.png is the field cat.png of sample v1"),
        "{e}"
    );
    // Too many fields to count each one separately.
    let many: Vec<_> = (0..200).map(|i| format!("7.{i:03}.png")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let e = refused(&many, &AUTO());
    assert!(e.contains("and at least 56 more"), "{e}");
}

#[test]
fn a_named_field_is_the_picture_and_of_several_the_first_that_a_sample_has() {
    let members = [
        "0.jpg",
        "0.Mask.PNG",
        "1.mask.png",
        "1.mask.jpg",
        "2.jpg",
        "3.img",
    ];
    let picture = |field: &str| names(&of(&members, &with(field)).unwrap().0);
    assert_eq!(picture("mask.png"), ["0.Mask.PNG", "1.mask.png"]);
    assert_eq!(picture("MASK.jpg"), ["1.mask.jpg"]);
    assert_eq!(picture("jpg; mask.png"), ["0.jpg", "1.mask.png", "2.jpg"]);
    assert_eq!(picture("img"), ["3.img"]);

    let e = refused(&members, &with("image.jpg"));
    for due in [
        "no samples in",
        "the field image.jpg",
        "jpg (2 samples)",
        "mask.png (2)",
    ] {
        assert!(e.contains(due), "{e}");
    }
    for odd in ["", "jpg;", "a/b.jpg"] {
        let e = refused(&members, &with(odd));
        assert!(e.contains("`image_field` has '"), "{e}");
    }
    let e = refused(&members, &with(&"jpg;".repeat(20)));
    assert!(
        e.contains("has 21 fields, but at most 16 are allowed"),
        "{e}"
    );
}

#[test]
fn the_only_field_that_ends_in_cls_is_the_label() {
    // The data of a member is its position.
    let dotted = ["0.image.png", "0.label.cls", "1.image.png", "1.label.cls"];
    let (index, report) = of(&dotted, &AUTO()).unwrap();
    assert_eq!(classes(&index), [1, 3]);
    assert!(report.other_fields.is_empty());
    let (index, _) = of(&["0.jpg", "0.label.cls"], &AUTO()).unwrap();
    assert_eq!(classes(&index), [1]);
    let shards = [
        &["0.jpg", "0.x.cls"][..],
        &["1.jpg", "1.x.cls", "2.mask.png"],
    ];
    let (index, _) = all_of(&shards, &AUTO()).unwrap();
    assert_eq!(classes(&index), [1, 1]);
    let (index, report) = of(&dotted, &nowhere(ShardLabels::None)).unwrap();
    assert_eq!((index.len(), index.label_width()), (2, 0));
    assert_eq!(report.other_fields["label.cls"], 2);

    // `cls` itself comes first, in whichever shard it is.
    let (index, report) = of(&["0.jpg", "0.fine.cls", "0.cls"], &AUTO()).unwrap();
    assert_eq!(classes(&index), [2]);
    assert_eq!(report.other_fields["fine.cls"], 1);
    let e = all_of(&[&["0.jpg", "0.fine.cls"], &["1.jpg", "1.cls"]], &AUTO());
    let e = e.unwrap_err().to_string();
    assert!(e.contains("0.jpg: this sample has no label"), "{e}");

    // If there are several, none is used.
    for shards in [
        &[&["0.a.jpg", "0.fine.cls", "0.coarse.cls"][..]][..],
        &[
            &["0.a.jpg", "0.fine.cls"][..],
            &["1.a.jpg", "1.coarse.cls"][..],
        ],
    ] {
        let (index, report) = all_of(shards, &AUTO()).unwrap();
        assert_eq!(index.label_width(), 0);
        assert_eq!(report.other_fields["fine.cls"], 1);
        assert_eq!(report.other_fields["coarse.cls"], 1);
    }
    let (index, _) = of(
        &["0.a.jpg", "0.fine.cls", "0.coarse.cls"],
        &nowhere(field("coarse.cls")),
    )
    .unwrap();
    assert_eq!(classes(&index), [2]);
    let e = refused(&dotted, &nowhere(field("cls")));
    assert!(
        e.contains("a field 'cls' (there are label.cls (2 samples))"),
        "{e}"
    );
}

#[test]
fn a_label_field_that_ends_in_json_is_read_as_json() {
    let members = [("0.image.jpg", ""), ("0.meta.json", "\"cat\"")];
    let (index, _) = one(&members, field("meta.json")).unwrap();
    assert_eq!(index.classes(), &ClassList::new(["cat"]).unwrap());
}

#[test]
fn hidden_members_are_left_out_and_named() {
    let members = [
        "./._0.jpg",
        "./0.jpg",
        "./__MACOSX/0.jpg",
        "__MACOSX/._1.jpg",
        "./0.cls",
        ".thumbs/9.jpg",
        "a/PaxHeaders.123/1.jpg",
        "a/@eaDir/1.jpg",
        "a/1.jpg",
        "a/1.cls",
        ".DS_Store",
        "../2.jpg",
        "../2.cls",
    ];
    let (index, report) = of(&members, &AUTO()).unwrap();
    assert_eq!(names(&index), ["./0.jpg", "a/1.jpg", "../2.jpg"]);
    assert_eq!(classes(&index), [4, 9, 12]);
    let hidden = &report.skipped[&SkipReason::Hidden];
    let examples = ["0.tar/./._0.jpg", "0.tar/.DS_Store", "0.tar/.thumbs/9.jpg"];
    assert_eq!(
        (hidden.count, &hidden.examples[..]),
        (4, &examples.map(PathBuf::from)[..])
    );
    let system = &report.skipped[&SkipReason::SystemFolder];
    assert_eq!(system.count, 3);
    assert_eq!(report.skipped_total(), 7);
}

#[test]
fn an_index_of_dali_and_a_kept_one_give_the_same_fields() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let members = [
        "0.a.jpg", "0.b.jpg", "0.x.cls", "1.a.jpg", "1.b.jpg", "1.x.cls",
    ];
    write(&path, &members.map(|name| (name, "5")));
    let (folder, kept) = kept_in(dir.path());
    let read = |field: &str| {
        let options = ShardOptions {
            image_field: Some(field.into()),
            ..kept.clone()
        };
        let (index, _) = Index::from_shards(slice::from_ref(&path), &options).unwrap();
        assert_eq!(classes(&index), [5, 5]);
        names(&index)
    };
    for indexes in [2, 2] {
        assert_eq!(read("a.jpg"), ["0.a.jpg", "1.a.jpg"]);
        assert_eq!(read("b.jpg"), ["0.b.jpg", "1.b.jpg"]);
        assert_eq!(files(&folder).len(), indexes);
    }
    Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    assert_eq!(read("b.jpg"), ["0.b.jpg", "1.b.jpg"]);
    write(&path, &members.map(|name| (name, "5"))[..1]);
    Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    let (index, _) = Index::from_shards(slice::from_ref(&path), &AUTO()).unwrap();
    assert_eq!(names(&index), ["0.a.jpg"]);
}

#[test]
fn a_damaged_shard_keeps_its_samples_with_dotted_fields() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let members = [
        ("0.image.jpg", "x"),
        ("0.label.cls", "3"),
        ("1.image.jpg", "x"),
        ("1.label.cls", "4"),
    ];
    write(&path, &members);
    // Cut inside the last label.
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..3 * 1024 + 512]).unwrap();
    let (index, report) = Index::from_shards(slice::from_ref(&path), &AUTO()).unwrap();
    assert_eq!(
        (names(&index), classes(&index)),
        (vec!["0.image.jpg".into()], vec![3])
    );
    assert_eq!(report.damaged[0].samples_incomplete, 1);
}

#[test]
fn what_an_index_of_dali_does_not_name_is_left_out_by_the_same_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let members = [
        "README",
        "._0.jpg",
        "0.jpg",
        "._0.cls",
        "0.cls",
        ".a/1.jpg",
        "__MACOSX/._2.jpg",
        "3.jpg",
        "3.cls",
        ".DS_Store",
        "LICENSE",
        ".git/config",
    ];
    write(&path, &members.map(|name| (name, "5")));
    let read = || Index::from_shards(slice::from_ref(&path), &AUTO()).unwrap();
    let (index, report) = read();
    assert_eq!(names(&index), ["0.jpg", "3.jpg"]);
    assert_eq!(report.skipped[&SkipReason::Hidden].count, 6);
    assert_eq!(report.skipped[&SkipReason::NoSampleName].count, 2);
    Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    let (by_index, of_index) = read();
    assert_eq!((by_index.hash(), of_index), (index.hash(), report));
}
