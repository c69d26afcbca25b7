//! A PaddleClas config as the recipe of `bench`, `plan` and `rss`: its values stand,
//! flags override them, and every mistake is one line.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Output;

use featherload::Index;
use featherload::index::FolderOptions;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::class_folder;
use crate::common::command::{command, object, stderr};

/// Recipes of operations that have always been served.
const CONFIG: &str = "\
Global: {epochs: 300}
Arch: {class_num: 2}
DataLoader:
  Train:
    dataset:
      name: ImageNetDataset
      image_root: images
      cls_label_path: train.txt
      transform_ops:
        - DecodeImage: {backend: cv2}
        - RandomResizedCrop: {size: 32}
        - RandFlipImage:
        - NormalizeImage: {order: ''}
    sampler: {name: DistributedBatchSampler, batch_size: 5, drop_last: True, shuffle: False}
    loader: {num_workers: 0}
";

/// A folder with a config, a list, and 12 pictures of it.
fn folder(config: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    fs::create_dir_all(&images).unwrap();
    class_folder(&images, 2, 6);
    let (index, _) = Index::folder(&images, &FolderOptions::default()).unwrap();
    let mut list = String::new();
    for id in 0..index.len() {
        let path = index.relative_path(id).display();
        writeln!(list, "{path} {}", id / 6).unwrap();
    }
    fs::write(dir.path().join("train.txt"), list).unwrap();
    fs::write(dir.path().join("c.yaml"), config).unwrap();
    dir
}

fn featherload(dir: &Path, args: &[&str]) -> Output {
    command(args)
        .current_dir(dir)
        .env_remove("PADDLE_TRAINER_ID")
        .env_remove("PADDLE_TRAINERS_NUM")
        .env_remove("FLAGS_selected_gpus")
        .output()
        .unwrap()
}

fn bench(dir: &Path, args: &[&str]) -> Value {
    let all = [&["bench", "--recipe", "c.yaml", "--json"], args].concat();
    let out = featherload(dir, &all);
    object(&out)
}

#[test]
fn a_configs_values_stand_and_flags_override_them() {
    let dir = folder(CONFIG);
    let dir = dir.path();
    // 12 pictures in batches of 5, the short one left out, in one process, for one
    // epoch and not for 300.
    let plain = bench(dir, &[]);
    assert_eq!(
        (&plain["batches"], &plain["samples"]),
        (&2.into(), &10.into())
    );
    assert_eq!(plain["workers"], 0);
    let flags = bench(
        dir,
        &["--batch-size", "4", "--pad-last", "--num-workers", "1"],
    );
    assert_eq!(
        (&flags["batches"], &flags["samples"]),
        (&3.into(), &12.into())
    );
    assert_eq!(flags["workers"], 1);
    // The order is the config's: that of the list.
    let digest = |args: &[&str]| bench(dir, &[args, &["--digest"]].concat())["digest"].clone();
    assert_eq!(digest(&[]), digest(&["--no-shuffle"]));
    assert_ne!(digest(&[]), digest(&["--sampler", "shuffle"]));
    // The same data by other paths.
    assert_eq!(digest(&[]), digest(&["images", "--list", "train.txt"]));
    assert_eq!(digest(&[]), digest(&["train.txt", "--root", "images"]));
    assert_eq!(digest(&[]), digest(&["--list", "train.txt"]));
}

#[test]
fn plan_says_what_was_read_otherwise() {
    let text = CONFIG.replace("num_workers: 0", "num_workers: 4096");
    let dir = folder(&text);
    let out = featherload(dir.path(), &["plan", "--recipe", "c.yaml"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    let lines = crate::plan::whole_lines(&text);
    let notes: Vec<&String> = lines.iter().filter(|l| l.starts_with("note ")).collect();
    assert!(
        notes
            .iter()
            .any(|n| n.contains("c.yaml:15: num_workers is 4096")),
        "{text}"
    );
    assert!(notes.iter().any(|n| n.contains("--on-error")), "{text}");
    let args = ["plan", "--recipe", "c.yaml", "--picture", "64x64", "--json"];
    let out = featherload(dir.path(), &args);
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["outline"]["recipe"], "c");
    assert_eq!(json["notes"].as_array().unwrap().len(), notes.len());
}

#[test]
fn a_broken_picture_gives_its_row_away_unless_a_flag_says_no() {
    let dir = folder(&CONFIG.replace("drop_last: True", "drop_last: False"));
    let list = fs::read_to_string(dir.path().join("train.txt")).unwrap();
    let first = list.split(' ').next().unwrap();
    fs::write(dir.path().join("images").join(first), "nothing").unwrap();
    assert_eq!(bench(dir.path(), &[])["substituted"], 1);
    let args = ["bench", "--recipe", "c.yaml", "--on-error", "stop"];
    assert_eq!(featherload(dir.path(), &args).status.code(), Some(3));
}

#[test]
fn unknown_operations_are_refused_with_their_line_or_left_out_aloud() {
    let dir = folder(&CONFIG.replace(
        "        - RandFlipImage:",
        "        - RandomWeatherAugment: {prob: 1}\n        - RandFlipImage:",
    ));
    let args = ["bench", "--recipe", "c.yaml"];
    let out = featherload(dir.path(), &args);
    assert_eq!(out.status.code(), Some(2));
    let message = stderr(&out);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(
        message.contains("c.yaml:12: operation 'RandomWeatherAugment' is unknown"),
        "{message}"
    );
    let out = featherload(dir.path(), &[&args[..], &["--skip-unknown-ops"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stderr(&out).contains("c.yaml:12: RandomWeatherAugment is left out"));
}

#[test]
fn mistakes_are_one_line() {
    let dir = folder(CONFIG);
    for (args, word) in [
        (
            &["bench", "--recipe", "c.yaml", "--mode", "eval"][..],
            "c.yaml:4: DataLoader has no tree 'eval'",
        ),
        (
            &["bench", "images", "--mode", "eval"],
            "`--mode` needs a PaddleClas config",
        ),
        (
            &["plan", "--skip-unknown-ops"],
            "`--skip-unknown-ops` needs",
        ),
        (&["bench"], "SRC is missing"),
        (&["plan", "--sampler", "shuffle"], "--sampler has no effect"),
        (
            &["bench", "images", "--list", "train.txt", "--root", "images"],
            "give one of them",
        ),
        (
            &["rss", "--recipe", "c.yaml", "--mode", "test"],
            "no tree 'test'",
        ),
    ] {
        let out = featherload(dir.path(), args);
        let message = stderr(&out);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains(word), "{args:?}: {message}");
    }
}

#[test]
fn a_wrong_rank_in_the_environment_is_its_own_and_a_flag_stands_in_for_it() {
    let dir = folder(CONFIG);
    let bench = |rank: &[&str]| {
        command(&["bench", "--recipe", "c.yaml"])
            .args(rank)
            .current_dir(dir.path())
            .env("PADDLE_TRAINER_ID", "first")
            .env("PADDLE_TRAINERS_NUM", "2")
            .env("FLAGS_selected_gpus", "0")
            .output()
            .unwrap()
    };
    let out = bench(&[]);
    let message = stderr(&out);
    assert_eq!(out.status.code(), Some(2), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("PADDLE_TRAINER_ID=\"first\""), "{message}");
    assert!(!message.contains("c.yaml"), "{message}");
    let out = bench(&["--rank", "0", "--world-size", "2"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
}

#[test]
fn rss_measures_a_config() {
    let dir = folder(&CONFIG.replace("num_workers: 0", "num_workers: 1"));
    let args = [
        "rss",
        "--recipe",
        "c.yaml",
        "--num-workers",
        "0",
        "--seconds",
        "0.5",
        "--json",
    ];
    let out = featherload(dir.path(), &args);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (&report["batch"], &report["samples"]),
        (&5.into(), &12.into())
    );
}

#[test]
fn boxes_of_a_config_go_with_a_list_and_not_with_a_folder() {
    let cars = CONFIG
        .replace(
            "      name: ImageNetDataset\n",
            "      name: CompCars\n      label_root: boxes\n      bbox_crop: True\n",
        )
        .replace("        - DecodeImage: {backend: cv2}\n", "");
    let dir = folder(&cars);
    let out = featherload(dir.path(), &["bench", "images", "--recipe", "c.yaml"]);
    let message = stderr(&out);
    assert_eq!(out.status.code(), Some(2), "{message}");
    assert!(message.contains("give a list with `--list`"), "{message}");
    // Each picture of the list has its box: 2 x 2 of its pixels.
    let images = dir.path().join("images");
    let (index, _) = Index::folder(&images, &FolderOptions::default()).unwrap();
    for id in 0..index.len() {
        let boxes = dir.path().join("boxes").join(index.relative_path(id));
        fs::create_dir_all(boxes.parent().unwrap()).unwrap();
        fs::write(boxes.with_extension("txt"), "1\n1 1 3 3\n").unwrap();
    }
    let digest = |dir: &Path| bench(dir, &["--digest", "--batch-size", "4"])["digest"].clone();
    let cut = digest(dir.path());
    let whole = folder(&cars.replace("bbox_crop: True", "bbox_crop: False"));
    assert_ne!(cut, digest(whole.path()));
}

#[test]
fn a_delimiter_of_a_config_makes_a_csv_a_list() {
    let commas = CONFIG.replace("train.txt", "train.csv\n      delimiter: ','");
    let dir = folder(&commas);
    let at = |name: &str| dir.path().join(name);
    let list = fs::read_to_string(at("train.txt")).unwrap();
    fs::write(at("train.csv"), list.replace(' ', ",")).unwrap();
    fs::write(at("other.yaml"), CONFIG).unwrap();
    fs::write(
        at("table.csv"),
        format!("path,x\n{}", list.replace(' ', ",")),
    )
    .unwrap();
    let digest =
        |args: &[&str]| bench(dir.path(), &[args, &["--digest"]].concat())["digest"].clone();
    let of_config = digest(&[]);
    assert!(of_config.is_string());
    assert_eq!(digest(&["--list", "train.csv"]), of_config);
    // Its own options make it a table; so it is where a config has no delimiter.
    let table = ["--list", "table.csv", "--label-column", "x"];
    assert_eq!(digest(&table), of_config);
    let other = [&table[..], &["--recipe", "other.yaml", "--digest"]].concat();
    let out = featherload(dir.path(), &[&["bench", "--json"], &other[..]].concat());
    assert_eq!(object(&out)["digest"], of_config);
    // The config's own list is none.
    let args = ["bench", "--recipe", "c.yaml", "--label-column", "x"];
    let message = stderr(&featherload(dir.path(), &args));
    assert!(
        message.contains("which is a list file: remove the option"),
        "{message}"
    );
}
