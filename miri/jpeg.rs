//! Decodes the JPEG files of a folder, whole, in windows and damaged, at each scale and by each
//! form that the target has. Miri finds undefined behaviour, this a form or a window that gives
//! other pixels.

#[path = "../src/picture/jpeg/decode/mod.rs"]
#[allow(dead_code, unused_imports, reason = "a part of the library")]
mod decode;

#[path = "../src/picture/jpeg/standard.rs"]
#[allow(dead_code, reason = "a part of the library")]
mod standard;

use decode::{WindowDecoder, SimdForm, DecodeRequest, JpegWindow};

/// Sizes of the frame, and the number of components.
fn frame(jpeg: &[u8]) -> ((usize, usize), usize) {
    let number = |at: usize| usize::from(u16::from_be_bytes([jpeg[at], jpeg[at + 1]]));
    let mut at = 2;
    while !matches!(jpeg[at + 1], 0xC0..=0xC3 | 0xC9..=0xCA) {
        at += 2 + number(at + 2);
    }
    ((number(at + 7), number(at + 5)), usize::from(jpeg[at + 9]))
}

/// The pixels of a window by each form, which must agree; none for a file that is refused.
fn decode(decoders: &mut [WindowDecoder], job: &DecodeRequest<'_>) -> Option<Vec<u8>> {
    let pixel = if job.components == 4 { 4 } else { 3 };
    let mut results = decoders.iter_mut().map(|decoder| {
        let mut pixels = vec![0; job.window.w * job.window.h * pixel];
        let fast = decoder.decode(job, &mut pixels).is_ok();
        (fast || decoder.decode_general(job, &mut pixels).is_ok()).then_some(pixels)
    });
    let first = results.next().expect("the plain form");
    assert!(results.all(|result| result == first), "a form differs");
    first
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder of JPEG files");
    let mut decoders: Vec<WindowDecoder> = SimdForm::supported().map(WindowDecoder::new).collect();
    println!("{:?}", SimdForm::supported().collect::<Vec<_>>());
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "jpg"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no JPEG file");
    let mut taken = 0;
    for (number, path) in paths.iter().enumerate() {
        let mut jpeg = std::fs::read(path).expect("a file");
        println!("{}", path.display());
        let (size, components) = frame(&jpeg);
        let block = [8, 4, 2, 1][number % 4];
        let (w, h) = ((size.0 * block).div_ceil(8), (size.1 * block).div_ceil(8));
        let whole = JpegWindow { x: 0, y: 0, w, h };
        let part = JpegWindow {
            x: w / 3,
            y: h / 4,
            w: w.div_ceil(2),
            h: h.div_ceil(2),
        };
        // As it is, and then with a byte changed.
        for damage in 0..2 {
            if damage > 0 {
                let at = jpeg.len() * 3 / 4;
                jpeg[at] ^= 0x15;
            }
            let job = |window| DecodeRequest {
                bytes: &jpeg,
                size,
                components,
                block,
                window,
            };
            let all = decode(&mut decoders, &job(whole));
            let some = decode(&mut decoders, &job(part));
            if let (Some(all), Some(some)) = (all, some) {
                let pixel = all.len() / (w * h);
                for (y, row) in some.chunks_exact(part.w * pixel).enumerate() {
                    let start = ((part.y + y) * w + part.x) * pixel;
                    assert!(all[start..start + row.len()] == *row, "the window differs");
                }
                taken += 1;
            }
        }
    }
    println!("{taken} decodes of {} files", paths.len());
    assert!(taken >= paths.len(), "most files are refused");
}
