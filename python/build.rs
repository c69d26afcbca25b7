//! Builds the executable that the package brings along: coordinator and workers of a
//! loader, and the command line.
//!
//! Only for a wheel: maturin says so by PYO3_BUILD_EXTENSION_MODULE. Who has built the
//! executable already names it by FEATHERLOAD_EXECUTABLE, as `scripts/python` does.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=PYO3_BUILD_EXTENSION_MODULE");
    println!("cargo:rerun-if-env-changed=FEATHERLOAD_EXECUTABLE");
    if env::var_os("PYO3_BUILD_EXTENSION_MODULE").is_none() {
        println!("cargo:rerun-if-changed=build.rs");
        return Ok(());
    }
    let packed = PathBuf::from(env::var("OUT_DIR")?).join("featherload");
    let built = match env::var_os("FEATHERLOAD_EXECUTABLE") {
        Some(path) => PathBuf::from(path),
        None => build()?,
    };
    println!("cargo:rerun-if-changed={}", built.display());
    fs::copy(&built, &packed).map_err(|e| format!("copy {}: {e}", built.display()))?;
    Ok(())
}

/// Builds the executable, and says where it is.
fn build() -> Result<PathBuf, Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = here.parent().ok_or("no folder above python/")?;
    for of_it in ["src", "kernels", "build.rs", "Cargo.toml", "Cargo.lock"] {
        println!("cargo:rerun-if-changed={}", root.join(of_it).display());
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let target = env::var("TARGET")?;
    // A folder of its own: the outer cargo holds the lock of its own one.
    let folder = out.join("helper");
    // A source distribution has fewer members than its lock: cargo leaves those out.
    let locked = root.join("model").exists().then_some("--locked");
    let status = Command::new(env::var("CARGO")?)
        .args(["build", "--release", "--package", "featherload"])
        .args(locked)
        .args(["--features", "cli", "--bin", "featherload"])
        .args(["--target", &target, "--target-dir"])
        .arg(&folder)
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status()?;
    if !status.success() {
        return Err("the executable featherload did not compile".into());
    }
    Ok(folder.join(&target).join("release/featherload"))
}
