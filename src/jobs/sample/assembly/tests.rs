use super::*;
use crate::jobs::mask_rule::MaskRule;
use crate::jobs::picture_window::{KeptPicture, PictureWindow, WindowShape};
use crate::jobs::sample::assembly::picture_source::{FileUse, SampleFiles};
use crate::jobs::sample::mask::MaskReader;
use crate::order::{PlacedSample, PositionRandom};
use crate::picture::PixelBox;
use crate::picture::jpeg::fixtures;
use crate::picture::jpeg::fixtures::Sampling;
use crate::recipe::joints::PartnerDraw;
use crate::recipe::{CenterCrop, CutSamples, DataType, MixSamples, Mosaic, Recipe, Resize};

/// The same file, and the same mask, for each of ten samples. Sample 7 panics.
struct OneFile {
    image: Vec<u8>,
    mask: Vec<u8>,
    /// How often it was opened.
    opened: u32,
}

impl SampleFiles for OneFile {
    fn with_file(
        &mut self,
        id: u64,
        meter: &mut StageMeter,
        make: &mut FileUse<'_>,
    ) -> Result<(), SampleFault> {
        assert_ne!(id, 7, "on purpose");
        self.opened += 1;
        make(&self.image, None, meter)
    }

    fn with_mask(
        &mut self,
        _: u64,
        meter: &mut StageMeter,
        make: &mut FileUse<'_>,
    ) -> Result<(), SampleFault> {
        make(&self.mask, None, meter)
    }

    fn pixel_box(&self, _: u64) -> Option<PixelBox> {
        None
    }

    fn name(&self, id: u64) -> String {
        format!("file {id}")
    }

    fn partner(&self, draw: PartnerDraw) -> PlacedSample {
        placed((10.0 * draw.share) as u64)
    }
}

fn placed(id: u64) -> PlacedSample {
    PlacedSample { id, place: id }
}

/// A PNG of labels.
fn labels((width, height): (u32, u32)) -> Vec<u8> {
    let image = image::GrayImage::from_fn(width, height, |x, y| image::Luma([(3 * x + y) as u8]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

struct Rows {
    assembler: SampleAssembler,
    last: SampleDecoder,
    files: OneFile,
    masks: Option<MaskReader>,
    window: Option<PictureWindow>,
}

impl Rows {
    fn new() -> Self {
        Self::of(base().then(MixSamples::default()), false)
    }

    fn of(recipe: Recipe, classes: bool) -> Self {
        let program = SampleProgram::compile(&recipe.with_dtype(DataType::U8)).unwrap();
        let limits = PictureLimits::default();
        let needs = StageNeeds {
            classes,
            objects: None,
        };
        let assembler = SampleAssembler::of(&program, &limits, needs).unwrap();
        Self {
            assembler: assembler.unwrap(),
            last: SampleDecoder::new(&program, &limits).unwrap(),
            files: OneFile {
                image: fixtures::jpeg(90, 70, Sampling::S420),
                mask: labels((90, 70)),
                opened: 0,
            },
            masks: classes.then(|| MaskReader::new(&MaskRule::default(), &limits)),
            window: None,
        }
    }

    /// The same with room for ten pictures.
    fn keeping(self, recipe: Recipe, classes: bool) -> Self {
        let program = SampleProgram::compile(&recipe.with_dtype(DataType::U8)).unwrap();
        let needs = StageNeeds {
            classes,
            objects: None,
        };
        let shape = WindowShape::of(&program, needs, 10).unwrap();
        Self {
            window: Some(PictureWindow::create(shape).unwrap()),
            ..self
        }
    }

    fn row(&mut self, id: u64, position: u64) -> Result<Vec<u8>, SampleFault> {
        let mut out = vec![0; 3 * 64 * 64];
        let mut mask = vec![0; 64 * 64];
        let request = RowRequest {
            random: &PositionRandom::new(7, 1, position),
            size: None,
            part: None,
            boxes: None,
            check_size: &|_| Ok(()),
        };
        let mut source = PictureSource {
            files: &mut self.files,
            objects: None,
            masks: self.masks.as_ref(),
            window: self.window.as_ref(),
        };
        let places = JoinedRow {
            pixels: &mut out,
            mask: Some(&mut mask),
            record: None,
        };
        let filled = self.assembler.make_row(
            (placed(id), &mut self.last),
            &request,
            &mut source,
            places,
            &mut StageMeter::default(),
        );
        filled.map(|()| [out, mask].concat())
    }
}

fn base() -> Recipe {
    Recipe::new("joined")
        .then(Resize::longer(48))
        .then(Mosaic::new(48))
        .then(CenterCrop::new(64))
}

#[test]
fn a_panic_is_a_failed_sample_and_leaves_nothing() {
    let mut rows = Rows::new();
    // Rows of eight pictures, some of which have the partner that panics.
    let before: Vec<_> = (0..8).map(|position| rows.row(0, position)).collect();
    assert!(before.iter().any(Result::is_ok) && before.iter().any(Result::is_err));
    for row in before.iter().filter_map(|row| row.as_ref().err()) {
        assert!(row.reason.contains("panicked"), "{row}");
    }
    assert!(rows.row(7, 0).is_err());
    let again: Vec<_> = (0..8).map(|position| rows.row(0, position)).collect();
    assert!(again == before);
    assert!(rows.row(1, 0) == before[0], "the same file");
}

#[test]
fn a_picture_above_the_bound_fails_before_it_is_decoded() {
    let mut rows = Rows::new();
    rows.assembler.stages[0].stage.most = (48, 47);
    let fault = rows.row(0, 3).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLarge);
    let text = "mosaic takes images of at most 47 x 48, and this one has 48 x 37 there";
    assert!(fault.reason.contains(text), "{fault}");
}

#[test]
fn buffers_are_those_that_the_plan_counts() {
    let mut rows = Rows::new();
    (0..6).for_each(|position| drop(rows.row(0, position)));
    let held = |maker: &StageMaker| (maker.picture.len() + maker.canvas.len()) as u64;
    let counted = rows.assembler.canvas_bytes();
    assert_eq!(rows.assembler.stages.iter().map(held).sum::<u64>(), counted);
    assert_eq!(counted, 3 * (48 * 48 + 96 * 96 + 64 * 64 + 64 * 64));
    assert_eq!(rows.assembler.most_pictures(), 8);
    assert_eq!(rows.assembler.decoders(), 2);
}

/// With labels: those of the last picture and of the canvas, and those of a row of the stage.
#[test]
fn buffers_of_labels_are_those_that_the_plan_counts() {
    let mut rows = Rows::of(base().then(CutSamples::default()), true);
    // Some rows have the partner that panics. Its buffers are freed, so the last row has it not.
    let made = (0..20).find(|position| rows.row(0, *position).is_ok());
    assert!(made.is_some());
    let held = |maker: &StageMaker| {
        let labels = maker.labels.as_ref().unwrap();
        (labels.picture.len(), labels.canvas.len(), maker.stage.most)
    };
    let held: Vec<_> = rows.assembler.stages.iter().map(held).collect();
    // The picture has 48 x 37 pixels.
    assert_eq!(held[0], (3 * 48 * 37, 3 * 96 * 96, (48, 48)));
    assert_eq!(held[1], (3 * 64 * 64, 3 * 64 * 64, (64, 64)));
    let pixels = 3 * (48 * 48 + 96 * 96 + 64 * 64 + 64 * 64);
    let rows_of_labels = 3 * (48 * 48 + 64 * 64);
    let counted = rows.assembler.canvas_bytes();
    assert_eq!(counted, 2 * pixels + rows_of_labels);
    assert_eq!(rows.assembler.decoders(), 5);
}

/// Also what another process wrote where it should not.
#[test]
fn kept_pictures_are_those_of_files() {
    for classes in [false, true] {
        let recipe = || {
            let mosaic = Mosaic {
                partner_window: Some(10),
                ..Mosaic::new(48)
            };
            let resized = Recipe::new("kept").then(Resize::longer(48));
            resized.then(mosaic).then(CenterCrop::new(64))
        };
        let mut plain = Rows::of(recipe(), classes);
        let mut kept = Rows::of(recipe(), classes).keeping(recipe(), classes);
        let mut made = 0;
        for position in 0..20 {
            let want = plain.row(position % 7, position);
            made += u32::from(want.is_ok());
            let got = kept.row(position % 7, position);
            assert_eq!(got.is_ok(), want.is_ok());
            assert!(got.ok() == want.ok(), "{position}");
        }
        assert!(made > 5 && kept.files.opened <= 9, "{}", kept.files.opened);
        assert!(plain.files.opened >= 4 * made);
        for (image, is_refused) in [
            ((0, 0), true),
            ((0, 90), true),
            ((u32::MAX, u32::MAX), true),
            ((u32::MAX, 1), true),
            // Sizes that an image may have: the row holds other pixels.
            ((1, 90), false),
            ((900, 700), false),
        ] {
            for position in 0..20 {
                let window = kept.window.as_ref().unwrap();
                for place in 0..10 {
                    let lie = KeptPicture {
                        image,
                        truncated: false,
                    };
                    window.hold(place).unwrap().keep(place, lie, &[], &[]);
                }
                let want = plain.row(position % 7, position);
                let got = kept.row(position % 7, position);
                // The sample whose file panics is never kept, but this lie says that it is.
                if is_refused {
                    assert!(got.ok() == want.ok(), "{image:?}");
                } else {
                    assert!(got.is_ok(), "{image:?}: {got:?}");
                }
            }
        }
    }
}
