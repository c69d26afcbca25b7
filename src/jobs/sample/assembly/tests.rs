use super::*;
use crate::order::PositionRandom;
use crate::picture::jpeg::fixtures;
use crate::picture::jpeg::fixtures::Sampling;
use crate::recipe::{CenterCrop, DataType, MixSamples, Mosaic, Recipe, Resize};

/// The same file for each of ten samples. Sample 7 panics.
struct OneFile(Vec<u8>);

impl SampleFiles for OneFile {
    fn with_file(
        &mut self,
        id: u64,
        meter: &mut StageMeter,
        make: &mut FileUse<'_>,
    ) -> Result<(), SampleFault> {
        assert_ne!(id, 7, "on purpose");
        make(&self.0, None, meter)
    }

    fn name(&self, id: u64) -> String {
        format!("file {id}")
    }

    fn partner(&self, draw: PartnerDraw) -> u64 {
        (10.0 * draw.share) as u64
    }
}

struct Rows {
    assembler: SampleAssembler,
    last: SampleDecoder,
    files: OneFile,
}

impl Rows {
    fn new() -> Self {
        let recipe = Recipe::new("joined")
            .then(Resize::longer(48))
            .then(Mosaic::new(48))
            .then(CenterCrop::new(64))
            .then(MixSamples::default())
            .with_dtype(DataType::U8);
        let program = SampleProgram::compile(&recipe).unwrap();
        let limits = PictureLimits::default();
        Self {
            assembler: SampleAssembler::of(&program, &limits).unwrap().unwrap(),
            last: SampleDecoder::new(&program, &limits).unwrap(),
            files: OneFile(fixtures::jpeg(90, 70, Sampling::S420)),
        }
    }

    fn row(&mut self, id: u64, position: u64) -> Result<Vec<u8>, SampleFault> {
        let mut out = vec![0; 3 * 64 * 64];
        let request = RowRequest {
            random: &PositionRandom::new(7, 1, position),
            size: None,
            part: None,
            boxes: None,
            check_size: &|_| Ok(()),
        };
        let filled = self.assembler.make_row(
            (id, &mut self.last),
            &request,
            (&mut self.files, None),
            (&mut out, None),
            &mut StageMeter::default(),
        );
        filled.map(|()| out)
    }
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
}
