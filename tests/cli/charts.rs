//! Charts: files that are whole, whose numbers are those of the JSON.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::command::{featherload, object};
use crate::common::data;

/// As the command line says sizes.
fn mib(bytes: &Value) -> String {
    match bytes.as_f64().unwrap() / f64::from(1 << 20) {
        mib if mib < 10.0 => format!("{mib:.1} MiB"),
        mib => format!("{mib:.0} MiB"),
    }
}

/// The object and the chart that a command makes.
#[track_caller]
fn chart(dir: &Path, args: &[&str]) -> (Value, String) {
    let file = dir.join("chart.svg");
    let args = [args, &["--json", "--svg", file.to_str().unwrap()]].concat();
    let output = object(&featherload(&args));
    let svg = fs::read_to_string(&file).unwrap();
    for part in [
        "<svg",
        "width=\"880\"",
        "prefers-color-scheme: dark",
        "</svg>",
    ] {
        assert!(svg.contains(part), "no {part} in {svg}");
    }
    (output, svg)
}

#[track_caller]
fn has(svg: &str, words: &[&str]) {
    for words in words {
        assert!(svg.contains(words), "no '{words}' in {svg}");
    }
}

#[test]
fn the_chart_of_a_plan_has_its_sizes() {
    let dir = data(2, 6);
    let src = dir.path().to_str().unwrap();
    let plan = [
        "plan",
        src,
        "--recipe",
        "train224",
        "--batch-size",
        "8",
        "--num-workers",
        "3",
    ];
    let (output, svg) = chart(dir.path(), &plan);
    let (memory, outline) = (&output["memory"], &output["outline"]);
    has(
        &svg,
        &[
            &format!("{} at most", mib(&memory["total_bytes"])),
            &format!("ring, 3 slots of 8 rows {}", mib(&memory["ring_bytes"])),
            &format!("3 workers, {} each", mib(&memory["worker_bytes"])),
            &mib(&memory["fixed_bytes"]),
            &format!("{} a sample", mib(&outline["written"]["scratch_bytes"])),
            &format!("{} a sample", mib(&outline["planned"]["scratch_bytes"])),
            "random_resized_crop",
            "stay free",
        ],
    );
    // A limit that is near shares the run's bar; without data there is none.
    let limit = ["--memory-limit", "60M"];
    let (output, svg) = chart(dir.path(), &[&plan[..], &limit].concat());
    let free = (60 << 20) - output["memory"]["total_bytes"].as_u64().unwrap();
    has(
        &svg,
        &["Limit 60 MiB", &format!("free {}", mib(&free.into()))],
    );
    let (_, svg) = chart(dir.path(), &["plan", "--picture", "600x800"]);
    has(&svg, &["800 x 600 pixels", "No limit is known"]);
}

#[test]
fn the_chart_of_a_run_has_its_rate_its_deaths_and_its_stages() {
    let dir = data(2, 12);
    let bench = [
        "bench",
        dir.path().to_str().unwrap(),
        "--batch-size",
        "8",
        "--num-workers",
        "2",
    ];
    let more = ["--epochs", "15", "--kill-workers-every", "30"];
    let (output, svg) = chart(dir.path(), &[&bench[..], &more].concat());
    let times = &output["loader"]["times"];
    let seconds = |name: &str| times[name].as_f64().unwrap();
    let stages = [
        "open_s",
        "unpack_s",
        "decode_s",
        "resample_s",
        "augment_s",
        "emit_s",
        "idle_s",
    ];
    let all: f64 = stages.iter().map(|name| seconds(name)).sum();
    let deaths = output["worker_deaths"].as_u64().unwrap();
    assert!(deaths > 0);
    has(
        &svg,
        &[
            &format!(
                "{:.0} in the whole run",
                output["images_per_s"].as_f64().unwrap()
            ),
            &format!("died and were replaced: {deaths}<"),
            &format!("decode {:.1}%", 100.0 * seconds("decode_s") / all),
            "45 batches",
            "class=\"mark\"",
        ],
    );
}

#[test]
fn the_chart_of_one_number_of_workers_has_what_no_process_maps_too() {
    let dir = data(1, 12);
    let rss = ["rss", dir.path().to_str().unwrap(), "--batch-size", "8"];
    let more = ["--num-workers", "1", "--seconds", "0.5", "--depth", "4"];
    let (output, svg) = chart(dir.path(), &[&rss[..], &more].concat());
    let row = &output["rows"][0];
    let number = |key: &str| row[key].as_u64().unwrap();
    let all = number("pss_total_bytes") + number("ring_unmapped_bytes");
    assert_eq!(number("memory_bytes"), all);
    // Batches of 8 and of 4: half of a slot may be used by nobody.
    let figure = |bytes: u64| format!(">{:.1}<", bytes as f64 / f64::from(1 << 20));
    // Only totals are bold. Other figures may happen to have the same digits.
    let is_total = |text: &&str| text.contains("bold\"") && text.contains(&figure(all));
    assert_eq!(svg.split("<text ").filter(is_total).count(), 2);
    assert!(number("ring_unmapped_bytes") > 1 << 16, "{row}");
    has(
        &svg,
        &["ring, not in use", "url(#hatch-lines)", "ring, in use"],
    );
    // Lines that nobody has measured are not drawn.
    assert!(
        !svg.contains("computed:") && !svg.contains("inherited"),
        "{svg}"
    );
}

#[test]
fn a_chart_that_cannot_be_written_is_refused_before_the_run() {
    let dir = data(1, 3);
    let src = dir.path().to_str().unwrap();
    for command in ["plan", "bench", "rss"] {
        let out = featherload(&[command, src, "--svg", "/nowhere/chart.svg"]);
        let message = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{command}: {message}");
        assert!(
            message.contains("--svg") && message.contains("/nowhere"),
            "{message}"
        );
    }
}
