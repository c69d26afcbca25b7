//! Pictures that workers keep for the rows of a `partner_window`: rows are those without it, and
//! pictures are decoded once.

use std::path::Path;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::recipe::{
    CopyPaste, Mosaic, RandomCrop, RandomHorizontalFlip, Resize, TruncationPolicy,
};
use featherload::{InstanceMasks, LoaderBuilder, Recipe, RowStatus, State};

use super::copy_paste::{COUNT, keeps_all, levels, with_labels, with_objects, write_images};
use crate::common::builder;
use crate::common::rows::{assert_same, stream, take};

const SIDE: u32 = 24;

/// A window of all positions draws the partners that no window draws.
const ALL: u32 = COUNT;

fn mosaic(partner_window: Option<u32>) -> Recipe {
    let joint = Mosaic {
        partner_window,
        ..Mosaic::new(SIDE)
    };
    Recipe::new("kept").then(Resize::longer(SIDE)).then(joint)
}

fn images(dir: &Path, recipe: Recipe) -> LoaderBuilder {
    let builder = builder(&dir.join("images")).recipe(levels(recipe));
    builder.batch_size(4).shuffle(false).epochs(2)
}

#[test]
fn rows_are_those_without_kept_pictures() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    for masks in [None, Some(InstanceMasks::Full)] {
        let make = |window, workers| {
            let paste = CopyPaste {
                max_overlap: 0.9,
                partner_window: window,
                ..CopyPaste::default()
            };
            let recipe = mosaic(window).then(RandomCrop::new(SIDE));
            let recipe = recipe.then(paste).then(RandomHorizontalFlip::default());
            let builder = with_labels(with_objects(dir.path(), keeps_all(masks)));
            let builder = builder.recipe(levels(recipe)).batch_size(4).epochs(2);
            builder.num_workers(workers)
        };
        let want = stream(&mut make(None, 0).build().unwrap(), 2);
        assert_eq!(want.len(), 2 * COUNT as usize);
        assert!(want.iter().all(|row| row.status == RowStatus::Ok));
        for workers in [0, 1, 2, 8] {
            let mut loader = make(Some(ALL), workers).build().unwrap();
            let got = stream(&mut loader, 2);
            // Without kept pictures each row takes 8.
            let decoded = loader.report().unwrap().decoded_images;
            assert!(decoded < 8 * 2 * u64::from(COUNT), "{decoded}");
            assert_same(&got, &want, &format!("{masks:?}, {workers} workers"));
        }
        let killed = make(Some(ALL), 2).kill_workers_every(Duration::from_millis(4));
        assert_same(&stream(&mut killed.build().unwrap(), 2), &want, "killed");
        let (first, state) = take(&mut make(Some(ALL), 2).build().unwrap(), 2);
        let text = serde_json::to_string(&state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        let resumed = make(Some(ALL), 3).resume(state);
        let rest = stream(&mut resumed.build().unwrap(), 2);
        assert_same(&[first, rest].concat(), &want, "resumed");
    }
}

/// With one worker, which never meets a slot in use.
#[test]
fn pictures_are_decoded_once_in_each_window() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    let decoded = |window, workers| {
        let builder = images(dir.path(), mosaic(window)).num_workers(workers);
        let mut loader = builder.build().unwrap();
        stream(&mut loader, 2);
        loader.report().unwrap().decoded_images
    };
    let count = u64::from(COUNT);
    for workers in [0, 1] {
        assert_eq!(decoded(None, workers), 2 * 4 * count);
        // Slots for all pictures serve both epochs.
        assert_eq!(decoded(Some(ALL), workers), count);
        assert_eq!(decoded(Some(1000), workers), count);
        // The samples of a window replace those of the window before.
        assert_eq!(decoded(Some(7), workers), 2 * count);
    }
    // Two workers may decode a picture at the same time.
    assert!(decoded(Some(ALL), 2) < 2 * 4 * count);
}

/// A picture counts as truncated in each row, as if it were decoded there.
#[test]
fn truncated_pictures_are_counted_as_without_kept_pictures() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    let folder = dir.path().join("images");
    for path in std::fs::read_dir(&folder).unwrap().take(3) {
        let path = path.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - bytes.len() / 4]).unwrap();
    }
    let truncated = |window| {
        let recipe = mosaic(window).with_truncated(TruncationPolicy::Keep);
        let mut loader = images(dir.path(), recipe).num_workers(1).build().unwrap();
        stream(&mut loader, 2);
        loader.report().unwrap().truncated_rows
    };
    let want = truncated(None);
    assert!(want >= 6, "{want}");
    assert_eq!(truncated(Some(ALL)), want);
}

#[test]
fn the_plan_counts_kept_pictures() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    let plan = |window, workers| {
        let builder = images(dir.path(), mosaic(window)).num_workers(workers);
        builder.memory_plan(0).unwrap().memory
    };
    let bytes = u64::from(3 * SIDE * SIDE);
    for workers in [0, 2, 8] {
        let (none, some) = (plan(None, workers), plan(Some(7), workers));
        assert_eq!(none.kept_picture_bytes, 0);
        let head = some.kept_picture_bytes - 7 * bytes;
        assert!(head < 8192, "{head}");
        let more = some.total_bytes - none.total_bytes;
        assert_eq!(more, some.kept_picture_bytes);
        // As many as the data set has.
        let all = plan(Some(1_000_000), workers).kept_picture_bytes;
        assert_eq!(all, plan(Some(ALL), workers).kept_picture_bytes);
    }
    // A limit leaves room for fewer pictures, or none. Rows are the same.
    let want = stream(&mut images(dir.path(), mosaic(None)).build().unwrap(), 2);
    for room in [0, 6000, 12_000] {
        let limit = plan(None, 2).total_bytes + room;
        let limited = || {
            let builder = images(dir.path(), mosaic(Some(ALL))).num_workers(2);
            builder.memory_limit(limit).depth(3)
        };
        let memory = limited().memory_plan(0).unwrap().memory;
        assert!(memory.total_bytes <= limit && memory.kept_picture_bytes <= room);
        assert_eq!(memory.kept_picture_bytes > 0, room > 0);
        let mut loader = limited().build().unwrap();
        assert_same(&stream(&mut loader, 2), &want, &format!("room for {room}"));
    }
}
