//! Headers of images: any bytes.
//!
//! Read in pieces, like a survey of a data set, and completely, like a worker. Neither may panic.
//! Headers that both accept must be equal.

use featherload::tests_support::{format, opened, surveyed};

use super::Target;

const MAX_PIXELS: u64 = 178_956_970;
const MAX_SCRATCH: u64 = 64 << 20;

pub fn target() -> Target {
    Box::new(run)
}

fn run(data: &[u8]) {
    let survey = surveyed(data);
    let worker = opened(data, MAX_PIXELS, MAX_SCRATCH);
    if format(data).is_err() {
        assert!(survey.is_err() && worker.is_err());
        return;
    }
    let Ok(worker) = worker else {
        return;
    };
    let (w, h) = worker.stored;
    assert!(w > 0 && h > 0, "{h} x {w}");
    assert!(u64::from(w) * u64::from(h) <= MAX_PIXELS, "{h} x {w}");
    assert!(worker.upright == (w, h) || worker.upright == (h, w));
    // A survey must not reject a file that a worker would have decoded.
    assert_eq!(survey.ok(), Some(worker));
}
