//! What `plan` says of a recipe and of a run, and that a run keeps to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use featherload::recipe::RecipeFormat;
use featherload::{Recipe, error};
use serde_json::Value;

use crate::common::command::{code, featherload, object, refusal, refusal_of_plan, stderr};

/// What the command writes to stdout; it must end with 0.
#[track_caller]
fn stdout(args: &[&str]) -> String {
    let out = featherload(args);
    let message = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {message}");
    String::from_utf8(out.stdout).unwrap()
}

#[track_caller]
fn json(args: &[&str]) -> Value {
    object(&featherload(&[args, &["--json"]].concat()))
}

/// What a refused command says.
#[track_caller]
fn refused(args: &[&str]) -> String {
    refusal(&featherload(args))
}

/// Of a plan, behind its table.
fn refused_plan(args: &[&str]) -> String {
    let out = featherload(args);
    let table = String::from_utf8_lossy(&out.stdout);
    assert!(table.contains("MiB in all: PSS"), "{table}");
    refusal_of_plan(&out)
}

fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key}: {value}"))
}

/// A recipe file of these operations, as YAML lists them.
fn recipe(dir: &Path, name: &str, ops: &str) -> String {
    let file = dir.join(name);
    fs::write(&file, format!("featherload: 1\nops:\n{ops}")).unwrap();
    file.to_str().unwrap().to_owned()
}

const LAB: &str = "  - decode\n  - convert_color: {to: lab}\n  - resize: {size: [256, 256]}\n";

/// Of an order: name, height, width, element, bytes of the picture.
fn stages(order: &Value) -> Vec<(String, u64, u64, String, u64)> {
    let of = |s: &Value| {
        (
            s["name"].as_str().unwrap().to_owned(),
            number(s, "height"),
            number(s, "width"),
            s["element"].as_str().unwrap().to_owned(),
            number(s, "picture_bytes"),
        )
    };
    order["stages"].as_array().unwrap().iter().map(of).collect()
}

#[track_caller]
fn assert_stages(order: &Value, want: &[(&str, u64, u64, &str, u64)]) {
    let got = stages(order);
    let got: Vec<_> = got
        .iter()
        .map(|(n, h, w, e, b)| (n.as_str(), *h, *w, e.as_str(), *b))
        .collect();
    assert_eq!(got, want);
}

/// (operation, the one that it is behind, whether values stay).
fn moves(moves: &Value) -> Vec<(&str, &str, bool)> {
    let of = |m: &'_ Value| m["why"].as_str().is_some_and(|why| why.len() > 20);
    let all = moves.as_array().unwrap();
    assert!(all.iter().all(of), "{all:?}");
    all.iter()
        .map(|m| {
            (
                m["op"].as_str().unwrap(),
                m["behind"].as_str().unwrap(),
                m["exact"].as_bool().unwrap(),
            )
        })
        .collect()
}

const PICTURE: u64 = 2160 * 3840;
/// Levels, and floats, of three channels.
const RGB8: u64 = 3;
const RGB32: u64 = 12;

fn outline(recipe: &str, reorder: &str) -> Value {
    let args = ["plan", "--recipe", recipe, "--picture", "2160x3840"];
    let args = [&args[..], &["--reorder", reorder, "--num-workers", "2"]].concat();
    let value = json(&args);
    let o = &value["outline"];
    assert_eq!(o["reorder"], reorder);
    assert_eq!(o["picture"], serde_json::json!([2160, 3840]));
    value
}

#[test]
fn lab_in_front_of_a_resize_stays_there_unless_values_may_change() {
    let dir = tempfile::tempdir().unwrap();
    let lab = &recipe(dir.path(), "lab.yaml", LAB);
    let written = [
        ("decode", 2160, 3840, "u8", PICTURE * RGB8),
        ("convert_color", 2160, 3840, "f32", PICTURE * RGB32),
        ("resize", 256, 256, "f32", 256 * 256 * RGB32),
        ("row of the batch", 256, 256, "f32", 256 * 256 * RGB32),
    ];
    // 2160 rows become 256: a triangle of 8.4375 rows to both sides spans at most
    // 19, two more are on their way; rows of floats are padded to four, and 64 bytes.
    let rows = (19 + 2) * (3840 * 16 + 64);
    let scratch = PICTURE * RGB8 + PICTURE * RGB32 + 256 * 256 * RGB32 + rows;
    let unmoved = ("convert_color", "resize", false);
    for reorder in ["off", "exact", "fast"] {
        let plan = outline(lab, reorder);
        let o = &plan["outline"];
        assert_eq!(o["recipe"], "lab");
        assert_stages(&o["written"], &written);
        // The weights of the resize come on top.
        let scratch_bytes = number(&o["written"], "scratch_bytes");
        assert!(
            (scratch..scratch + (1 << 20)).contains(&scratch_bytes),
            "{scratch_bytes} for {scratch}"
        );
        let held: Vec<u64> = o["written"]["stages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| number(s, "held_bytes"))
            .collect();
        assert_eq!(
            held,
            [
                24_883_200,
                24_883_200 + 99_532_800,
                scratch_bytes,
                scratch_bytes
            ]
        );
        if reorder == "fast" {
            assert_stages(
                &o["planned"],
                &[
                    ("decode + resize", 256, 256, "u8", 256 * 256 * RGB8),
                    ("convert_color", 256, 256, "f32", 256 * 256 * RGB32),
                    ("row of the batch", 256, 256, "f32", 256 * 256 * RGB32),
                ],
            );
            assert_eq!(moves(&o["moves"]), [unmoved]);
            assert_eq!(moves(&o["refused"]), []);
            assert_eq!(
                o["fused"][0]["ops"],
                serde_json::json!(["decode", "resize"])
            );
            assert!(number(&o["planned"], "scratch_bytes") * 50 < scratch);
        } else {
            assert_eq!(o["planned"], o["written"]);
            assert_eq!(moves(&o["moves"]), []);
            let refusals = if reorder == "off" {
                vec![]
            } else {
                vec![unmoved]
            };
            assert_eq!(moves(&o["refused"]), refusals);
            assert_eq!(o["fused"], serde_json::json!([]));
        }
        for m in [&o["moves"], &o["refused"]] {
            let why = &m[0]["why"];
            assert!(why.is_null() || why.as_str().unwrap().contains("not linear"));
        }
        let m = &plan["memory"];
        assert_eq!(number(m, "slot_bytes"), 64 * 256 * 256 * RGB32);
        // Buffers keep their sizes from sample to sample.
        let kept = number(&plan["memory"], "scratch_bytes");
        let own = number(&o["planned"], "scratch_bytes");
        assert!((own..=2 * own).contains(&kept), "{kept} for {own}");
    }
}

#[test]
fn neither_a_source_nor_a_size_has_to_be_named() {
    let plan = json(&["plan"]);
    assert_eq!(plan["outline"]["picture"], serde_json::json!([1080, 1920]));
    assert_eq!(plan["outline"]["recipe"], "train224");
    // What means nothing for pictures that have sizes, or without any.
    let out = featherload(&["plan", "/tmp", "--picture", "10x10"]);
    assert_eq!(out.status.code(), Some(2));
    for args in [&["--sample", "3"][..], &["--picture", "0x10"]] {
        let out = featherload(&[&["plan"], args].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn presets_are_fused_and_move_nothing() {
    const CROP: u64 = 224 * 224 * RGB8;
    let crop = "random_resized_crop (its crop)";
    let resize = "random_resized_crop (its resize)";
    let train = [
        ("decode", 2160, 3840, "u8", PICTURE * RGB8),
        (crop, 2160, 3326, "u8", 2160 * 3326 * RGB8),
        (resize, 224, 224, "u8", CROP),
        ("random_horizontal_flip", 224, 224, "u8", CROP),
        ("normalize", 224, 224, "f32", CROP * 4),
        ("cast + row of the batch", 224, 224, "f16", CROP * 2),
    ];
    let eval = [
        ("decode", 2160, 3840, "u8", PICTURE * RGB8),
        ("resize", 256, 455, "u8", 256 * 455 * RGB8),
        ("center_crop", 224, 224, "u8", CROP),
        ("normalize", 224, 224, "f32", CROP * 4),
        ("cast + row of the batch", 224, 224, "f32", CROP * 4),
    ];
    let full = [
        ("decode", 2160, 3840, "u8", PICTURE * RGB8),
        ("cast + row of the batch", 2160, 3840, "u8", PICTURE * RGB8),
    ];
    let first = format!("decode + {crop} + {resize} + random_horizontal_flip");
    let row = "normalize + cast + row of the batch";
    let fused_train = [
        (first.as_str(), 224, 224, "u8", CROP),
        (row, 224, 224, "f16", CROP * 2),
    ];
    let fused_eval = [
        ("decode + resize + center_crop", 224, 224, "u8", CROP),
        (row, 224, 224, "f32", CROP * 4),
    ];
    for (name, written, fused) in [
        ("train224", &train[..], &fused_train[..]),
        ("eval224", &eval[..], &fused_eval[..]),
        ("full", &full[..], &full[..]),
    ] {
        let off = outline(name, "off");
        assert_stages(&off["outline"]["written"], written);
        assert_eq!(off["outline"]["planned"], off["outline"]["written"]);
        assert_eq!(off["outline"]["fused"], serde_json::json!([]));
        for reorder in ["exact", "fast"] {
            let plan = outline(name, reorder);
            let o = &plan["outline"];
            assert_eq!(o["written"], off["outline"]["written"]);
            assert_stages(&o["planned"], fused);
            assert_eq!(moves(&o["moves"]), []);
            assert_eq!(moves(&o["refused"]), []);
            assert!(!o["fused"].as_array().unwrap().is_empty());
            // No move, no choice.
            assert!(!o["choices"].to_string().contains("reorder fast"), "{o}");
            // Only with `fast` JPEG data are decoded smaller, where there is a resize.
            let scaled = o["choices"].to_string().contains("at 1/8)");
            assert_eq!(scaled, reorder == "fast" && name != "full", "{name} {o}");
        }
    }
}

#[test]
fn moves_and_refusals_of_a_recipe_in_a_bad_order() {
    let dir = tempfile::tempdir().unwrap();
    let ops = "  - gaussian_blur: {kernel_size: 5}
  - grayscale: {num_output_channels: 3}
  - random_horizontal_flip
  - random_crop: {size: 1000}
  - color_jitter: {contrast: 0.4}
  - normalize: {mean: 0.5, std: 0.5}
  - center_crop: {size: 800}
  - resize: {size: [64, 64]}
";
    let file = &recipe(dir.path(), "bad.yaml", ops);
    let exact = outline(file, "exact");
    let o = &exact["outline"];
    assert_eq!(
        moves(&o["moves"]),
        [
            ("grayscale", "random_horizontal_flip", true),
            ("grayscale", "random_crop", true),
            ("normalize", "center_crop", true),
        ]
    );
    assert_eq!(
        moves(&o["refused"]),
        [
            ("color_jitter", "center_crop", false),
            ("normalize", "resize", false),
        ]
    );
    assert!(
        o["refused"][0]["why"]
            .as_str()
            .unwrap()
            .contains("contrast")
    );
    let fast = outline(file, "fast");
    assert!(moves(&fast["outline"]["moves"]).contains(&("normalize", "resize", false)));
    assert_eq!(fast["outline"]["written"], o["written"]);
}

/// Lines of a plan, those that go on below their label joined to it; one blank between words.
pub fn whole_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match lines.last_mut() {
            Some(last) if line.starts_with("           ") && !words.is_empty() => {
                last.push(' ');
                last.push_str(&words);
            }
            _ => lines.push(words),
        }
    }
    lines
}

#[test]
fn the_text_has_the_numbers_of_the_json() {
    let dir = tempfile::tempdir().unwrap();
    let lab = &recipe(dir.path(), "lab.yaml", LAB);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let at_most = |bytes: u64| (mib(bytes) * 10.0).ceil() / 10.0;
    for (recipe, reorder) in [(lab.as_str(), "exact"), (lab, "fast"), ("train224", "fast")] {
        let plan = outline(recipe, reorder);
        let text = stdout(&[
            "plan",
            "--recipe",
            recipe,
            "--picture",
            "2160x3840",
            "--reorder",
            reorder,
            "--num-workers",
            "2",
        ]);
        // By words, not by columns.
        let lines = whole_lines(&text);
        let has = |line: String| assert!(lines.contains(&line), "no '{line}' in\n{text}");
        let o = &plan["outline"];
        for order in ["written", "planned"] {
            for s in o[order]["stages"].as_array().unwrap() {
                has(format!(
                    "{}x{} {} {:.2} {:.2} {}",
                    s["width"],
                    s["height"],
                    s["element"].as_str().unwrap(),
                    mib(number(s, "picture_bytes")),
                    mib(number(s, "held_bytes")),
                    s["name"].as_str().unwrap(),
                ));
            }
        }
        for (list, word) in [("moves", "moved"), ("refused", "not moved")] {
            for m in o[list].as_array().unwrap() {
                let effect = if m["exact"] == true {
                    "exact"
                } else {
                    "changes values"
                };
                let [op, behind, why] = ["op", "behind", "why"].map(|k| m[k].as_str().unwrap());
                has(format!("{word} {op} after {behind} ({effect}): {why}"));
            }
        }
        let m = &plan["memory"];
        has(format!(
            "{:.1} MiB ring: 3 slots of 64 rows, shared by all",
            at_most(number(m, "ring_bytes"))
        ));
        has(format!(
            "{:.1} MiB for each of 2 workers: {:.1} of scratch, 0.0 of input, the process",
            at_most(number(m, "worker_bytes")),
            at_most(number(m, "scratch_bytes"))
        ));
        has(format!(
            "{:.1} MiB in all: PSS of all processes at most",
            at_most(number(m, "total_bytes"))
        ));
        adds_up(m);
    }
}

#[track_caller]
fn adds_up(m: &Value) {
    let processes = number(m, "workers").max(1);
    assert_eq!(
        number(m, "total_bytes"),
        number(m, "ring_bytes") + processes * number(m, "worker_bytes") + number(m, "fixed_bytes")
    );
    assert!(number(m, "worker_bytes") >= number(m, "scratch_bytes") + number(m, "input_bytes"));
    if number(m, "workers") > 0 {
        assert!(number(m, "ring_bytes") >= number(m, "depth") * number(m, "slot_bytes"));
    }
}

/// Pictures in all formats.
fn mixed(dir: &Path) -> PathBuf {
    let folder = dir.join("mixed");
    let name = folder.to_str().unwrap();
    stdout(&[
        "demo",
        name,
        "--kind",
        "mixed",
        "--images",
        "40",
        "--classes",
        "2",
    ]);
    folder
}

#[test]
fn the_memory_of_a_run_adds_up_and_a_run_keeps_to_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let folder = mixed(dir.path());
    let source = folder.to_str().unwrap();
    let plan = |more: &[&str]| json(&[&["plan", source, "--batch-size", "8"], more].concat());
    for workers in ["0", "1", "2"] {
        let with = |more: &[&str]| plan(&[&["--num-workers", workers], more].concat());
        let total = |depth: &str| {
            let p = with(&["--depth", depth]);
            adds_up(&p["memory"]);
            assert_eq!(p["memory"]["depth"].to_string(), depth);
            (
                number(&p["memory"], "total_bytes"),
                number(&p["memory"], "ring_bytes"),
            )
        };
        let p = with(&[]);
        assert_eq!(p["memory"]["depth"], 3);
        assert_eq!((&p["samples"], &p["batches"]), (&40.into(), &5.into()));
        // Buffers that other samples have left are kept beside those of the largest.
        let largest = number(&p["largest"], "scratch_bytes");
        let kept = number(&p["memory"], "scratch_bytes");
        assert!(
            (largest..=largest + (64 << 20)).contains(&kept),
            "{kept} for {largest}"
        );
        let longest = fs::read_dir(&folder)
            .unwrap()
            .flat_map(|class| fs::read_dir(class.unwrap().path()).into_iter().flatten())
            .map(|file| file.unwrap().metadata().unwrap().len())
            .max();
        assert_eq!(Some(number(&p["memory"], "input_bytes")), longest);
        if workers == "0" {
            continue;
        }
        let (least, _) = total("1");
        let (two, ring) = total("2");
        let (three, _) = total("3");
        assert!(least < two && two < three);
        let limit = |bytes: u64| bytes.to_string();
        // Fewer slots, where their number was not asked for.
        for (bytes, depth) in [
            (three, 3),
            (three - 1, 2),
            (two, 2),
            (two - 1, 1),
            (least, 1),
        ] {
            let p = with(&["--memory-limit", &limit(bytes)]);
            assert_eq!(number(&p["memory"], "depth"), depth);
            assert_eq!(number(&p["limit"], "bytes"), bytes);
            assert!(number(&p["memory"], "total_bytes") <= bytes);
        }
        let bench = [
            "bench",
            source,
            "--batch-size",
            "8",
            "--num-workers",
            workers,
        ];
        let two_bytes = two;
        let two = limit(two);
        let b = json(&[&bench[..], &["--memory-limit", &two]].concat());
        assert_eq!(
            b["ring_mib"].as_f64().unwrap(),
            ring as f64 / f64::from(1 << 20)
        );
        assert_eq!(b["samples"], 40);
        // Fewer slots are told, in one line.
        let lowered = format!(
            "`--depth` is 2 instead of 3: --memory-limit allows {}",
            error::size_rounded_down(two_bytes)
        );
        let out = featherload(&[&bench[..], &["--memory-limit", &two]].concat());
        assert_eq!(stderr(&out), format!("featherload: warning: {lowered}\n"));
        let text = stdout(&[
            "plan",
            source,
            "--batch-size",
            "8",
            "--num-workers",
            workers,
            "--memory-limit",
            &two,
        ]);
        assert!(text.contains(&format!("depth      {lowered}\n")), "{text}");
        // Refused, by both and in the same words, with what would fit.
        let plan = [
            "plan",
            source,
            "--batch-size",
            "8",
            "--num-workers",
            workers,
        ];
        let too_deep = ["--depth", "3", "--memory-limit", &two];
        let message = refused_plan(&[&plan[..], &too_deep].concat());
        assert_eq!(message, refused(&[&bench[..], &too_deep].concat()));
        let allows = format!(
            "--memory-limit allows {}",
            error::size_rounded_down(two_bytes)
        );
        for word in [
            &format!("needs {} ", error::size_rounded_up(three)),
            &allows,
            "depth 1",
        ] {
            assert!(message.contains(word), "{word}: {message}");
        }
        let low = limit(least - 1);
        let message = refused_plan(&[&plan[..], &["--memory-limit", &low]].concat());
        assert!(
            message.contains(&format!(
                "needs {} with depth 1",
                error::size_rounded_up(least)
            )),
            "{message}"
        );
        // What it names fits, and no more does.
        let (_, batch) = message.split_once(": use --batch-size ").unwrap();
        let batch: u32 = batch.split(',').next().unwrap().parse().unwrap();
        let of = |batch: u32| {
            let batch = batch.to_string();
            let args = [
                "--num-workers",
                workers,
                "--batch-size",
                &batch,
                "--depth",
                "1",
            ];
            let p = json(&[&["plan", source], &args[..]].concat());
            number(&p["memory"], "total_bytes")
        };
        assert!(of(batch) < least && of(batch + 1) >= least, "{batch}");
        let message = refused_plan(&[&plan[..], &["--memory-limit", "1M"]].concat());
        // The processes alone take more.
        assert!(
            message.contains("1 MiB: use a higher limit. The"),
            "{message}"
        );
    }
}

#[test]
fn samples_are_drawn_as_they_will_be() {
    let dir = tempfile::tempdir().unwrap();
    let folder = mixed(dir.path());
    let source = folder.to_str().unwrap();
    let text = |seed: &str| stdout(&["plan", source, "--sample", "3", "--seed", seed]);
    let rows = |text: &str| -> Vec<String> {
        let drawn = text.lines().skip_while(|l| !l.starts_with("row 0 "));
        drawn.map(str::to_owned).collect()
    };
    let first = rows(&text("0"));
    assert_eq!(first.iter().filter(|l| l.starts_with("row ")).count(), 3);
    assert_eq!(first, rows(&text("0")));
    assert_ne!(first, rows(&text("1")));
    let drawn = json(&["plan", source, "--sample", "3"])["drawn"].clone();
    let drawn = drawn.as_array().unwrap();
    assert_eq!(drawn.len(), 3);
    for (i, row) in drawn.iter().enumerate() {
        assert_eq!(number(row, "row"), i as u64);
        let names: Vec<_> = row["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s[0].as_str().unwrap())
            .collect();
        assert_eq!(names[0], "random_resized_crop (its crop)");
        assert_eq!(names[1], "random_resized_crop (its resize)");
        assert_eq!(names[names.len() - 2..], ["normalize", "cast"]);
    }
    // No more rows than there are.
    let all = json(&["plan", source, "--sample", "1000"]);
    assert_eq!(all["drawn"].as_array().unwrap().len(), 40);
}

/// Resizes that follow a library are written as recipes have them.
#[test]
fn drawn_resizes_have_the_names_of_recipes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = mixed(dir.path());
    for (op, filter) in [
        (
            "{cover_crop: {size: 32, interpolation: bilinear}}",
            "bilinear",
        ),
        (
            "{cover_crop: {size: 32, interpolation: lanczos}}",
            "lanczos",
        ),
        ("{patches: {style: qwen}}", "bicubic"),
        ("{tiles: {style: internvl, tile_size: 16}}", "bicubic"),
    ] {
        let recipe = dir.path().join("r.yaml");
        std::fs::write(&recipe, format!("featherload: 1\nops:\n  - {op}\n")).unwrap();
        let (source, recipe) = (folder.to_str().unwrap(), recipe.to_str().unwrap());
        let args = ["plan", source, "--recipe", recipe, "--sample", "1"];
        let text = stdout(&args);
        assert!(text.contains(&format!("interpolation {filter}")), "{text}");
        let drawn = json(&args)["drawn"].clone();
        let steps = drawn[0]["steps"].as_array().unwrap().clone();
        let resizes = steps.iter().filter_map(|step| step[1].get("resize"));
        let found: Vec<_> = resizes
            .map(|resize| resize["interpolation"].clone())
            .collect();
        assert!(
            !found.is_empty() && found.iter().all(|name| name == filter),
            "{drawn}"
        );
    }
}

fn digest(source: &str, recipe: &str, more: &[&str]) -> String {
    let args = [
        "bench",
        source,
        "--batch-size",
        "8",
        "--digest",
        "--limit",
        "32",
    ];
    let args = [&args[..], &["--recipe", recipe], more].concat();
    json(&args)["digest"].as_str().unwrap().to_owned()
}

#[test]
fn a_preset_and_its_files_give_the_same_stream() {
    let dir = tempfile::tempdir().unwrap();
    let folder = mixed(dir.path());
    let source = folder.to_str().unwrap();
    let mut all = Vec::new();
    for name in ["train224", "eval224"] {
        let want = digest(source, name, &["--num-workers", "1"]);
        let preset = Recipe::preset(name).unwrap();
        let presets = concat!(env!("CARGO_MANIFEST_DIR"), "/src/recipe/presets");
        let yaml = fs::read_to_string(format!("{presets}/{name}.yaml")).unwrap();
        let texts = [
            ("yaml", yaml),
            ("toml", preset.to_text(RecipeFormat::Toml).unwrap()),
            ("json", preset.to_text(RecipeFormat::Json).unwrap()),
        ];
        for (extension, text) in texts {
            let file = dir.path().join(format!("mine.{extension}"));
            fs::write(&file, text).unwrap();
            let got = digest(source, file.to_str().unwrap(), &["--num-workers", "1"]);
            assert_eq!(got, want, "{name} {extension}");
        }
        all.push(want);
    }
    assert_ne!(all[0], all[1]);
}

#[test]
fn exact_moves_change_no_bit_of_a_stream() {
    let dir = tempfile::tempdir().unwrap();
    let folder = mixed(dir.path());
    let source = folder.to_str().unwrap();
    let moved = "  - random_grayscale: {p: 0.5}
  - color_jitter: {brightness: 0.4, saturation: 0.4, hue: 0.1}
  - random_rotate90
  - random_crop: {size: 96, pad_if_needed: true, padding_mode: edge}
  - resize: {size: [80, 72]}
  - random_horizontal_flip
  - normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
  - center_crop: {size: 64}
  - random_erasing: {p: 0.5, value: random}
";
    let lab = "  - convert_color: {to: lab}
  - random_resized_crop: {size: 64}
  - cast: {dtype: f16}
";
    for recipe in [
        "train224",
        &recipe(dir.path(), "moved.yaml", moved),
        &recipe(dir.path(), "lab.yaml", lab),
    ] {
        let run = |reorder: &str, workers: &str| {
            let args = [
                "--reorder",
                reorder,
                "--decode",
                "full",
                "--num-workers",
                workers,
            ];
            digest(source, recipe, &args)
        };
        let want = run("off", "0");
        for workers in ["1", "2"] {
            assert_eq!(run("off", workers), want, "{recipe} off, {workers}");
        }
        for workers in ["0", "1", "2"] {
            assert_eq!(run("exact", workers), want, "{recipe} exact, {workers}");
        }
        let fast = run("fast", "0");
        assert_eq!(run("fast", "2"), fast, "{recipe} fast");
        // Where `plan` speaks of changed values, and nowhere else.
        let p = json(&["plan", "--recipe", recipe, "--reorder", "fast"]);
        let changes = moves(&p["outline"]["moves"]).iter().any(|m| !m.2);
        assert_eq!(fast != want, changes, "{recipe}: {p}");
    }
}

/// What a refusal names after "use", each as flags.
fn named_by(refusal: &str) -> Vec<Vec<String>> {
    let (_, named) = refusal.split_once(": use ").unwrap();
    let Some((named, _)) = named.split_once("or a higher limit") else {
        assert!(named.starts_with("a higher limit. "), "{refusal}");
        return Vec::new();
    };
    let named = named.trim_end_matches([',', ' ']).split(", or ");
    let flags = |name: &str| {
        let words: Vec<&str> = name.split(' ').collect();
        match words[..] {
            [flag @ "--batch-size", number] => vec![flag.into(), number.into()],
            ["depth", number] => vec!["--depth".into(), number.into()],
            [number, "worker" | "workers"] => vec!["--num-workers".into(), number.into()],
            ["`--reorder", "fast`", ..] => vec!["--reorder".into(), "fast".into()],
            _ => panic!("{name}: {refusal}"),
        }
    };
    named
        .filter(|all| *all != "a recipe with smaller rows")
        .map(|all| {
            let all = all.replace(" and ", ", ");
            all.split(", ").flat_map(flags).collect()
        })
        .collect()
}

#[test]
fn a_refusal_names_all_that_fits_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = dir.path().join("late.yaml");
    // In this order a worker holds the whole picture, in floats.
    let ops = "featherload: 1\nops:\n  - color_jitter: {brightness: 0.4, hue: 0.1}\n  \
               - resize: {size: [224, 224]}\n";
    fs::write(&recipe, ops).unwrap();
    let recipe = recipe.to_str().unwrap();
    let plan = ["plan", "--picture", "3000x4000", "--recipe", recipe];
    let with = |more: &[&str]| {
        let mut args = [&plan[..], more].concat();
        for (flag, value) in [("--num-workers", "4"), ("--batch-size", "32")] {
            if !more.contains(&flag) {
                args.extend([flag, value]);
            }
        }
        featherload(&args)
    };
    let (mut seen, mut together) = (BTreeSet::new(), 0);
    for mib in [9, 12, 20, 30, 34, 60, 70, 150, 172, 180, 200] {
        let limit = format!("{mib}M");
        let out = with(&["--memory-limit", &limit]);
        if code(&out) == 0 {
            continue;
        }
        let message = stderr(&out);
        let named = named_by(&message);
        for flags in &named {
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let fits = with(&[&["--memory-limit", &limit], &flags[..]].concat());
            assert_eq!(code(&fits), 0, "{flags:?} of {message}");
            seen.insert(flags[0].to_owned());
            together += usize::from(flags.len() > 2);
        }
        for (flag, value) in [
            ("--num-workers", "1"),
            ("--batch-size", "1"),
            ("--reorder", "fast"),
        ] {
            let fits = code(&with(&["--memory-limit", &limit, flag, value])) == 0;
            let is_named = named
                .iter()
                .any(|flags| flags.len() == 2 && flags[0] == flag);
            assert_eq!(is_named, fits, "{flag} {value}: {message}");
        }
    }
    let all = ["--batch-size", "--reorder", "--num-workers"].map(str::to_owned);
    assert!(seen.is_superset(&BTreeSet::from(all)), "{seen:?}");
    assert!(together > 0);
}

#[test]
fn each_crop_has_a_heading_and_its_outline() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("two.yaml");
    let crops = "featherload: 1\ncrops:\n  - name: g\n    count: 2\n    ops:\n      - center_crop: {size: 24}\n  - ops:\n      - center_crop: {size: 8}\n";
    fs::write(&file, crops).unwrap();
    let out = stdout(&["plan", "--recipe", file.to_str().unwrap()]);
    assert!(!out.contains("\\n"), "{out}");
    let headings: Vec<_> = out
        .lines()
        .filter(|line| line.starts_with("crop "))
        .collect();
    assert_eq!(headings, ["crop 0 (g), 2 times:", "crop 1:"], "{out}");
}
