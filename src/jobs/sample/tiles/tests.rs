//! The canvas and the overview are each the row of a recipe that makes only it.

use std::io::Cursor;

use proptest::prelude::*;

use crate::decode_plan::stored_picture::StoredPicture;
use crate::jobs::sample::SampleDecoder;
use crate::jobs::sample::crop_set::tests::{decoder, files, png, random, request};
use crate::picture::PictureLimits;
use crate::picture::jpeg::fixtures;
use crate::picture::jpeg::fixtures::Sampling;
use crate::picture::read_header::read_header_within;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::{
    ColorJitter, CutRule, DecodeMode, Pad, Padding, RandomHorizontalFlip, RandomVerticalFlip,
    Recipe, Resize, RowExtent, SampleProgram, Span, TileStyle, Tiles,
};

/// With operations before and after the tiles, which draw.
fn recipe(tiles: Tiles) -> Recipe {
    with_operations(|recipe| recipe.then(tiles))
}

fn with_operations(resize: impl FnOnce(Recipe) -> Recipe) -> Recipe {
    let jitter = ColorJitter {
        brightness: Span(0.6, 1.4),
        ..ColorJitter::default()
    };
    let recipe = resize(Recipe::new("r").then(RandomHorizontalFlip::default()));
    // After an uneven border, too.
    recipe.then(jitter).then(RandomVerticalFlip::default())
}

fn row(
    decoder: &mut SampleDecoder,
    file: &[u8],
    (position, bytes): (u64, usize),
) -> Result<(Vec<u8>, u64), String> {
    let mut out = vec![0xa5; bytes];
    let numbers = random(position);
    let request = request(&numbers);
    let mut meter = StageMeter::default();
    let made = decoder.make_row(file, &request, &mut out, &mut meter);
    made.map(|()| (out, meter.decoded)).map_err(|f| f.reason)
}

/// Height and width of the upright image of a file.
fn upright(file: &[u8]) -> (u32, u32) {
    let limits = PictureLimits::default();
    let header = read_header_within(&mut Cursor::new(file), &limits).unwrap();
    StoredPicture::from(&header).upright_size()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_row_has_the_canvas_and_the_overview(
        file in files(),
        position in any::<u64>(),
        side in 1u32..90,
        which in 0usize..4,
    ) {
        let tiles = match which {
            0 => Tiles::internvl(side, 1),
            1 => Tiles::internvl(side, 6),
            2 => Tiles::llava_next(side),
            _ => Tiles::llava_next(side).pinpoints([(2 * side, 3 * side), (3 * side, side)]),
        };
        let overview = tiles.overview();
        let style = tiles.style;
        let of_tiles = recipe(tiles).with_decode(DecodeMode::Full);
        let RowExtent::Patches(CutRule::Tiles(rule)) =
            SampleProgram::compile(&of_tiles).unwrap().extent
        else {
            panic!("no rule of tiles");
        };
        let image = upright(&file);
        let grid = rule.grid(image);
        let canvas = grid.resized(side);
        let inside = rule.inside(image);
        let (top, left) = ((canvas.0 - inside.0) / 2, (canvas.1 - inside.1) / 2);
        let border = Padding {
            left,
            top,
            right: canvas.1 - inside.1 - left,
            bottom: canvas.0 - inside.0 - top,
        };
        let of_canvas = with_operations(|recipe| {
            let resize = Resize { size: Resize::exact(inside.0, inside.1).size, ..overview };
            recipe.then(resize).then(Pad::new(border))
        });
        let of_overview = with_operations(|recipe| recipe.then(overview));
        let tile = (3 * side * side) as usize;
        let floats = 4;
        let all = rule.tiles(grid) as usize;
        let got = row(&mut decoder(&of_tiles), &file, (position, floats * all * tile));
        let alone = |recipe: Recipe, bytes| {
            let recipe = recipe.with_decode(DecodeMode::Full);
            row(&mut decoder(&recipe), &file, (position, bytes))
        };
        let (wanted, decoded) =
            alone(of_canvas, floats * 3 * (canvas.0 * canvas.1) as usize).unwrap();
        let (seen, _) = alone(of_overview, floats * tile).unwrap();
        let (got, times) = got.unwrap();
        prop_assert_eq!(times, decoded);
        let (head, tail) = match style {
            TileStyle::LlavaNext => (1, 0),
            TileStyle::Internvl => (0, usize::from(all > 1)),
        };
        let floats_of = |bytes: &[u8]| -> Vec<[u8; 4]> { bytes.as_chunks::<4>().0.to_vec() };
        let (got, wanted, seen) = (floats_of(&got), floats_of(&wanted), floats_of(&seen));
        prop_assert_eq!(all, head + grid.patches() as usize + tail);
        if head + tail > 0 {
            let at = if head > 0 { 0 } else { got.len() - tile };
            prop_assert!(got[at..][..tile] == seen, "the overview");
        }
        let of_tiles = &got[head * tile..][..grid.patches() as usize * tile];
        let (height, width) = (canvas.0 as usize, canvas.1 as usize);
        let side = side as usize;
        for (at, value) in of_tiles.iter().enumerate() {
            let (number, within) = (at / tile, at % tile);
            let (channel, y, x) = (within / side / side, within / side % side, within % side);
            let columns = grid.columns as usize;
            let (y, x) = (number / columns * side + y, number % columns * side + x);
            prop_assert_eq!(*value, wanted[(channel * height + y) * width + x]);
        }
    }
}

/// A JPEG is decoded at the finest scale that a part needs, which is that of the canvas.
#[test]
fn both_parts_are_made_from_one_scaled_decode() {
    let file = fixtures::jpeg(400, 400, Sampling::S420);
    // Two tiles along each side: the canvas has half the side of the image, the overview a quarter.
    let pinpoints = [(200, 200)];
    let tiles = Tiles::llava_next(100).pinpoints(pinpoints);
    let alone = |recipe: &Recipe, side: usize| {
        let mut decoder = decoder(recipe);
        row(&mut decoder, &file, (3, 4 * 3 * side * side))
            .unwrap()
            .0
    };
    let scaled = |recipe: Recipe| recipe.with_decode(DecodeMode::Scaled);
    let of_tiles = scaled(recipe(tiles.clone()));
    let mut made = decoder(&of_tiles);
    let (got, times) = row(&mut made, &file, (3, 5 * 4 * 3 * 100 * 100)).unwrap();
    assert_eq!(times, 1);
    let tile = 4 * 3 * 100 * 100;
    let bicubic = |side| Resize {
        interpolation: crate::recipe::InterpolationMode::Bicubic,
        ..Resize::exact(side, side)
    };
    let of_canvas = || with_operations(|r| r.then(bicubic(200)));
    let canvas = alone(&scaled(of_canvas()), 200);
    assert_ne!(
        canvas,
        alone(&of_canvas().with_decode(DecodeMode::Full), 200)
    );
    // Each value of the canvas is in its tile, in the same order within a line of a tile.
    let lines = canvas.chunks_exact(4 * 200).enumerate();
    for (number, line) in lines {
        let (channel, y) = (number / 200, number % 200);
        for (column, line) in line.chunks_exact(4 * 100).enumerate() {
            let at = 1 + y / 100 * 2 + column;
            let from = at * tile + 4 * 100 * (channel * 100 + y % 100);
            assert!(got[from..][..line.len()] == *line, "line {number}");
        }
    }
    // Alone, the overview would come from a quarter.
    let overview = alone(&scaled(with_operations(|r| r.then(bicubic(100)))), 100);
    assert_ne!(got[..tile], overview[..]);
    let apart = |a: &[u8], b: &[u8]| {
        let values = |bytes: &[u8]| -> Vec<f32> {
            let all = bytes.as_chunks::<4>().0.iter();
            all.map(|bytes| f32::from_ne_bytes(*bytes)).collect()
        };
        let (a, b) = (values(a), values(b));
        let pairs = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
        pairs.sum::<f32>() / a.len() as f32
    };
    assert!(apart(&got[..tile], &overview) < 0.02);
}

/// Both parts and the shared image are within the bound of the plan.
#[test]
fn memory_is_within_the_bound() {
    let files = [
        fixtures::jpeg(401, 333, Sampling::S420),
        fixtures::encode(300, 500, Sampling::S444, 90, true, 0),
        png(301, 222),
        png(12, 9),
        // In the canvas they are much narrower than in the overview.
        png(20, 900),
        fixtures::jpeg(900, 20, Sampling::S444),
    ];
    for tiles in [Tiles::internvl(96, 6), Tiles::llava_next(80)] {
        for mode in [DecodeMode::Scaled, DecodeMode::Full] {
            let recipe = recipe(tiles.clone()).with_decode(mode);
            let program = SampleProgram::compile(&recipe).unwrap();
            for file in &files {
                let header = read_header_within(&mut Cursor::new(file), &PictureLimits::default());
                let stored = StoredPicture::from(&header.unwrap());
                let bound = stored.scratch_bound(&program, None, &mut Vec::new());
                let bytes = program.picture_row_bytes(stored.upright_size()) as usize;
                let mut decoder = decoder(&recipe);
                for position in 0..20 {
                    row(&mut decoder, file, (position, bytes)).unwrap();
                    let held = decoder.canvas.held_bytes() + decoder.resampler.scratch_bytes();
                    assert!(held as u64 <= bound.buffers.bytes(), "{held} of {bound:?}");
                    let shared = decoder.shared_pixels.capacity() as u64;
                    assert!(shared <= bound.decoder.bytes(), "{shared} of {bound:?}");
                }
            }
        }
    }
}

/// A consumer that lies about a row fails the sample, and nothing else.
#[test]
fn a_row_without_room_is_refused() {
    for tiles in [Tiles::internvl(16, 6), Tiles::llava_next(16)] {
        let recipe = recipe(tiles);
        let mut decoder = decoder(&recipe);
        let bytes = SampleProgram::compile(&recipe)
            .unwrap()
            .picture_row_bytes((30, 60)) as usize;
        let file = png(60, 30);
        assert!(row(&mut decoder, &file, (0, bytes)).is_ok());
        for wrong in [0, 100, bytes / 3 + 10, bytes - 1, bytes + 1] {
            let text = row(&mut decoder, &file, (0, wrong)).unwrap_err();
            assert!(text.contains("another number of tiles"), "{text}");
        }
    }
}
