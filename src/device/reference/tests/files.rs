//! A file that is handed over for engines is the row that `decode: full` gives, once its
//! whole picture is decoded: by the CPU's decoder here, in the engines' place.

use super::*;
use crate::cut::crop::CropHeader;
use crate::device::frames::Frame;
use crate::device::reference::handed::handed_file;
use crate::picture::Limits;
use crate::picture::jpeg::fixtures::{self, Sampling};
use crate::picture::jpeg::{JpegDecoder, Region, Scale, Scratch, plain, read_header};
use crate::recipe::{CenterCrop, CropRoom, RandomHorizontalFlip, RandomVerticalFlip};

const MOST: (u32, u32) = (1024, 1024);

/// The whole picture of a plain file, in a frame of an arena.
fn in_frame(file: &[u8], size: (u32, u32)) -> (Vec<u8>, Frame) {
    let mut memory = vec![0x5a; Frame::bytes(size)];
    let frame = Frame::new(0, size.0);
    let header = read_header(file).unwrap();
    let mut scratch = Scratch::default();
    let decoded = JpegDecoder::new(&Limits::default())
        .decode_region(
            file,
            &header,
            Scale::Full,
            Region::whole(size),
            &mut scratch,
        )
        .unwrap();
    for y in 0..size.1 {
        let line = &scratch.rgb[y as usize * decoded.stride..][..3 * size.0 as usize];
        memory[frame.pixel(0, y)..][..line.len()].copy_from_slice(line);
    }
    (memory, frame)
}

/// The row that a device makes: of the crop, where it lies in the frame, with the lines that
/// the frame has.
fn made(program: &SampleProgram, row: &[u8], header: &CropHeader, room: CropRoom) -> Vec<u8> {
    let file = &row[room.pixels_at()..][..header.coded as usize];
    let size = (header.picture[0], header.picture[1]);
    assert_eq!(plain::check(file, MOST), Ok(size));
    let (memory, frame) = in_frame(file, size);
    let first = frame.pixel(header.corner[0], header.corner[1]);
    let as_lines = CropHeader {
        width: frame.stride(),
        ..*header
    };
    let bytes = 3 * as_lines.width as usize * as_lines.height as usize;
    let mut whole = row[..room.pixels_at()].to_vec();
    whole.extend(memory[first..].iter().take(bytes));
    // The last line may end behind the frame: the kernel reads none of that.
    whole.resize(room.pixels_at() + bytes, 0);
    CpuStage::new(program.emission, resampler()).row(&whole, &as_lines, room)
}

#[test]
fn a_file_for_engines_is_the_row_of_a_full_decode() {
    let mode = |mode| Decode {
        mode: Some(mode),
        ..Decode::default()
    };
    type Build = fn(Recipe) -> Recipe;
    let recipes: [Build; 3] = [
        |r| {
            r.then(RandomResizedCrop::new(96))
                .then(RandomHorizontalFlip::default())
                .then(RandomVerticalFlip::default())
        },
        |r| r.then(Resize::shorter(100)).then(CenterCrop::new(90)),
        |r| r.then(CenterCrop::new(140)),
    ];
    let mut seen = BTreeMap::new();
    for (i, build) in recipes.into_iter().enumerate() {
        let of = |decode| {
            let recipe = build(Recipe::new("files").then(mode(decode)));
            let recipe = recipe.then(Cast { dtype: Dtype::F32 });
            let program = SampleProgram::compile(&recipe).unwrap();
            program.with_crops().unwrap()
        };
        // Engines know no smaller scale: what is asked of workers does not matter.
        let (scaled, full) = (of(DecodeMode::Scaled), of(DecodeMode::Full));
        for (n, sampling) in (0u64..).zip([
            Sampling::S444,
            Sampling::S422,
            Sampling::S420,
            Sampling::S440,
        ]) {
            for turn in 0..=8u8 {
                let (w, h) = (150 + 31 * u32::from(turn), 320 - 23 * n as u32);
                let mut file = fixtures::encode(w, h, sampling, 60, false, 0);
                if turn > 0 {
                    file = fixtures::turned(file, turn);
                }
                let position = 100 * n + u64::from(turn);
                let limits = Limits::default();
                let handed_over = handed_file(&scaled, &file, position, MOST, &limits).unwrap();
                let Some((row, header, room)) = handed_over else {
                    *seen.entry(format!("recipe {i}: no room")).or_insert(0) += 1;
                    continue;
                };
                assert_eq!(header.picture, [w, h]);
                let (pixels, of_pixels, _) = handed(&full, &file, position, None).unwrap();
                if was_resized(&of_pixels) && !was_resized(&header) {
                    // Its pixels have no room, and the file has.
                    *seen.entry(format!("recipe {i}: file alone")).or_insert(0) += 1;
                    continue;
                }
                assert_eq!(
                    (of_pixels.width, of_pixels.height),
                    (header.width, header.height)
                );
                let wanted =
                    CpuStage::new(full.emission, resampler()).row(&pixels, &of_pixels, room);
                assert!(
                    made(&scaled, &row, &header, room) == wanted,
                    "{sampling:?} {turn}"
                );
                *seen.entry(format!("recipe {i}: as full")).or_insert(0) += 1;
            }
        }
    }
    for i in 0..3 {
        let same = seen
            .get(&format!("recipe {i}: as full"))
            .copied()
            .unwrap_or(0);
        assert!(same > 10, "{seen:?}");
    }
    // Crops of large pictures have more weights than a row has room for.
    assert!(
        seen.keys().any(|what| what.ends_with("no room")),
        "{seen:?}"
    );
}

#[test]
fn what_is_not_for_engines_keeps_the_verdict_of_workers() {
    let program = SampleProgram::compile(&Recipe::train224()).unwrap();
    let program = program.with_crops().unwrap();
    let limits = Limits::default();
    let usual = fixtures::jpeg(300, 260, Sampling::S420);
    let of = |file: &[u8], limits: &Limits| {
        let handed = handed_file(&program, file, 3, MOST, limits)?;
        Ok::<bool, String>(handed.is_some())
    };
    assert_eq!(of(&usual, &limits), Ok(true));
    // A worker decodes it, or says why not.
    let cut = usual[..usual.len() - 2].to_vec();
    let grey = fixtures::jpeg(300, 260, Sampling::Grey);
    let large = fixtures::jpeg(1030, 100, Sampling::S420);
    for file in [&cut, &grey, &large, &b"GIF89a, or so".to_vec()] {
        assert_eq!(of(file, &limits), Ok(false));
    }
    for file in [true, false].map(|kind| fixtures::many_scans(101, kind)) {
        assert_eq!(of(&file, &limits), Ok(false));
        let said = filled(&program, &file, 3, None, 1 << 20).unwrap_err();
        assert!(said.starts_with("JPEG of more than 100 scans"), "{said}");
    }
    let few = Limits {
        max_pixels: 300 * 260 - 1,
        ..limits
    };
    assert_eq!(of(&usual, &few), Ok(false));
    // What no decode is needed for is said here, in the same words.
    let fault = |file: &[u8]| filled(&program, file, 3, None, 1 << 20).unwrap_err();
    let short = &usual[..40];
    assert_eq!(of(short, &limits), Err(fault(short)));
    let small = Limits {
        max_scratch: 1000,
        ..limits
    };
    assert!(of(&usual, &small).unwrap_err().contains("max_scratch"));
}

/// How many rows engines get of photos: the share that a run can give them at most.
#[test]
fn most_rows_of_photos_can_be_handed_over() {
    let photos = fixtures::photos();
    for recipe in [Recipe::train224(), Recipe::eval224()] {
        let name = recipe.name.clone();
        let program = SampleProgram::compile(&recipe).unwrap();
        let program = program.with_crops().unwrap();
        for side in [512, 1024, 2048] {
            let mut taken = 0;
            for (position, (path, file)) in (0..).zip(&photos) {
                let most = (side, side);
                let handed = handed_file(&program, file, position, most, &Limits::default());
                let handed = handed.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
                taken += usize::from(handed.is_some());
            }
            println!("{name}, up to {side} x {side}: {taken} of {}", photos.len());
            let least = if side == 512 { 5 } else { 8 };
            assert!(
                10 * taken >= least * photos.len(),
                "{name}, {side}: {taken}"
            );
        }
    }
}
