//! Whether there is a device for the tests that need one.

use featherload::device::probe;

/// Says `SKIP` where there is none; fails where `FEATHERLOAD_REQUIRE_GPU=1` asks for one.
pub fn is_there() -> bool {
    let Some(missing) = probe().missing else {
        return true;
    };
    assert!(
        std::env::var_os("FEATHERLOAD_REQUIRE_GPU").is_none_or(|v| v != "1"),
        "FEATHERLOAD_REQUIRE_GPU=1, and: {missing}"
    );
    println!("SKIP: no CUDA device: {missing}");
    false
}
