use super::*;
use crate::tests_support::golden;

fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks_exact(2);
    words
        .map(|word| u32::from(u16::from_le_bytes([word[0], word[1]])))
        .collect()
}

#[test]
fn canvases_are_those_of_transformers() {
    let rules: Vec<Tiles> =
        serde_json::from_slice(&golden("tiles", "sizes.json").unwrap()).unwrap();
    let numbers = words(&golden("tiles", "sizes.bin").unwrap());
    let count = numbers.len() / (2 + 4 * rules.len());
    assert_eq!((count, rules.len()), (500, 8));
    let (images, found) = numbers.split_at(2 * count);
    let mut wrong = Vec::new();
    for (op, found) in rules.iter().zip(found.chunks_exact(4 * count)) {
        let rule = op.rule().unwrap();
        rule.check().unwrap();
        for (image, wanted) in images.chunks_exact(2).zip(found.chunks_exact(4)) {
            let image = (image[0], image[1]);
            let (grid, inside) = (rule.grid(image), rule.inside(image));
            let got = [grid.rows, grid.columns, inside.0, inside.1];
            if got != wanted {
                wrong.push(format!("{op:?}: {image:?}: {got:?}, not {wanted:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_overview_is_one_more_tile() {
    let grid = |rows, columns| crate::recipe::PatchGrid { rows, columns };
    let internvl = Tiles::internvl(4, 6).rule().unwrap();
    assert_eq!(
        (internvl.tiles(grid(1, 1)), internvl.tiles(grid(1, 2))),
        (1, 3)
    );
    let llava = Tiles::llava_next(4).rule().unwrap();
    assert_eq!((llava.tiles(grid(1, 1)), llava.tiles(grid(1, 2))), (2, 3));
}

/// The range of each number: the last value inside, and the first outside.
#[test]
fn numbers_out_of_range_are_refused() {
    let of = |edit: &dyn Fn(&mut Tiles)| {
        let mut op = Tiles::internvl(8, 4);
        edit(&mut op);
        op.rule().and_then(|rule| rule.check())
    };
    let pinpoints = |sizes: &[(u32, u32)]| {
        let op = Tiles::llava_next(8).pinpoints(sizes.iter().copied());
        op.rule().and_then(|rule| rule.check())
    };
    let text = Tiles::llava_next(0).rule().unwrap_err();
    assert!(text.contains("tile_size 0 must be 1 to 2048"), "{text}");
    for size in [1, 2048] {
        of(&|op| op.tile_size = Some(size)).unwrap();
    }
    of(&|op| (op.min_tiles, op.max_tiles) = (Some(256), Some(256))).unwrap();
    pinpoints(&[(8, 8); 64]).unwrap();
    pinpoints(&[(8 * 16, 8 * 16), (8 * 256, 8)]).unwrap();
    let refused = [
        (
            of(&|op| op.tile_size = Some(0)),
            "tile_size 0 must be 1 to 2048",
        ),
        (
            of(&|op| op.tile_size = Some(2049)),
            "tile_size 2049 must be",
        ),
        (
            of(&|op| op.max_tiles = Some(0)),
            "max_tiles 0 must be 1 to 256",
        ),
        (of(&|op| op.max_tiles = Some(257)), "max_tiles 257 must be"),
        (
            of(&|op| op.min_tiles = Some(0)),
            "min_tiles 0 must be 1 to 4",
        ),
        (
            of(&|op| op.min_tiles = Some(5)),
            "min_tiles 5 must be 1 to 4",
        ),
        (
            of(&|op| (op.tile_size, op.max_tiles) = (Some(2048), Some(32))),
            "a side of 65536 pixels, and the limit is 65535",
        ),
        (
            of(&|op| (op.tile_size, op.max_tiles) = (Some(2048), Some(31))),
            "",
        ),
        (pinpoints(&[]), "0 canvases: give 1 to 64"),
        (pinpoints(&[(8, 8); 65]), "65 canvases: give 1 to 64"),
        (pinpoints(&[(8, 0)]), "multiples of tile_size, which is 8"),
        (pinpoints(&[(8, 12)]), "[8, 12]: height and width must be"),
        (pinpoints(&[(8 * 257, 8)]), "257 x 1 tiles: use at most 256"),
    ];
    for (got, wanted) in refused {
        match wanted.is_empty() {
            true => assert!(got.is_ok(), "{got:?}"),
            false => assert!(got.as_ref().is_err_and(|e| e.contains(wanted)), "{got:?}"),
        }
    }
}
