//! `featherload doctor` with the stand-in for the NVIDIA driver in front: what it
//! says of devices, and that none of it is an error.

use serde_json::Value;

use crate::common::standin::Standin;

/// The doctor's findings of the driver and of devices, a line each.
fn findings(environment: &[(&str, &str)]) -> Vec<String> {
    let (out, _) = Standin::new().run(&["doctor", "--json"], environment);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_eq!(out.stderr, b"", "{out:?}");
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["broken_promises"], Value::Array(Vec::new()));
    let of_devices = report["findings"].as_array().unwrap().iter().filter(|f| {
        let name = f["name"].as_str().unwrap();
        name == "NVIDIA driver" || name == "device"
    });
    of_devices
        .map(|f| {
            ["verdict", "name", "value", "meaning"]
                .map(|key| f[key].as_str().unwrap())
                .join(" | ")
        })
        .collect()
}

fn is_said(line: &str, words: &[&str]) {
    for word in words {
        assert!(line.contains(word), "`{word}` is not in: {line}");
    }
}

#[test]
fn devices_are_listed() {
    let lines = findings(&[("STANDIN_DEVICES", "2")]);
    assert_eq!(lines.len(), 3, "{lines:?}");
    is_said(&lines[0], &["ok | ", "serves CUDA 12.4", "2 devices"]);
    is_said(&lines[1], &["ok | ", "cuda:0 Stand-in 0, 8.0 GiB", "9.0"]);
    is_said(&lines[1], &["decode baseline JPEGs"]);
    is_said(&lines[2], &["ok | ", "cuda:1 Stand-in 1, 8.0 GiB", "9.0"]);
}

#[test]
fn what_cannot_be_used_is_named_and_how_to_mend_it() {
    let lines = findings(&[("STANDIN_DRIVER", "11040")]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    is_said(
        &lines[0],
        &["limited | ", "11.4", "12.0", "update the driver"],
    );

    let lines = findings(&[("STANDIN_DEVICES", "0")]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    is_said(&lines[0], &["limited | ", "CUDA_VISIBLE_DEVICES"]);

    let lines = findings(&[("STANDIN_CAPABILITY", "61")]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    is_said(&lines[1], &["limited | ", "6.1", "7.0"]);

    let lines = findings(&[("STANDIN_FAIL", "cuInit:999:1")]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    is_said(&lines[0], &["limited | ", "cuInit", "nvidia_uvm"]);
}
