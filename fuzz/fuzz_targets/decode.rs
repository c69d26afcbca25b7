//! Decoding into the row of a slot: any bytes, under several recipes and limits.
//!
//! The first byte chooses the recipe, the second the position in the epoch
//! (hence crop and flip), the rest is the file. The row has guards on both
//! sides, which must stay; and what is decoded must not depend on what was
//! decoded before: a fresh decoder and one that has seen everything since the
//! process began must agree on the verdict and on every byte.
//!
//! A panic inside a decoder crate is caught by the library and is a fault of the
//! sample. Any other panic is a finding.

#![no_main]

use std::cell::RefCell;
use std::panic::PanicHookInfo;

use featherload::fuzz_support::Decoder;
use featherload::recipe::{Background, DecodeMode, Dtype, MemoryLayout, Op, Recipe};
use libfuzzer_sys::fuzz_target;

const GUARD: usize = 64;
const CANARY: u8 = 0xa5;
const RECIPES: usize = 9;
/// The row of pictures of their own size.
const OWN_ROW: usize = 4096;

/// Recipe `number`, with its limits in pixels and bytes.
fn recipe(number: usize) -> (Recipe, u64, u64) {
    let decode = |mode, level| Op::Decode {
        mode,
        background: Background([level; 3]),
    };
    let crop = |size| Op::RandomResizedCrop {
        size,
        scale: (0.08, 1.0),
        ratio: (0.75, 4.0 / 3.0),
    };
    let whole = Op::RandomResizedCrop {
        size: (29, 37),
        scale: (1.0, 1.0),
        ratio: (37.0 / 29.0, 37.0 / 29.0),
    };
    let shorter = |size| Op::ResizeShorter { size };
    let center = |size| Op::CenterCrop { size };
    let normalise = Op::Normalize {
        mean: [0.485, 0.456, 0.406],
        std: [0.229, 0.224, 0.225],
    };
    let cast = |dtype| Op::Cast { dtype };
    let layout = |layout| Op::Layout { layout };
    let flip = Op::HorizontalFlip { p: 0.5 };
    let (full, scaled) = (DecodeMode::Full, DecodeMode::Scaled);
    let (nhwc, nchw) = (MemoryLayout::Nhwc, MemoryLayout::Nchw);
    let (u8_, f16, f32_) = (cast(Dtype::U8), cast(Dtype::F16), cast(Dtype::F32));
    let (small, large) = ((1 << 14, 1 << 20), (1 << 20, 16 << 20));
    let (ops, (pixels, scratch)) = match number {
        // The identity, for the project's own pictures.
        0 => (vec![decode(full, 255), whole, u8_, layout(nhwc)], large),
        1 => (
            vec![
                decode(scaled, 255),
                crop((12, 20)),
                flip,
                normalise,
                f16,
                layout(nchw),
            ],
            large,
        ),
        2 => (
            vec![decode(scaled, 0), crop((7, 5)), flip, u8_, layout(nchw)],
            large,
        ),
        3 => (
            vec![
                decode(full, 128),
                shorter(64),
                center((64, 64)),
                normalise,
                f32_,
                layout(nchw),
            ],
            large,
        ),
        4 => (
            vec![
                decode(scaled, 255),
                shorter(9),
                center((8, 9)),
                u8_,
                layout(nhwc),
            ],
            large,
        ),
        5 => (
            vec![
                decode(full, 1),
                crop((33, 1)),
                normalise,
                f32_,
                layout(nhwc),
            ],
            small,
        ),
        6 => (
            vec![
                decode(full, 255),
                shorter(2),
                center((1, 1)),
                u8_,
                layout(nhwc),
            ],
            small,
        ),
        // Rows of the pictures' own size.
        7 => (vec![decode(full, 200), u8_, layout(nhwc)], large),
        _ => (
            vec![
                decode(scaled, 77),
                crop((3, 40)),
                flip,
                normalise,
                f16,
                layout(nhwc),
            ],
            small,
        ),
    };
    (Recipe::new("fuzz", ops), pixels, scratch)
}

fn decoder(number: usize) -> Decoder {
    let (recipe, pixels, scratch) = recipe(number);
    Decoder::new(&recipe, pixels, scratch).expect("a recipe")
}

thread_local! {
    static USED: RefCell<Vec<Decoder>> = RefCell::new((0..RECIPES).map(decoder).collect());
}

fuzz_target!(
    init: {
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            // A dependency's files have absolute paths, out of the registry.
            if !info.location().is_some_and(|at| at.file().contains("/registry/src/")) {
                abort(info);
            }
        }));
    },
    |data: &[u8]| {
        let Some((&[number, position], bytes)) = data.split_first_chunk::<2>() else {
            return;
        };
        let number = usize::from(number) % RECIPES;
        let position = u64::from(position);
        let mut fresh = decoder(number);
        let first = fill(&mut fresh, bytes, position);
        let again = fill(&mut fresh, bytes, position);
        assert!(first == again, "the second time {} gives another result", shown(&again));
        let used = USED.with_borrow_mut(|used| fill(&mut used[number], bytes, position));
        assert!(
            first == used,
            "{} with a fresh decoder, {} with a used one",
            shown(&first),
            shown(&used)
        );
    }
);

type Outcome = Result<Vec<u8>, (u8, String)>;

fn fill(decoder: &mut Decoder, bytes: &[u8], position: u64) -> Outcome {
    let len = decoder.row_bytes().unwrap_or(OWN_ROW);
    // 64 bytes of guard keep the alignment that rows have.
    let mut row = vec![CANARY; len + 2 * GUARD];
    let result = decoder.fill(bytes, position, &mut row[GUARD..GUARD + len]);
    let guards = row[..GUARD].iter().chain(&row[GUARD + len..]);
    assert!(guards.copied().all(|b| b == CANARY), "wrote beside the row");
    match result {
        Ok(()) => Ok(row[GUARD..GUARD + len].to_vec()),
        Err(fault) => Err((fault.kind as u8, fault.reason)),
    }
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Ok(pixels) => format!("{} bytes of pixels", pixels.len()),
        Err((_, reason)) => format!("'{reason}'"),
    }
}
