//! Refuses another libjpeg-turbo than the vendored one: it is part of the
//! numeric profile, which says that equal profiles give equal pixels.

fn main() {
    println!("cargo:rerun-if-env-changed=TURBOJPEG_SOURCE");
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(source) = std::env::var("TURBOJPEG_SOURCE") {
        assert!(
            source.eq_ignore_ascii_case("vendor"),
            "TURBOJPEG_SOURCE={source}: featherload is built with the vendored libjpeg-turbo only, \
             because its version is part of the numeric profile; unset the variable"
        );
    }
}
