//! Decoding speed, one thread, on the shared photos; run by hand in release:
//! `cargo test --release --lib jpeg::speed -- --ignored --nocapture`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::fixtures::{Random, photos};
use crate::worker::spec::Limits;

use super::{JpegDecoder, JpegHeader, Region, Scale, Scratch, read_header, scaled_size};

#[test]
#[ignore = "a measurement"]
fn images_per_second() {
    let photos = photos();
    if photos.is_empty() {
        return;
    }
    let mut decoder = JpegDecoder::new(&Limits::default());
    let mut scratch = Scratch::default();
    let mut rng = Random::new(1);
    type Choose = fn(&JpegHeader, &mut Random) -> (Scale, Region);
    let cases: [(&str, Choose); 6] = [
        ("full", |h, _| {
            (Scale::Full, Region::whole((h.width, h.height)))
        }),
        ("centre half", |h, _| {
            let (w, t) = (h.width, h.height);
            (Scale::Full, Region::new(w / 4, t / 4, w / 2, t / 2))
        }),
        ("random resized crops", |h, rng| {
            (Scale::Full, random_resized_crop(h.width, h.height, rng))
        }),
        ("the same, scaled below 2 x 224", |h, rng| {
            let r = random_resized_crop(h.width, h.height, rng);
            let scale = match r.w.min(r.h) / 224 {
                0 | 1 => Scale::Full,
                2 | 3 => Scale::Half,
                4..8 => Scale::Quarter,
                _ => Scale::Eighth,
            };
            let d = scale.denominator();
            let (w, t) = scaled_size(h, scale);
            let (x, y) = ((r.x / d).min(w - 1), (r.y / d).min(t - 1));
            let r = Region::new(x, y, (r.w / d).clamp(1, w - x), (r.h / d).clamp(1, t - y));
            (scale, r)
        }),
        ("half", |h, _| {
            (Scale::Half, Region::whole(scaled_size(h, Scale::Half)))
        }),
        ("eighth", |h, _| {
            (Scale::Eighth, Region::whole(scaled_size(h, Scale::Eighth)))
        }),
    ];
    let mut rates = vec![Vec::new(); cases.len()];
    for round in 0..8 {
        for (rates, (_, choose)) in rates.iter_mut().zip(cases) {
            let begun = Instant::now();
            let mut images = 0u32;
            while begun.elapsed() < Duration::from_millis(400) {
                for (_, bytes) in &photos {
                    let header = read_header(bytes).unwrap();
                    let (scale, want) = choose(&header, &mut rng);
                    let got = decoder.decode_region(bytes, &header, scale, want, &mut scratch);
                    black_box(got.unwrap());
                    images += 1;
                }
            }
            if round > 0 {
                rates.push(f64::from(images) / begun.elapsed().as_secs_f64());
            }
        }
    }
    for ((name, _), rates) in cases.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let (low, mid, high) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
        eprintln!("{name}: {mid:.0} images/s ({low:.0} to {high:.0})");
    }
    let begun = Instant::now();
    for _ in 0..1000 {
        for (_, bytes) in &photos {
            black_box(read_header(black_box(bytes)).unwrap());
        }
    }
    let each = begun.elapsed() / (1000 * photos.len() as u32);
    eprintln!("own header scan: {each:?}");
}

/// As torchvision chooses them: area 0.08 to 1, ratio 3/4 to 4/3.
fn random_resized_crop(w: u32, h: u32, rng: &mut Random) -> Region {
    let mut unit = || rng.below(1 << 24) as f64 / f64::from(1 << 24);
    for _ in 0..10 {
        let area = f64::from(w * h) * (0.08 + 0.92 * unit());
        let ratio = (0.75f64.ln() + unit() * (2.0 * (4.0f64 / 3.0).ln())).exp();
        let (cw, ch) = ((area * ratio).sqrt().round(), (area / ratio).sqrt().round());
        let (cw, ch) = (cw as u32, ch as u32);
        if cw > 0 && ch > 0 && cw <= w && ch <= h {
            let x = (unit() * f64::from(w - cw + 1)) as u32;
            let y = (unit() * f64::from(h - ch + 1)) as u32;
            return Region::new(x, y, cw, ch);
        }
    }
    Region::whole((w, h))
}
