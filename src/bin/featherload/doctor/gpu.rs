//! NVIDIA devices, by queries to the driver, which is loaded for this. Takes no device memory.

use std::fs;

use featherload::device::{self, DeviceInfo, DeviceReport};

use super::finding::DoctorFinding;

const WITHOUT: &str = "batches end in CPU memory";

pub fn findings() -> Vec<DoctorFinding> {
    let module = fs::read_to_string("/proc/driver/nvidia/version").ok();
    let report = device::probe();
    let mut findings = vec![driver(module.as_deref().map(driver_version), &report)];
    findings.extend(report.devices.iter().map(device));
    findings
}

/// The driver's version comes from the kernel module, the CUDA version from the library. In a
/// container one may exist without the other.
fn driver(module: Option<String>, report: &DeviceReport) -> DoctorFinding {
    let name = "NVIDIA driver";
    let serves = report
        .cuda
        .map(|(major, minor)| format!("serves CUDA {major}.{minor}"));
    let value = match (module, serves) {
        (None, None) => "none".to_owned(),
        (Some(version), None) => format!("{version}, without its library"),
        (None, Some(serves)) => serves,
        (Some(version), Some(serves)) => format!("{version}, {serves}"),
    };
    match &report.missing {
        None => DoctorFinding::ok(name, value, format!("{} devices", report.devices.len())),
        // Without effect: there is no device to use.
        Some(why) if value == "none" => DoctorFinding::ok(name, value, format!("{WITHOUT}: {why}")),
        Some(why) => DoctorFinding::limited(name, value, format!("{WITHOUT}: {why}")),
    }
}

fn device(device: &DeviceInfo) -> DoctorFinding {
    let (major, minor) = device.capability;
    let value = format!(
        "cuda:{} {}, {:.1} GiB",
        device.ordinal,
        device.name,
        device.total_bytes as f64 / (1u64 << 30) as f64
    );
    match &device.unusable {
        None => DoctorFinding::ok(
            "device",
            value,
            format!(
                "compute capability {major}.{minor}: the kernels run on it and decode baseline \
                 JPEGs"
            ),
        ),
        Some(why) => DoctorFinding::limited("device", value, format!("{WITHOUT}: {why}")),
    }
}

/// The first word of the driver's line that is a version.
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
