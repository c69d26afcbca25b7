//! MultiScaleDataset: which operation sets the batch's size, and which configs are rejected because
//! PaddleClas would do something else.

use crate::configs::paddle::ops::tests::*;

fn multi(text: &str) -> Result<Translated, TextMistake> {
    let mut rules = rules();
    rules.multi_scale = true;
    let text = format!("- DecodeImage:\n{text}\n- NormalizeImage: {{order: ''}}");
    with(&text, &rules)
}

/// The operations between decoding and normalising, and the notes.
fn read(text: &str) -> (Vec<Op>, Vec<String>) {
    let all = multi(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    (all.ops[1..all.ops.len() - 3].to_vec(), all.notes)
}

fn refused(text: &str) -> String {
    match multi(text) {
        Ok(_) => panic!("{text} is read"),
        Err(e) => format!("{}: {e}", e.line()),
    }
}

#[test]
fn the_size_comes_from_the_sampler_and_the_rest_is_dropped() {
    let crop = Op::from(BoundedResizedCrop::new(256));
    let (ops, notes) = read(
        "- RandCropImage: {size: 256, interpolation: bicubic, backend: pil, use_log_aspect: True}",
    );
    assert_eq!(ops, vec![crop.clone()]);
    assert!(
        notes[0].starts_with("line 2")
            && notes[0].contains("other parameter (interpolation, backend, use_log_aspect)"),
        "{notes:?}"
    );
    let (ops, notes) = read("- RandCropImage: {size: 256}");
    assert_eq!((ops, notes.len()), (vec![crop.clone()], 0));
    let resize = Op::from(Resize {
        size: Some(ResizeTo::Exact(224.into())),
        ..RESIZE
    });
    assert_eq!(
        read("- ResizeImage: {resize_short: 256}").0,
        vec![resize.clone()]
    );
    // A setting without effect is no reason to reject a config.
    for dropped in [
        "interpolation: random",
        "interpolation: area",
        "interpolation: 5",
        "progress_size: [128, 160]",
        "backend: gpu",
        "scale: none",
        "anything: 1",
    ] {
        let (ops, notes) = read(&format!("- RandCropImage: {{size: 256, {dropped}}}"));
        assert_eq!((ops, notes.len()), (vec![crop.clone()], 1), "{dropped}");
        let (ops, _) = read(&format!("- ResizeImage: {{{dropped}}}"));
        assert_eq!(ops, vec![resize.clone()], "{dropped}");
    }
}

#[test]
fn what_keeps_the_batchs_size_is_left_out() {
    for op in [
        "- CropImage: {size: 8}",
        "- ResizeImage: {size: 8, backend: pil}",
    ] {
        let (ops, notes) = read(&format!(
            "- ResizeImage: {{size: 256}}\n- RandFlipImage:\n{op}"
        ));
        assert_eq!(ops.len(), 2, "{op}");
        assert!(
            notes[0].starts_with("line 4") && notes[0].contains("left out"),
            "{notes:?}"
        );
    }
}

#[test]
fn another_size_beside_the_batchs_is_refused_with_its_line() {
    for (text, start) in [
        // PaddleClas replaces both.
        (
            "- ResizeImage: {size: 256}\n- RandCropImage: {size: 224}",
            "3: RandCropImage: MultiScaleDataset gives",
        ),
        (
            "- RandCropImage: {size: 256}\n- RandCropImage: {size: 224}",
            "3: RandCropImage: MultiScaleDataset gives",
        ),
        (
            "- CropImage: {size: 224}",
            "2: CropImage: MultiScaleDataset cuts",
        ),
        (
            "- CropImage: {size: 224}\n- RandCropImage: {size: 224}",
            "2: CropImage: MultiScaleDataset cuts",
        ),
        (
            "- RandCropImage: {size: 224}\n- Padv2: {size: 256, fill_value: 0}",
            "3: Padv2 changes the batch's size",
        ),
        (
            "- RandCropImage: {size: 224}\n- RandomResizedCrop: {size: 8}",
            "3: RandomResizedCrop changes",
        ),
        (
            "- RandCropImage: {size: 224}\n- Pad: {padding: 4, backend: cv2}",
            "3: Pad changes",
        ),
        (
            "- RandCropImage: {size: 224}\n- Pad_paddle_vision: {padding: 4}",
            "3: Pad_paddle_vision changes",
        ),
        (
            "- RandCropImage: {size: 224}\n- RandCropImageV2: {size: 8}",
            "3: RandCropImageV2 changes",
        ),
        (
            "- RandCropImage: {size: 224}\n- RandomCropImage: {size: 8}",
            "3: RandomCropImage changes",
        ),
    ] {
        let e = refused(text);
        assert!(e.starts_with(start), "{text}: {e}");
    }
    // PaddleClas needs one of its own, not one of paddle.vision's.
    for text in ["- RandFlipImage:", "- RandomResizedCrop: {size: 224}"] {
        let e = refused(text);
        assert!(
            e.contains("needs RandCropImage or ResizeImage"),
            "{text}: {e}"
        );
    }
    // Operations before it set their own sizes.
    let (ops, _) = read("- RandomCropImage: {size: 300}\n- RandCropImage: {size: 224}");
    assert_eq!(
        ops,
        [
            RandomCrop::new(300).into(),
            BoundedResizedCrop::new(224).into()
        ]
    );
}

#[test]
fn the_batchs_size_is_opencvs() {
    let mut rules = rules();
    rules.multi_scale = true;
    let picture = "- DecodeImage: {backend: pil, to_np: False}\n- RandCropImage: {size: 8}";
    let e = with(picture, &rules).err().unwrap();
    assert!(e.to_string().contains("works on arrays"), "{e}");
}
