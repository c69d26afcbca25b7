use crate::recipe::{
    CenterCrop, ColorJitter, CopyPaste, CutSamples, Layout, MemoryLayout, MixSamples, Mosaic,
    Normalize, RandomCrop, RandomHorizontalFlip, RandomRotate90, Recipe, Resize, SampleProgram,
    ZeroChannel,
};

fn joined() -> Recipe {
    Recipe::new("joined")
        .then(Resize::longer(64))
        .then(RandomHorizontalFlip::default())
        .then(Mosaic::new(64))
        .then(RandomHorizontalFlip::default())
        .then(CenterCrop::new(64))
        .then(MixSamples::default())
        .then(ColorJitter::default())
        .then(RandomHorizontalFlip::default())
        .then(Normalize::imagenet())
}

#[test]
fn joints_divide_a_recipe_into_stages() {
    let program = SampleProgram::compile(&joined()).unwrap();
    let stages = program.joined_stages();
    assert_eq!(stages.len(), 2);
    assert_eq!((stages[0].most, stages[0].canvas), ((64, 64), (128, 128)));
    assert_eq!((stages[1].most, stages[1].canvas), ((64, 64), (64, 64)));
    assert_eq!(program.most_pictures(), 8);
    assert!(program.with_crops().is_err() && program.with_fast_order().is_none());
    // Each flip has the stream that it has in the whole recipe.
    let flips = [&stages[0].program, &stages[1].program, &program].map(|program| {
        let mut ops = program.ops.iter();
        let flip = ops.find(|drawn| drawn.op.name() == "random_horizontal_flip");
        flip.unwrap().stream
    });
    assert_eq!((flips[1], flips[2]), (flips[0] + 1, flips[0] + 2));
    // Files are decoded at a smaller scale, as without joints.
    let alone = Recipe::new("alone").then(Resize::exact(64, 64));
    let alone = SampleProgram::compile(&alone).unwrap();
    assert_eq!(program.decoding_stage().decode, alone.decode);
    let text = serde_json::to_string(&program).unwrap();
    let sent: SampleProgram = serde_json::from_str(&text).unwrap();
    assert_eq!(sent, program);
    assert_ne!(joined().hash(), {
        let mut other = joined();
        other.ops[2] = Mosaic {
            p: 0.5,
            ..Mosaic::new(64)
        }
        .into();
        other.hash()
    });
}

#[test]
fn wrong_recipes_are_refused_with_the_operation() {
    let of = |recipe: Recipe| SampleProgram::check(&recipe).unwrap_err();
    let base = || Recipe::new("r").then(Resize::longer(64));
    let cases = [
        (Recipe::new("r").then(Mosaic::new(64)), 0, "put a resize"),
        (
            Recipe::new("r")
                .then(Resize::shorter(64))
                .then(Mosaic::new(64)),
            1,
            "at most 64 x 64",
        ),
        (
            Recipe::new("r")
                .then(Resize::exact(64, 65))
                .then(Mosaic::new(64)),
            1,
            "smaller than the images, which are 65 x 64",
        ),
        (
            base().then(MixSamples::default()),
            1,
            "pictures of one size",
        ),
        (
            base().then(CutSamples::default()),
            1,
            "pictures of one size",
        ),
        (base().then(CopyPaste::default()), 1, "pictures of one size"),
        (
            base().then(Mosaic::new(64)).then(CopyPaste {
                max_overlap: 1.5,
                ..CopyPaste::default()
            }),
            2,
            "max_overlap",
        ),
        (
            base().then(Mosaic {
                grid: 4,
                ..Mosaic::new(64)
            }),
            1,
            "use 2 or 3",
        ),
        (
            base().then(Normalize::imagenet()).then(Mosaic::new(64)),
            2,
            "move it before normalize",
        ),
        (
            base()
                .then(Layout {
                    layout: MemoryLayout::Nhwc,
                })
                .then(Mosaic::new(64)),
            1,
            "move it after mosaic",
        ),
        (
            base().then(ZeroChannel {}).then(Mosaic::new(64)),
            1,
            "move it after mosaic",
        ),
        (
            base()
                .then(RandomRotate90 { label: true })
                .then(Mosaic::new(64)),
            1,
            "move it after mosaic",
        ),
        (
            base()
                .then(Mosaic {
                    grid: 3,
                    ..Mosaic::new(64)
                })
                .then(CenterCrop::new(64))
                .then(Mosaic {
                    grid: 3,
                    ..Mosaic::new(64)
                }),
            3,
            "81 pictures",
        ),
        (
            base().then(Mosaic::new(64)).then(RandomCrop::new(300)),
            2,
            "larger than the image, which is 128 x 128",
        ),
    ];
    for (recipe, op, text) in cases {
        let fault = of(recipe);
        assert!(fault.message.contains(text), "{fault:?}");
        assert_eq!(fault.op, Some(op), "{fault:?}");
    }
    let crops = Recipe::new("crops").with_crop(base().then(Mosaic::new(64)), 2);
    assert!(of(crops).message.contains("joins samples"));
}
