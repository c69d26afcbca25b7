//! `preview` of batches that end on a device.

use std::fs;

use crate::common::data;
use crate::common::standin::Standin;

/// A recipe whose rows workers finish, so that the stand-in has their pixels too.
const RECIPE: &str = "featherload: 1\nreorder: off\nops:\n  - random_resized_crop: {size: 64}\n  \
                      - rand_augment\n  - normalize: {mean: 0.5, std: 0.25}\n  - cast: {dtype: \
                      f16}\n";

#[test]
fn a_preview_of_batches_on_a_device_is_that_of_the_cpu() {
    let dir = data(2, 4);
    let files = tempfile::tempdir().unwrap();
    let recipe = files.path().join("recipe.yaml");
    fs::write(&recipe, RECIPE).unwrap();
    let standin = Standin::new();
    let preview = |device: &str| {
        let file = files.path().join(format!("{device}.png"));
        let args = [
            "preview",
            dir.path().to_str().unwrap(),
            "--recipe",
            recipe.to_str().unwrap(),
            "--ids",
            "0,3,6",
            "--draws",
            "2",
            "--device",
            device,
            "--out",
            file.to_str().unwrap(),
        ];
        let (out, _) = standin.run(&args, &[]);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        image::open(file).unwrap().to_rgb8()
    };
    let on_cpu = preview("cpu");
    assert!(standin.calls("cuMemcpyHtoDAsync_v2").is_empty());
    let on_device = preview("cuda");
    assert!(on_cpu == on_device, "the two previews differ");
    let log = fs::read_to_string(standin.log()).unwrap();
    assert!(log.contains("cuMemcpy"), "{log}");
}
