//! JPEG: any bytes, at each scale, whole and in a window, by each form of the decoder.
//!
//! The first byte selects the scale, the next four the window, and the rest is the file. All forms
//! agree on the result, the message and the pixels. So do new decoders, which have decoded no other
//! input. A window is rejected if the whole image is, and has the same pixels.
//! (`src/picture/jpeg/verdict_tests.rs` compares them with libjpeg-turbo's.)

use featherload::tests_support::{JpegForms, WindowPixels};

use super::Target;

const MAX_PIXELS: u64 = 1 << 16;
const MAX_SCRATCH: u64 = 64 << 20;

pub fn target() -> Target {
    let mut forms = new_forms();
    Box::new(move |data| run(&mut forms, data))
}

fn new_forms() -> JpegForms {
    JpegForms::new(MAX_PIXELS, MAX_SCRATCH)
}

fn run(forms: &mut JpegForms, data: &[u8]) {
    let Some((&[scale, x, y, w, h], bytes)) = data.split_first_chunk::<5>() else {
        return;
    };
    let denominator = 1 << (scale % 4);
    let Ok((width, height)) = JpegForms::size(bytes, denominator) else {
        return;
    };
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return;
    }
    let part = |size: u32, start: u8, len: u8| {
        let len = 1 + (size - 1) * u32::from(len) / 255;
        ((size - len) * u32::from(start) / 255, len)
    };
    let ((x, w), (y, h)) = (part(width, x, w), part(height, y, h));
    let whole = agreed(forms, bytes, denominator, [0, 0, width, height]);
    let by_new = agreed(&mut new_forms(), bytes, denominator, [0, 0, width, height]);
    assert!(
        are_same(&whole, &by_new),
        "decoders of earlier inputs and new ones differ"
    );
    let window = agreed(forms, bytes, denominator, [x, y, w, h]);
    let (whole, window) = match (whole, window) {
        (Ok(whole), Ok(window)) => (whole, window),
        (Err(_), Err(_)) => return,
        (whole, window) => panic!(
            "whole: {:?}, the window: {:?}",
            whole.map(|_| "pixels"),
            window.map(|_| "pixels")
        ),
    };
    let row = 3 * w as usize;
    for (number, pixels) in window.chunks_exact(row).enumerate() {
        let start = 3 * ((y as usize + number) * width as usize + x as usize);
        assert!(
            pixels == &whole[start..start + row],
            "row {number} of the window differs from the whole picture's"
        );
    }
}

/// The result of all forms for a window, which must be the same.
fn agreed(forms: &mut JpegForms, bytes: &[u8], denominator: u32, window: [u32; 4]) -> WindowPixels {
    let mut results = forms.decode(bytes, denominator, window);
    let (name, last) = results.pop().expect("one form at least");
    for (other, result) in results {
        assert!(are_same(&last, &result), "{name} and {other} differ");
    }
    last
}

/// Whether both have the same pixels, or the same fault with the same message.
fn are_same(one: &WindowPixels, other: &WindowPixels) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one == other,
        (Err(one), Err(other)) => {
            (one.kind as u8, &one.reason) == (other.kind as u8, &other.reason)
        }
        _ => false,
    }
}
