//! Captions of batches: of tables, tar shards and text files beside images. They follow from the
//! position of a row alone, and leave pixels as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use featherload::columns::ColumnValues;
use featherload::index::{ItemLabel, ListOptions, MemoryItems};
use featherload::{
    Batch, CaptionChoice, CaptionRule, EpochTail, Loader, LoaderBuilder, MissingCaption, OnError,
    Rank, RowStatus, Sampler, Source,
};

use crate::common::rows::rows;
use crate::common::{FEATHERLOAD, Picture, builder, data};

const SAMPLES: u64 = 24;

/// A caption of a row: its epoch, sample and position, and its text.
type Made = BTreeMap<(u64, u64, u64), String>;

/// 24 images, and a table with several captions of five tags each.
fn scene() -> (tempfile::TempDir, PathBuf) {
    let dir = data(3, 8);
    let mut lines = String::new();
    for id in 0..SAMPLES {
        let line = serde_json::json!({
            "path": format!("class{}/{:03}.jpg", id / 8, id % 8),
            "captions": (0..3).map(|n| text(id, n)).collect::<Vec<_>>(),
            "score": id,
        });
        lines += &format!("{line}\n");
    }
    let table = dir.path().join("all.jsonl");
    fs::write(&table, lines).unwrap();
    (dir, table)
}

fn text(id: u64, caption: u64) -> String {
    let tags: Vec<String> = (0..5).map(|tag| format!("{id}-{caption}-{tag}")).collect();
    tags.join(",")
}

fn random_rule() -> CaptionRule {
    CaptionRule {
        choose: CaptionChoice::Random,
        drop: 0.2,
        shuffle: true,
        keep: 1,
        tag_drop: 0.2,
        ..CaptionRule::of_column("captions")
    }
}

/// The captions of the next batches of an epoch.
fn take(loader: &mut Loader, batches: usize, rank: (u64, u64)) -> Made {
    let mut made = Made::new();
    for batch in loader.epoch().take(batches) {
        let batch = batch.unwrap();
        let captions = batch.captions().unwrap();
        assert_eq!(captions, batch.captions().unwrap());
        for (row, caption) in captions.into_iter().enumerate() {
            let position = batch.samples_before() + row as u64 * rank.1 + rank.0;
            made.insert((batch.epoch(), batch.ids()[row], position), caption);
        }
    }
    made
}

fn run(builder: LoaderBuilder, epochs: usize) -> Made {
    let mut loader = builder.build().unwrap();
    (0..epochs)
        .flat_map(|_| take(&mut loader, usize::MAX, (0, 1)))
        .collect()
}

/// What one process makes, ranks, workers, other batches and a resumed run make too.
#[test]
fn captions_follow_from_the_position() {
    let (_dir, table) = scene();
    let make = || builder(&table).batch_size(5).captions(random_rule());
    let want = run(make().num_workers(0), 2);
    assert_eq!(want.len(), 2 * SAMPLES as usize);
    for batch in [1, 7, 24] {
        assert_eq!(run(make().num_workers(2).batch_size(batch), 2), want);
    }
    let mut of_ranks = Made::new();
    for rank in 0..2 {
        let b = make().num_workers(1).rank(Rank::new(rank, 2)).batch_size(4);
        let mut loader = b.build().unwrap();
        for _ in 0..2 {
            of_ranks.extend(take(&mut loader, usize::MAX, (rank.into(), 2)));
        }
    }
    assert_eq!(of_ranks, want);
    // After a stop in the second epoch, with another batch size.
    let mut loader = make().num_workers(1).build().unwrap();
    let mut resumed = take(&mut loader, usize::MAX, (0, 1));
    resumed.extend(take(&mut loader, 2, (0, 1)));
    let state = loader.state();
    assert_eq!((state.epoch, state.samples), (1, 10));
    resumed.extend(run(make().num_workers(0).batch_size(3).resume(state), 1));
    assert_eq!(resumed, want);

    // Each is made of tags of one caption of its sample, the first tag at its place.
    let mut dropped = 0;
    let mut differ = 0;
    for ((epoch, id, _), caption) in &want {
        if caption.is_empty() {
            dropped += 1;
            continue;
        }
        let tags: Vec<&str> = caption.split(", ").collect();
        let of = (0..3).find(|n| text(*id, *n).starts_with(&format!("{},", tags[0])));
        let known = text(*id, of.unwrap());
        let known: BTreeSet<&str> = known.split(',').collect();
        assert!(tags.iter().all(|tag| known.contains(tag)), "{caption}");
        let next = want.iter().find(|((e, i, _), _)| (*e, *i) == (1, *id));
        differ += u64::from(*epoch == 0 && next.unwrap().1 != caption);
    }
    assert!((1..SAMPLES).contains(&dropped), "{dropped}");
    assert!(differ > 10, "{differ} differ in the next epoch");
    // Another seed.
    assert_ne!(run(make().num_workers(0).seed(12), 2), want);
}

#[test]
fn pixels_are_those_of_a_run_without_captions() {
    let (_dir, table) = scene();
    let plain = builder(&table).num_workers(0).build().unwrap();
    let with = builder(&table).num_workers(0).captions(random_rule());
    let pixels = |mut loader: Loader| -> Vec<_> {
        let all = loader.epoch().flat_map(|batch| rows(&batch.unwrap()));
        all.map(|row| (row.id, row.pixels)).collect()
    };
    assert_eq!(pixels(plain), pixels(with.build().unwrap()));
}

#[test]
fn each_position_of_a_repeated_sample_has_its_own_caption() {
    let (_dir, table) = scene();
    let rule = CaptionRule {
        shuffle: true,
        ..CaptionRule::of_column("captions")
    };
    let b = builder(&table).num_workers(0).captions(rule);
    let made = run(b.sampler(Sampler::RepeatedAugmentation { repeats: 3 }), 1);
    let mut by_sample: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    for ((_, id, _), caption) in &made {
        by_sample.entry(*id).or_default().insert(caption);
    }
    let differ = by_sample.values().filter(|captions| captions.len() > 1);
    assert!(differ.count() > 3, "{by_sample:?}");
}

/// The texts of the ids of a batch.
fn by_id(batch: &Batch) -> BTreeMap<u64, String> {
    let captions = batch.captions().unwrap();
    batch.ids().iter().copied().zip(captions).collect()
}

#[test]
fn masked_rows_have_no_caption_and_substitutes_have_their_own() {
    let (dir, table) = scene();
    fs::write(dir.path().join("class0/002.jpg"), "no image").unwrap();
    let rule = CaptionRule {
        prefix: "p".into(),
        ..CaptionRule::of_column("captions")
    };
    let make = |policy| {
        let b = builder(&table).num_workers(0).shuffle(false).batch_size(7);
        let b = b
            .on_error(policy)
            .tail(EpochTail::Pad)
            .captions(rule.clone());
        b.build().unwrap()
    };
    let mut loader = make(OnError::Skip);
    let batches: Vec<Batch> = loader.epoch().map(Result::unwrap).collect();
    let want = |id: u64| format!("p {}", text(id, 0));
    assert_eq!(by_id(&batches[0])[&1], want(1));
    assert_eq!(by_id(&batches[0])[&2], "");
    let captions = batches[3].captions().unwrap();
    assert_eq!(batches[3].status()[3], RowStatus::Padding);
    assert_eq!(captions[..3], [want(21), want(22), want(23)]);
    assert_eq!(captions[3..], ["", "", "", ""]);
    drop(batches);
    let mut loader = make(OnError::Substitute);
    let batch = loader.epoch().next().unwrap().unwrap();
    assert_eq!(batch.ids()[2], 3);
    assert_eq!(batch.captions().unwrap()[2], want(3));
}

/// A tar with a caption member and several captions in its JSON.
fn tar_of(path: &Path) {
    let mut writer = tar::Builder::new(fs::File::create(path).unwrap());
    let mut add = |name: String, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        writer.append_data(&mut header, name, bytes).unwrap();
    };
    for n in 0..6u64 {
        add(format!("{n}.jpg"), &Picture::rgb(30, 20, n).encode());
        add(format!("{n}.txt"), format!("text {n}\n").as_bytes());
        let json = serde_json::json!({ "captions": [format!("a{n}"), format!("b{n}")] });
        add(format!("{n}.json"), json.to_string().as_bytes());
    }
    writer.finish().unwrap();
}

#[test]
fn members_of_tars_are_captions() {
    let dir = tempfile::tempdir().unwrap();
    let tar = dir.path().join("a.tar");
    tar_of(&tar);
    let of = |rule| {
        let b = builder(&tar).num_workers(0).captions(rule);
        let mut loader = b.build().unwrap();
        let batch = loader.epoch().next().unwrap().unwrap();
        by_id(&batch)
    };
    let of_text = of(CaptionRule::of_column("txt"));
    let of_json = of(CaptionRule {
        choose: CaptionChoice::Random,
        ..CaptionRule::of_column("captions")
    });
    assert_eq!(of_text.len(), 6);
    for n in 0..6 {
        assert_eq!(of_text[&n], format!("text {n}"));
        assert!([format!("a{n}"), format!("b{n}")].contains(&of_json[&n]));
    }
    assert!(of_json.values().any(|text| text.starts_with('b')));
}

/// Text files beside images of a folder, of a list file and of a saved index.
#[test]
fn text_files_beside_images_are_columns_and_captions() {
    let dir = data(2, 3);
    let root = dir.path();
    for id in 0..6u64 {
        let file = format!("class{}/{:03}.txt", id / 3, id % 3);
        fs::write(root.join(file), format!("t{id}, u\nsecond\n")).unwrap();
    }
    let (list, saved) = (root.join("all.lst"), root.join("saved.fli"));
    let paths: String = (0..6)
        .map(|id| format!("class{}/{:03}.jpg\n", id / 3, id % 3))
        .collect();
    fs::write(&list, paths).unwrap();
    let (index, _) = Source::detect(root).unwrap().open().unwrap();
    index.save(&saved).unwrap();
    let sources = || {
        [
            Source::detect(root).unwrap(),
            Source::List(list.clone(), ListOptions::default()),
            Source::detect(&saved).unwrap(),
        ]
    };
    let make = |source: Source, rule: CaptionRule| {
        let b = Loader::builder(source).helper(FEATHERLOAD).batch_size(6);
        b.num_workers(0).captions(rule)
    };
    let lines = CaptionRule {
        lines: true,
        ..CaptionRule::of_column(".txt")
    };
    for source in sources() {
        let mut loader = make(source, lines.clone())
            .columns([".txt"])
            .build()
            .unwrap();
        let batch = loader.epoch().next().unwrap().unwrap();
        let ColumnValues::Text(texts) = batch.column(".txt").unwrap() else {
            panic!("no texts");
        };
        for (id, caption) in by_id(&batch) {
            assert_eq!(caption, format!("t{id}, u"));
            let row = batch.ids().iter().position(|of| *of == id).unwrap();
            assert_eq!(texts[row], Some(format!("t{id}, u\nsecond")));
        }
    }
    // Only the files of a batch are opened, when its captions are read.
    fs::remove_file(root.join("class1/000.txt")).unwrap();
    let b = make(Source::detect(root).unwrap(), lines.clone());
    let mut loader = b.shuffle(false).batch_size(3).build().unwrap();
    let mut epoch = loader.epoch();
    let first = epoch.next().unwrap().unwrap();
    assert_eq!(first.captions().unwrap().len(), 3);
    let second = epoch.next().unwrap().unwrap();
    let e = second.captions().unwrap_err().to_string();
    for part in ["class1/000.txt", "sample 3", "write this file", "`missing`"] {
        assert!(e.contains(part), "{e}");
    }
    // A column that is not named is not read by name.
    let e = first.column(".txt").unwrap_err().to_string();
    assert!(e.contains("no column '.txt'"), "{e}");
    assert_eq!(first.columns().names().count(), 0);
    drop((first, second, epoch));
    let empty = CaptionRule {
        missing: MissingCaption::Empty,
        prefix: "p".into(),
        ..lines.clone()
    };
    let b = make(Source::detect(root).unwrap(), empty).columns([".txt"]);
    let mut loader = b.shuffle(false).build().unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    assert_eq!(batch.captions().unwrap()[2..4], ["p t2, u", "p "]);
    let ColumnValues::Text(texts) = batch.column(".txt").unwrap() else {
        panic!("no texts");
    };
    assert_eq!((texts[3].as_deref(), texts[4].is_some()), (None, true));
}

#[test]
fn what_cannot_be_a_caption_is_refused() {
    let (dir, table) = scene();
    fs::write(dir.path().join("class0/000.txt"), "text").unwrap();
    let refused = |path: &Path, rule: CaptionRule| {
        let b = builder(path).num_workers(0).captions(rule);
        b.build().unwrap_err().to_string()
    };
    let of = |column: &str| CaptionRule::of_column(column);
    let folder = dir.path();
    for (path, rule, parts) in [
        (&*table, of("score"), ["'score' has", "columns"]),
        (&table, of("caption"), ["caption", "captions"]),
        (&table, of(".txt"), [".txt", "captions"]),
        (folder, of("caption"), ["a folder has none", ".txt"]),
        (folder, of(".tags"), ["000.tags", "class0/000.jpg"]),
        (folder, of(".jpg"), [".jpg", "extension of images"]),
        (folder, of("./a"), ["./a", "is no extension"]),
        (
            folder,
            CaptionRule {
                drop: 2.0,
                ..of(".txt")
            },
            ["`drop: 2`", "0 to 1"],
        ),
    ] {
        let e = refused(path, rule);
        for part in parts {
            assert!(e.contains(part), "{part}: {e}");
        }
    }
    let mut loader = builder(&table).num_workers(0).build().unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    assert!(batch.caption_rows().is_none());
    let e = batch.captions().unwrap_err().to_string();
    assert!(e.contains("no captions"), "{e}");
    // A rule without a column makes captions of values that the program has.
    let rule = CaptionRule {
        prefix: "p".into(),
        ..CaptionRule::default()
    };
    let mut loader = (builder(&table).num_workers(0).batch_size(2).captions(rule))
        .build()
        .unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    let e = batch.captions().unwrap_err().to_string();
    assert!(e.contains("`column` is missing"), "{e}");
    let made = |texts: Vec<Option<String>>| {
        let rows = batch.caption_rows().unwrap();
        rows.of_values(&ColumnValues::Text(texts))
    };
    let both = made(vec![Some("a".into()), Some("b".into())]).unwrap();
    assert_eq!(both, ["p a", "p b"]);
    let e = made(vec![Some("a".into())]).unwrap_err().to_string();
    assert!(e.contains("1 values for 2 rows"), "{e}");
    let e = made(vec![Some("a".into()), None]).unwrap_err().to_string();
    assert!(e.contains(&format!("sample {}", batch.ids()[1])), "{e}");
    // Images in memory have no files beside them.
    let mut items = MemoryItems::new().unwrap();
    items
        .push(&Picture::rgb(9, 9, 0).encode(), ItemLabel::None)
        .unwrap();
    let index = featherload::Index::memory_items(items).unwrap();
    let b = Loader::builder(index).num_workers(0).captions(of(".txt"));
    let e = b.build().unwrap_err().to_string();
    assert!(e.contains("not files of their own"), "{e}");
}
