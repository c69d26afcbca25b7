//! PaddleClas' own configs: all of them load, compile, plan and give a batch over the shared
//! photographs.
//!
//! Needs the shared data (`FEATHERLOAD_DATA`); says so where they are not there.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use featherload::index::{FolderOptions, ListDelimiter, ListLabels, ListOptions};
use featherload::paddle::{ConfigOptions, LauncherEnvironment, TrainingConfig};
use featherload::{Index, OnError, Result, Source};

use crate::common::photos;

/// Of 1,056 lines, so that data sets are larger than what configs call a batch.
const REPEATS: usize = 16;
const ROWS: u32 = 4;

fn options() -> ConfigOptions {
    ConfigOptions {
        skip_unknown_ops: false,
        environment: LauncherEnvironment::default(),
        usable_cpus: 2,
    }
}

fn configs(data: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![data.join("paddleclas")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "yaml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Boxes of the photographs, where the config's data set has some.
fn write_boxes(folder: &Path, names: &[&Path]) {
    for name in names {
        let name = name.to_str().unwrap();
        let stem = name.split('.').next().unwrap();
        let path = folder.join(format!("{stem}.txt"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "1\n20 10 150 100000\n").unwrap();
    }
}

/// A list of the photographs in the form that the config's data set has.
fn list(photos: &Path, training: &TrainingConfig, file: PathBuf) -> Source {
    let (index, _) = Index::folder(photos, &FolderOptions::default()).unwrap();
    let names: Vec<&Path> = (0..index.len()).map(|id| index.relative_path(id)).collect();
    assert!(names.len() >= 60, "{}", photos.display());
    let options = ListOptions {
        root: Some(photos.to_owned()),
        boxes: (training.list_options.boxes.as_ref()).map(|_| file.with_file_name("boxes")),
        ..training.list_options.clone()
    };
    if let Some(folder) = &options.boxes {
        write_boxes(folder, &names);
    }
    let classes = training.class_num.unwrap_or(64).clamp(1, 64) as usize;
    let between = match options.delimiter {
        ListDelimiter::Blanks => ' ',
        ListDelimiter::Byte(byte) => char::from(byte),
    };
    let mut text = String::new();
    for _ in 0..REPEATS {
        for (i, name) in names.iter().enumerate() {
            let name = name.to_str().unwrap();
            assert!(!name.contains(char::is_whitespace), "{name}");
            let label = match options.labels {
                ListLabels::Vector => format!("{},1,0", i % 2),
                // Lines are paths alone.
                ListLabels::None => {
                    writeln!(text, "{name}").unwrap();
                    continue;
                }
                ListLabels::Second => format!("{}{between}7", i % classes),
                _ => (i % classes).to_string(),
            };
            writeln!(text, "{name}{between}{label}").unwrap();
        }
    }
    fs::write(&file, text).unwrap();
    Source::List(file, options)
}

/// Compiles, plans, and gives one batch.
fn one_batch(photos: &Path, training: &TrainingConfig, scratch: &Path) -> Result<()> {
    let file = scratch.join("list.txt");
    let builder = |source| -> Result<_> {
        Ok(training
            .builder(source)?
            .batch_size(ROWS)
            .num_workers(0)
            .on_error(OnError::Stop))
    };
    builder(list(photos, training, file.clone()))?.memory_plan(0)?;
    let mut loader = builder(list(photos, training, file))?.build()?;
    let mut epoch = loader.epoch();
    let batch = epoch.next().expect("an epoch has a batch")?;
    assert!(!batch.is_empty() && batch.faults().is_empty());
    Ok(())
}

#[test]
fn all_configs_of_paddleclas_give_batches() {
    let Some(photos) = photos("all_configs_of_paddleclas_give_batches") else {
        return;
    };
    let data = photos.parent().unwrap();
    let configs = configs(data);
    assert_eq!(configs.len(), 252, "{}", data.display());
    let scratch = tempfile::tempdir().unwrap();
    for config in &configs {
        let ended = TrainingConfig::read(config, "train", &options())
            .and_then(|training| one_batch(&photos, &training, scratch.path()));
        if let Err(e) = ended {
            panic!("{}: {e}", config.display());
        }
    }
}

/// Every refusal says where; what is refused in every config is refused for what
/// it is, not for a slip of the reader.
#[test]
fn every_tree_is_read_or_refused_with_its_line() {
    let Some(photos) = photos("every_tree_is_read_or_refused_with_its_line") else {
        return;
    };
    let (mut read, mut absent) = (0, 0);
    for config in configs(photos.parent().unwrap()) {
        for mode in ["train", "eval", "Eval.Query", "eval.gallery"] {
            match TrainingConfig::read(&config, mode, &options()) {
                Ok(training) => {
                    read += 1;
                    assert!(training.recipe.ops.len() >= 3, "{}", config.display());
                }
                Err(e) => {
                    let text = e.to_string();
                    let place = format!("{}:", config.display());
                    let rest = text.strip_prefix(&place).expect(&text);
                    let line: String = rest.chars().take_while(char::is_ascii_digit).collect();
                    assert!(!line.is_empty(), "{text}");
                    absent += usize::from(text.contains("has no tree"));
                }
            }
        }
    }
    // 234 have Eval, 16 Query and Gallery instead, 2 nothing.
    assert_eq!(absent, 234 * 2 + 16 + 2 * 3);
    assert!(read >= 235 + 234, "{read}");
}
