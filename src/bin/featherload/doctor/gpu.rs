//! The GPU: named by the files of its driver alone, nothing is loaded.

use std::fs;
use std::path::Path;

use super::finding::Finding;

pub fn findings() -> Vec<Finding> {
    let name = "NVIDIA driver";
    let driver = fs::read_to_string("/proc/driver/nvidia/version").ok();
    let device = Path::new("/dev/nvidia0").exists();
    let no_stage = "there is no GPU stage yet: batches end in CPU memory";
    vec![match driver.as_deref().map(driver_version) {
        Some(version) if device => Finding::ok(name, version, no_stage),
        Some(version) => Finding::ok(
            name,
            format!("{version}, but no /dev/nvidia0"),
            format!("the device is not passed into this container; {no_stage}"),
        ),
        None => Finding::ok(name, "none", no_stage),
    }]
}

/// The first word that is a version, of the line that the driver writes.
fn driver_version(text: &str) -> String {
    let is_version =
        |w: &&str| w.contains('.') && w.chars().all(|c| c.is_ascii_digit() || c == '.');
    let line = text.lines().next().unwrap_or_default();
    line.split_whitespace()
        .find(is_version)
        .unwrap_or("present")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_version_is_found_in_its_line() {
        for line in [
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build",
        ] {
            assert_eq!(driver_version(line), "550.54.15");
        }
        assert_eq!(driver_version(""), "present");
    }
}
