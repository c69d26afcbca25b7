use super::*;
use crate::recipe::{
    CenterCrop, DataType, MemoryLayout, Mixing, OrientationMode, RandomHorizontalFlip,
    RandomResizedCrop, RecipeFormat, ReorderMode, SampleProgram,
};

fn crop(size: u32) -> Recipe {
    Recipe::new("any")
        .then(RandomResizedCrop::new(size))
        .then(RandomHorizontalFlip::default())
}

fn dino() -> Recipe {
    Recipe::new("dino")
        .with_crop(crop(224), 2)
        .with_crop(crop(96), 8)
}

fn fault(recipe: &Recipe) -> String {
    SampleProgram::compile(recipe).unwrap_err().to_string()
}

#[test]
fn a_program_for_each_crop_in_order() {
    let program = SampleProgram::compile(&dino()).unwrap();
    assert!(program.is_crop_set());
    let sizes: Vec<_> = program.crop_rows().iter().map(|(size, _)| size.0).collect();
    assert_eq!(sizes, [224, 224, 96, 96, 96, 96, 96, 96, 96, 96]);
    let alone = SampleProgram::compile(&crop(96)).unwrap();
    assert_eq!(program.crop_programs()[9], alone);
    assert!(alone.crop_rows().is_empty() && !alone.is_crop_set());
    let sent = serde_json::to_string(&program).unwrap();
    let read: SampleProgram = serde_json::from_str(&sent).unwrap();
    assert_eq!(read, program);
}

#[test]
fn changes_apply_to_every_crop() {
    let recipe = dino()
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc)
        .with_reorder(ReorderMode::Fast);
    let program = SampleProgram::compile(&recipe).unwrap();
    for of_crop in program.crop_programs() {
        assert_eq!(of_crop.output_format.dtype, DataType::U8);
        assert_eq!(of_crop.output_format.layout, MemoryLayout::Nhwc);
        assert_eq!(of_crop.recipe().reorder, Some(ReorderMode::Fast));
    }
}

#[test]
fn shared_operations_are_those_of_the_first_crop() {
    let longer = crop(224).then(RandomHorizontalFlip::default());
    let shared = |of: Recipe, n| {
        Recipe::new("s")
            .with_crop(crop(224), 1)
            .with_shared_crop(of, 1, n)
    };
    assert!(SampleProgram::compile(&shared(longer.clone(), 2)).is_ok());
    // Options of a loader change neither the number nor what it means.
    let changed = shared(longer.clone(), 2)
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc)
        .with_decode(crate::recipe::DecodeMode::Full);
    assert!(SampleProgram::compile(&changed).is_ok());
    for (recipe, why) in [
        (
            shared(longer.clone(), 3),
            "random_horizontal_flip, operation 3 of the crop, must be that of the first crop, \
             which has none there",
        ),
        (shared(longer, 4), "operation 3 of the crop"),
        (
            shared(crop(96), 1),
            "random_resized_crop, operation 1 of the crop, must be that of the first crop, which \
             has random_resized_crop there",
        ),
        (
            shared(Recipe::new("c").then(CenterCrop::new(224)), 1),
            "which has random_resized_crop there",
        ),
        (shared(crop(224), 3), "the crop has 2 operations beside"),
    ] {
        let fault = fault(&recipe);
        assert!(fault.contains(why), "{fault}");
    }
    let hashes = [0, 1, 2].map(|n| shared(crop(224), n).hash());
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
    for format in [RecipeFormat::Yaml, RecipeFormat::Toml, RecipeFormat::Json] {
        let text = shared(crop(224), 2).to_text(format).unwrap();
        assert!(text.contains("shared"), "{text}");
        let read = Recipe::from_text(&text, format, "s").unwrap();
        assert_eq!(read.crops[1].shared, 2);
        let without = shared(crop(224), 0).to_text(format).unwrap();
        assert!(!without.contains("shared"), "{without}");
    }
}

#[test]
fn hashes_differ_by_crops_and_counts() {
    let hashes = [
        crop(224),
        Recipe::new("a").with_crop(crop(224), 1),
        Recipe::new("a").with_crop(crop(224), 2),
        Recipe::new("a").with_crop(crop(96), 1),
        dino(),
    ]
    .map(|recipe| recipe.hash());
    for (i, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..i].contains(hash), "{i}");
    }
}

#[test]
fn every_language_reads_what_it_writes() {
    for format in [RecipeFormat::Yaml, RecipeFormat::Toml, RecipeFormat::Json] {
        let text = dino().to_text(format).unwrap();
        let read = Recipe::from_text(&text, format, "dino").unwrap();
        assert_eq!(read, dino(), "{text}");
    }
    let json = serde_json::to_string(&dino()).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), dino());
}

#[test]
fn what_crops_cannot_do_is_refused() {
    let mixed = crop(8).with_mixing(Mixing::new(3));
    let cases = [
        (dino().then(CenterCrop::new(9)), "ops stands beside crops"),
        (
            Recipe {
                reorder: Some(ReorderMode::Off),
                ..dino()
            },
            "reorder stands beside crops",
        ),
        (dino().with_mixing(Mixing::new(3)), "mixing needs one image"),
        (Recipe::new("a").with_crop(mixed, 1), "has mixing"),
        (Recipe::new("a").with_crop(dino(), 1), "crops of its own"),
        (Recipe::new("a").with_crop(crop(8), 0), "count is 0"),
        (Recipe::new("a").with_crop(crop(8), 257), "at most 256"),
        (
            Recipe::new("a").with_crop(Recipe::full(), 1),
            "crop 0 (full): keeps the size of each image",
        ),
        (
            dino().with_crop(crop(8).with_dtype(DataType::U8), 1),
            "dtype is u8, and f32 in the first crop: all crops of an image need the same: set dtype",
        ),
        (
            dino().with_crop(crop(8).with_layout(MemoryLayout::Nhwc), 1),
            "layout is nhwc, and nchw in the first crop: all crops of an image need the same: set layout",
        ),
        (
            dino().with_crop(crop(8).with_orientation(OrientationMode::Stored), 1),
            "decode has orientation \"stored\", and \"exif\" in the first crop",
        ),
    ];
    for (recipe, expected) in cases {
        let fault = fault(&recipe);
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn a_mistake_in_a_file_has_the_line_of_its_operation() {
    let text = "featherload: 1\ncrops:\n  - name: global\n    count: 2\n    ops:\n      - \
                random_resized_crop: {size: 224}\n  - name: local\n    ops:\n      - \
                random_resized_crop: {size: 96}\n      - random_horizontal_flip: {p: 2}\n";
    let read = |text: &str| Recipe::from_text(text, RecipeFormat::Yaml, "dino.yaml");
    let e = read(text).unwrap_err().to_string();
    assert!(
        e.contains("dino.yaml:10: crop 1 (local): random_horizontal_flip"),
        "{e}"
    );
    let good = read(&text.replace("p: 2", "p: 1")).unwrap();
    assert_eq!(
        (good.crops.len(), good.crops[0].count, good.crops[1].count),
        (2, 2, 1)
    );
    let e = read(&text.replace("count", "counts"))
        .unwrap_err()
        .to_string();
    assert!(e.contains("has no parameter 'counts'"), "{e}");
    let e = read("featherload: 1\ncrops: []\n").unwrap_err().to_string();
    assert!(e.contains("crops is an empty list"), "{e}");
    let e = read("featherload: 1\n").unwrap_err().to_string();
    assert!(e.contains("'ops' is missing"), "{e}");
}
