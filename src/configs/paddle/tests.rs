//! Whole configs: trees, data sets, samplers, batch operations, environment.

use std::path::{Path, PathBuf};

use crate::configs::paddle::{ConfigOptions, LauncherEnvironment, TrainingConfig};
use crate::data::index::{CifarClasses, CifarOptions, ListDelimiter, ListLabels};
use crate::order::{
    EpochLength, EpochTail, IdentityProb, IdentityRatio, MultiScale, Rank, Sampler,
};
use crate::recipe::{MixChoice, MixOp, Mixing, Op, OrientationMode, ReorderMode};

const CONFIG: &str = "\
Global:
  epochs: 120
  seed: 7
  use_dali: False
Arch:
  name: ResNet50
  class_num: &class_num 10
DataLoader:
  Train:
    dataset:
      name: ImageNetDataset
      image_root: ./images/
      cls_label_path: ./train.txt
      transform_ops:
        - DecodeImage:
            to_rgb: True
        - RandCropImage:
            size: 224
        - NormalizeImage:
            scale: 1.0/255.0
            order: ''
    sampler:
      name: DistributedBatchSampler
      batch_size: 64
      drop_last: False
      shuffle: True
    loader:
      num_workers: 4
      use_shared_memory: True
  Eval:
    Query:
      dataset: {name: VeriWild, image_root: i, cls_label_path: q.txt, transform_ops: [DecodeImage: null]}
      sampler: {batch_size: 8, drop_last: False, shuffle: False}
    Gallery:
      dataset: {name: MultiLabelDataset, image_root: i, cls_label_path: g.txt, label_ratio: True, transform_ops: [DecodeImage: null]}
      sampler: {name: PKSampler, batch_size: 8, sample_per_id: 4}
      loader: {num_workers: 0, prefetch_factor: 2}
";

fn options() -> ConfigOptions {
    ConfigOptions {
        skip_unknown_ops: false,
        environment: LauncherEnvironment::default(),
        usable_cpus: 2,
    }
}

fn read(text: &str, mode: &str) -> TrainingConfig {
    TrainingConfig::from_text(text, "dir/mine.yaml", mode, &options())
        .unwrap_or_else(|e| panic!("{mode}: {e}"))
}

fn error(text: &str, mode: &str) -> String {
    let e = TrainingConfig::from_text(text, "mine.yaml", mode, &options()).unwrap_err();
    assert!(e.is_usage(), "{e}");
    let text = e.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("mine.yaml:"), "{text}");
    text
}

fn notes(training: &TrainingConfig) -> String {
    let all: Vec<String> = training.notes.iter().map(ToString::to_string).collect();
    all.join("\n")
}

#[test]
fn a_config_becomes_what_a_loader_takes() {
    let t = read(CONFIG, "train");
    assert_eq!(t.recipe.name, "mine");
    assert_eq!(t.recipe.reorder, Some(ReorderMode::Exact));
    assert_eq!(t.recipe.mixing, None);
    assert_eq!(
        (t.sampler, t.batch, t.tail),
        (Sampler::Shuffle, 64, EpochTail::Short)
    );
    assert_eq!((t.epochs, t.seed, t.class_num), (Some(120), 7, Some(10)));
    assert_eq!((t.rank, t.multi_scale.as_ref()), (Rank::default(), None));
    // The config has 4, but there are 2 CPUs.
    assert_eq!(t.workers, 2);
    assert!(notes(&t).contains("num_workers is 4"));
    assert!(notes(&t).contains("`on_error`"));
    // As they are written: relative to the working directory.
    assert_eq!(t.list.as_deref(), Some(Path::new("./train.txt")));
    assert_eq!(t.list_options.root, Some(PathBuf::from("./images/")));
    assert_eq!(t.list_options.delimiter, ListDelimiter::Blanks);
    assert_eq!(t.list_options.labels, ListLabels::Second);
    assert!(t.source().is_ok());
}

#[test]
fn trees_have_names_in_any_case_and_may_be_nested() {
    let q = read(CONFIG, "Eval.query");
    assert_eq!((q.sampler, q.batch, q.workers), (Sampler::Sequential, 8, 2));
    assert_eq!(q.list_options.labels, ListLabels::Second);
    assert!(notes(&q).contains("cameras"));
    let g = read(CONFIG, "EVAL.GALLERY");
    assert_eq!(g.workers, 0);
    assert_eq!(g.list_options.labels, ListLabels::Vector);
    assert_eq!(g.list_options.delimiter, ListDelimiter::Byte(b'\t'));
    assert!(notes(&g).contains("label_ratio"));
    assert!(notes(&g).contains("'prefetch_factor' means nothing"));
    let prob = IdentityProb::SampleAvg;
    assert_eq!(g.sampler, Sampler::Identity { per_id: 4, prob });
    assert_eq!(g.tail, EpochTail::Drop);
    for mode in ["eval", "test", "eval.train", "train.dataset", "", "."] {
        let e = error(CONFIG, mode);
        assert!(
            e.contains("train or eval.query or eval.gallery"),
            "{mode}: {e}"
        );
    }
}

#[test]
fn anchors_work() {
    let text = CONFIG.replace("batch_size: 64", "batch_size: *class_num");
    assert_eq!(read(&text, "train").batch, 10);
}

#[test]
fn dali_is_noted_and_not_followed() {
    let text = CONFIG.replace("use_dali: False", "use_dali: True");
    assert!(notes(&read(&text, "train")).contains("line 4: use_dali"));
}

#[test]
fn ranks_come_from_the_launcher() {
    let mut options = options();
    options.environment.trainer = Some("1".into());
    options.environment.trainers = Some("2".into());
    let t = TrainingConfig::from_text(CONFIG, "m.yaml", "train", &options).unwrap();
    assert_eq!(t.rank, Rank::default());
    assert!(notes(&t).contains("without FLAGS_selected_gpus"));
    options.environment.selected_gpus = Some("1".into());
    let t = TrainingConfig::from_text(CONFIG, "m.yaml", "train", &options).unwrap();
    assert_eq!(t.rank, Rank::new(1, 2));
    options.environment.trainers = Some("1".into());
    let e = TrainingConfig::from_text(CONFIG, "m.yaml", "train", &options).unwrap_err();
    // The config is not at fault, so no line is named.
    let e = e.to_string();
    assert!(
        e.contains("PADDLE_TRAINER_ID=1") && !e.contains("m.yaml"),
        "{e}"
    );
}

/// The same with other data sets, samplers and batch operations.
fn changed(dataset: &str, sampler: &str) -> String {
    let text = CONFIG.replace("name: ImageNetDataset", dataset);
    match sampler {
        "" => text,
        _ => text.replace(
            "      name: DistributedBatchSampler\n      batch_size: 64\n      drop_last: \
             False\n      shuffle: True\n",
            &format!("      {sampler}\n"),
        ),
    }
}

#[test]
fn data_sets() {
    let of = |dataset: &str| read(&changed(dataset, ""), "train");
    let tab = ListDelimiter::Byte(b'\t');
    assert_eq!(
        of("name: ImageNetDataset").list_options.delimiter,
        ListDelimiter::Blanks
    );
    let t = of("name: ImageNetDataset\n      delimiter: \"\\t\"").list_options;
    assert_eq!((t.delimiter, t.labels), (tab, ListLabels::Second));
    assert_eq!(of("name: ICartoonDataset").list_options.delimiter, tab);
    assert!(!of("name: ImageNetDataset").list_options.relabel);
    let t = of("name: ImageNetDataset\n      relabel: True");
    assert!(t.list_options.relabel);
    assert!(notes(&t).contains("line 12: relabel: labels are numbered in ascending order"));
    // These yield decoded images, so no decoding is left.
    let opened = |dataset: &str| {
        let decode = "        - DecodeImage:\n            to_rgb: True\n";
        read(&changed(dataset, "").replace(decode, ""), "train")
    };
    let cars = |rest: &str| opened(&format!("name: CompCars\n      label_root: ./label/{rest}"));
    assert!(cars("").list.is_some() && cars("").list_options.boxes.is_none());
    let boxed = cars("\n      bbox_crop: True").list_options.boxes;
    assert_eq!(boxed.as_deref(), Some(Path::new("./label/")));
    // No list unless the caller gives one.
    let market = opened("name: Market1501");
    assert!(market.source().unwrap_err().to_string().contains("`list`"));
    for (dataset, words) in [
        ("name: Cifar10", ["mine.yaml:", "write backend: pil"]),
        (
            "name: ImageNetDatset",
            ["mine.yaml:11:", "'ImageNetDataset'"],
        ),
        (
            "name: CompCars\n      bbox_crop: True",
            ["mine.yaml:12:", "'label_root' is missing"],
        ),
        (
            "name: VeriWild\n      relabel: True",
            ["mine.yaml:12:", "VeriWild does not take it"],
        ),
        ("delimiter: ab", ["mine.yaml:11:", "one byte"]),
        ("delimitr: a", ["mine.yaml:11:", "'delimiter'"]),
        (
            "label_ratio: True",
            ["mine.yaml:11:", "has no parameter 'label_ratio'"],
        ),
    ] {
        let e = error(&changed(dataset, ""), "train");
        assert!(words.iter().all(|word| e.contains(word)), "{dataset}: {e}");
    }
}

/// As PaddleClas' FixMatch_cifar10_40.yaml.
#[test]
fn data_sets_of_cifar_name_samples_of_an_archive() {
    let cifar = |name: &str, rest: &str| {
        let decode = "        - DecodeImage:\n            to_rgb: True\n";
        let dataset = format!("name: {name}\n      mode: train\n      download: True{rest}");
        let text = changed(&dataset, "").replace(decode, "");
        let text = text.replace("RandCropImage:", "RandCropImageV2:");
        text.replace(
            "      image_root: ./images/\n      cls_label_path: ./train.txt\n",
            "",
        )
    };
    let pil = "\n      backend: pil\n      data_file: None";
    let some = format!("{pil}\n      sample_per_label: 4\n      expand_labels: 1638");
    let t = read(&cifar("Cifar10", &some), "train");
    let mut want = CifarOptions {
        classes: CifarClasses::Ten,
        test: false,
        per_class: Some(4),
        repeats: 1638,
        seed: 7,
    };
    assert_eq!(t.cifar, Some(want.clone()));
    assert!(
        t.source()
            .unwrap_err()
            .to_string()
            .contains("data_file is not written")
    );
    let all = "\n      data_file: cifar-100-python\n      sample_per_label: None";
    let t = read(&cifar("Cifar100", all), "train");
    (want.classes, want.per_class, want.repeats) = (CifarClasses::Hundred, None, 1);
    assert_eq!(
        (t.cifar.as_ref(), t.cifar_folder.as_deref()),
        (Some(&want), Some(Path::new("cifar-100-python")))
    );
    assert!(matches!(t.source(), Ok(crate::loader::Source::Cifar(..))));
    // Pillow images, which need no decoding.
    assert!(matches!(t.recipe.ops[0], Op::Decode(_)));
    let chw =
        cifar("Cifar100", all).replacen("    sampler:", "        - ToCHWImage:\n    sampler:", 1);
    let e = error(&chw, "train");
    assert!(
        e.contains("ToCHWImage transposes") && e.contains("Cifar100 transposes once more"),
        "{e}"
    );
}

/// PaddleClas transposes after all operations, except for Pillow images.
#[test]
fn what_a_data_set_transposes_is_not_transposed_before() {
    let with = |dataset: &str, op: &str| {
        let text = changed(dataset, "");
        text.replacen("    sampler:", &format!("        - {op}:\n    sampler:"), 1)
    };
    for dataset in [
        "name: ImageNetDataset",
        "name: ImageNetDataset\n      backend: cv2",
        "name: MultiLabelDataset",
        "name: VeriWild",
        "name: CompCars",
        "name: ICartoonDataset",
    ] {
        for op in ["ToCHWImage", "ToTensor"] {
            let e = error(&with(dataset, op), "train");
            assert!(
                e.contains(&format!("{op} transposes, and PaddleClas'")),
                "{e}"
            );
            assert!(
                e.contains("transposes once more, to width x 3 x height"),
                "{e}"
            );
        }
    }
}

/// As PaddleClas' xbm_resnet50.yaml.
#[test]
fn veri_wild_hands_on_pictures_unless_its_backend_is_cv2() {
    let text = |backend: &str| {
        let text = changed(&format!("name: VeriWild{backend}"), "");
        let decode = "        - DecodeImage:\n            to_rgb: True\n";
        let text = text.replace(decode, "");
        let from = text.find("        - RandCropImage").unwrap();
        let end = text[from..].find("    sampler").unwrap() + from;
        let ops = [
            "Resize: {size: 256}",
            "RandomResizedCrop: {scale: [0.2, 1], size: 224}",
            "RandomHorizontalFlip: {prob: 0.5}",
            "ToTensor:",
            "Normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}",
        ];
        let ops: String = ops.map(|op| format!("        - {op}\n")).concat();
        format!("{}{ops}{}", &text[..from], &text[end..])
    };
    for backend in ["pil", "PIL", "pillow"] {
        let t = read(&text(&format!("\n      backend: {backend}")), "train");
        let Some(Op::Decode(decode)) = t.recipe.ops.first() else {
            panic!("{:?}", t.recipe.ops)
        };
        assert_eq!(decode.orientation, OrientationMode::Stored);
        // Pillow for Pillow images.
        let Some(Op::Resize(resize)) = t.recipe.ops.get(1) else {
            panic!("{:?}", t.recipe.ops)
        };
        assert!(resize.antialias);
    }
    for backend in ["", "\n      backend: cv2"] {
        let text = text(backend).replace("        - ToTensor:\n", "");
        let e = error(&text, "train");
        assert!(e.contains("begin transform_ops with DecodeImage"), "{e}");
    }
}

/// PaddleClas computes the stages from all epochs.
#[test]
fn stages_need_the_number_of_epochs() {
    let text = CONFIG.replace(
        "        - RandCropImage:\n            size: 224\n",
        "        - RandCropImage:\n            size: 224\n            \
         progress_size: [8, 16, 24, 32]\n",
    );
    let global = |rest: &str| {
        let text = text.replace("  epochs: 120\n", "");
        text.replacen(
            "Global:\n",
            &format!("Global:\n  train_mode: progressive\n{rest}"),
            1,
        )
    };
    let e = error(&global(""), "train");
    assert!(e.contains("progress_size needs Global.epochs"), "{e}");
    let t = read(&global("  epochs: 100\n"), "train");
    let says = "rows are 8x8 from epoch 0,16x16 from epoch 25,24x24 from epoch 50,32x32 from";
    assert!(notes(&t).contains(says), "{}", notes(&t));
}

/// As PaddleClas' adaface_ir18.yaml.
#[test]
fn adaface_names_its_list_and_its_operations_otherwise() {
    let decode = "        - DecodeImage:\n            to_rgb: True\n";
    let text = changed("name: AdaFaceDataset", "").replace(decode, "");
    let text = text
        .replace("image_root:", "root_dir:")
        .replace("cls_label_path:", "label_path:");
    let text = text.replace("transform_ops:", "transform:");
    let ops = "        - CropWithPadding: {prob: 0.2, size: [112, 112]}\n        - RandomInterpolationAugment: {prob: 0.2}\n        - ColorJitter: {prob: \
               0.2, brightness: 0.5}\n        - RandomHorizontalFlip:\n        - ToTensor:\n        - \
               Normalize: {mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}\n";
    let from = text.find("        - RandCropImage").unwrap();
    let end = text[from..]
        .find("    sampler")
        .map_or(text.len(), |at| from + at);
    let text = format!("{}{ops}{}", &text[..from], &text[end..]);
    let t = read(&text, "train");
    assert_eq!(t.list.as_deref(), Some(Path::new("./train.txt")));
    assert_eq!(t.list_options.root.as_deref(), Some(Path::new("./images/")));
    assert_eq!(t.list_options.labels, ListLabels::Second);
    let names: Vec<&str> = t.recipe.ops.iter().map(Op::name).collect();
    assert_eq!(
        names[..6],
        [
            "decode",
            "crop_with_padding",
            "random_interpolation",
            "color_jitter",
            "random_horizontal_flip",
            "normalize"
        ]
    );
}

#[test]
fn samplers() {
    let of = |sampler: &str| read(&changed("name: ImageNetDataset", sampler), "train");
    let plain = of("batch_size: 5");
    assert_eq!(
        (plain.sampler, plain.batch, plain.tail),
        (Sampler::Sequential, 5, EpochTail::Short)
    );
    assert_eq!(
        of("batch_size: 5\n      drop_last: True").tail,
        EpochTail::Drop
    );
    let pk = "name: PKSampler\n      batch_size: 8\n      sample_per_id: 2";
    let pk = of(&format!(
        "{pk}\n      sample_method: id_avg_prob\n      shuffle: False"
    ));
    let prob = IdentityProb::IdAvg;
    assert_eq!(pk.sampler, Sampler::Identity { per_id: 2, prob });
    let random =
        "name: DistributedRandomIdentitySampler\n      batch_size: 8\n      num_instances: 4";
    let random = of(&format!("{random}\n      drop_last: False"));
    assert_eq!(random.sampler, Sampler::Identity { per_id: 4, prob });
    assert!(notes(&random).contains("id_avg_prob"));
    assert_eq!(random.epoch_length, EpochLength::Samples);
    let scales = "name: MultiScaleSampler\n      scales: [256, 160, [192, 224]]\n      first_bs: 48\n      divided_factor: 16";
    let multi = |rest: &str| {
        read(
            &changed("name: MultiScaleDataset", &format!("{scales}{rest}")),
            "train",
        )
    };
    let sizes = vec![(256, 256), (160, 160), (224, 192)];
    let divided_by = 16;
    let t = multi("");
    assert_eq!(
        t.multi_scale,
        Some(MultiScale {
            divided_by,
            ..MultiScale::new(sizes)
        })
    );
    assert_eq!((t.batch, t.sampler), (48, Sampler::Shuffle));
    // As it is written, and in order.
    let first = multi("\n      is_training: False");
    assert_eq!(first.sampler, Sampler::Sequential);
    let first = first.multi_scale.unwrap();
    assert_eq!((first.sizes, first.divided_by), (vec![(256, 256)], 1));
    for (sampler, words) in [
        ("name: RASampler2", ["RASampler2", "did you mean"]),
        (
            "name: RASampler\n      batch_size: 8",
            ["shuffle is false", "mine.yaml:23:"],
        ),
        (
            "name: DistributedRandomIdentitySampler\n      batch_size: 8\n      num_instances: 4\n      max_iters: 0",
            ["max_iters is 0", "mine.yaml:26:"],
        ),
        ("shuffle: True", ["'batch_size' is missing", "mine.yaml"]),
        ("batch_size: 0", ["at least 1", "batch_size"]),
        ("batch_size: x", ["mine.yaml:23:", "number"]),
        (
            "name: PKSampler\n      batch_size: 9\n      sample_per_id: 2",
            ["multiple", "mine.yaml:25:"],
        ),
        (
            "name: PKSampler\n      batch_size: 8\n      sample_per_id: 2\n      id_list: [1, 2]\n      ratio: [4, 4]",
            ["one ratio for each pair", "mine.yaml:26:"],
        ),
        (
            "name: PKSampler\n      batch_size: 8\n      sample_per_id: 2\n      id_list: [3, 2]\n      ratio: [4]",
            ["id_list has 3 to 2", "mine.yaml:26:"],
        ),
        (
            "name: PKSampler\n      batch_size: 8\n      sample_per_id: 2\n      id_list: [1, 2]\n      ratio: [0.5]",
            ["ratio has 0.5", "mine.yaml:27:"],
        ),
        (scales, ["go together", "MultiScaleDataset"]),
    ] {
        let e = error(&changed("name: ImageNetDataset", sampler), "train");
        assert!(words.iter().all(|word| e.contains(word)), "{sampler}: {e}");
    }
    let e = error(&changed("name: MultiScaleDataset", ""), "train");
    assert!(e.contains("go together"), "{e}");
}

#[test]
fn samplers_with_epochs_of_their_own_length() {
    let of = |sampler: &str| read(&changed("name: ImageNetDataset", sampler), "train");
    let identity = |per_id, prob| Sampler::Identity { per_id, prob };
    let pk = "name: PKSampler\n      batch_size: 8\n      sample_per_id: 2\n      ";
    let t = of(&format!("{pk}id_list: [5, 8, 20, 20]\n      ratio: [4, 2]"));
    assert_eq!(t.sampler, identity(2, IdentityProb::SampleAvg));
    let ratio = |first, last, ratio| IdentityRatio { first, last, ratio };
    assert_eq!(t.identity_ratios, [ratio(5, 8, 4), ratio(20, 20, 2)]);
    // PaddleClas ignores one without the other.
    for half in [
        "id_list: [5, 8]",
        "ratio: [4, 4]",
        "id_list: []\n      ratio: [1]",
    ] {
        assert_eq!(of(&format!("{pk}{half}")).identity_ratios, []);
    }
    let t = of(
        "name: DistributedRandomIdentitySampler\n      batch_size: 8\n      num_instances: 4\n      max_iters: 300",
    );
    assert_eq!(t.sampler, identity(4, IdentityProb::SampleAvg));
    assert_eq!(t.epoch_length, EpochLength::Batches(300));
    let t = of("name: NaiveIdentityBatchSampler\n      batch_size: 8\n      num_instances: 4");
    assert_eq!(t.sampler, identity(4, IdentityProb::IdAvg));
    assert_eq!(t.epoch_length, EpochLength::IdentityGroups);
    assert!(notes(&t).contains("NaiveIdentityBatchSampler"));
    let repeated = |name: &str, rest: &str| {
        let t = of(&format!(
            "name: {name}\n      batch_size: 8\n      shuffle: True\n      {rest}"
        ));
        (t.sampler, t.epoch_length, t.tail)
    };
    let sampler = |repeats| Sampler::RepeatedAugmentation { repeats };
    assert_eq!(
        repeated("RASampler", "drop_last: True"),
        (sampler(3), EpochLength::MultipleOf(256), EpochTail::Drop)
    );
    assert_eq!(
        repeated(
            "RepeatedAugSampler",
            "num_repeats: 2\n      selected_round: 10"
        ),
        (sampler(2), EpochLength::MultipleOf(10), EpochTail::Short)
    );
}

fn mixed(ops: &str) -> String {
    changed(
        &format!("name: ImageNetDataset\n      batch_transform_ops:\n{ops}"),
        "",
    )
}

#[test]
fn batch_operations() {
    let of = |ops: &str| read(&mixed(ops), "train").recipe.mixing;
    let all = |ops: Vec<MixOp>| {
        let num_classes = 10;
        Some(Mixing { num_classes, ops })
    };
    let alpha = 0.2;
    assert_eq!(
        of("        - MixupOperator: {alpha: 0.2}"),
        all(vec![MixOp::Mixup { alpha }])
    );
    // Their defaults differ.
    assert_eq!(
        of("        - MixupOperator:"),
        all(vec![MixOp::Mixup { alpha: 1.0 }])
    );
    assert_eq!(
        of("        - CutmixOperator:"),
        all(vec![MixOp::Cutmix { alpha }])
    );
    let fmix = MixOp::Fmix {
        alpha: 1.0,
        decay_power: 3.0,
        max_soft: 0.0,
    };
    assert_eq!(of("        - FmixOperator:"), all(vec![fmix]));
    let text = "        - OpSampler:
            CutmixOperator: {alpha: 1.0, prob: 0.25}
            MixupOperator: {alpha: 0.8, prob: 0.5}";
    let choices = vec![
        MixChoice {
            p: 0.25,
            op: MixOp::Cutmix { alpha: 1.0 },
        },
        MixChoice {
            p: 0.5,
            op: MixOp::Mixup { alpha: 0.8 },
        },
    ];
    assert_eq!(of(text), all(vec![MixOp::OneOf(choices)]));
    let hybrid = MixOp::MixupCutmix {
        mixup_alpha: 0.8,
        cutmix_alpha: 1.0,
        p: 1.0,
        switch_p: 0.5,
        label_smoothing: 0.1,
    };
    assert_eq!(
        of(
            "        - MixupCutmixHybrid: {mixup_alpha: 0.8, cutmix_alpha: 1.0, switch_prob: 0.5, \
             num_classes: 1000}"
        ),
        Some(Mixing {
            num_classes: 1000,
            ops: vec![hybrid]
        })
    );
    for (ops, words) in [
        (
            "        - MixupOperator: {alpha: 0}",
            ["alpha is 0", "mine.yaml:13:"],
        ),
        (
            "        - MixupOperator: {alpha: .nan}",
            ["finite", "mine.yaml:13:"],
        ),
        (
            "        - MixupOperator: {alphas: 1}",
            ["'alpha'", "mine.yaml:13:"],
        ),
        (
            "        - MixupOperatr:",
            ["'MixupOperator'", "mine.yaml:13:"],
        ),
        (
            "        - OpSampler:",
            ["each with its prob", "mine.yaml:13:"],
        ),
        (
            "        - OpSampler:\n            MixupOperator: {prob: 0.6}\n            CutmixOperator: {prob: 0.6}",
            ["sum to 1.2", "mine.yaml:13:"],
        ),
        (
            "        - OpSampler:\n            CropImage: {prob: 0.6}",
            ["'CropImage' is unknown", "mine.yaml:14:"],
        ),
        (
            "        - MixupCutmixHybrid: {mode: elem}",
            ["elem", "batch"],
        ),
    ] {
        let e = error(&mixed(ops), "train");
        assert!(words.iter().all(|word| e.contains(word)), "{ops}: {e}");
    }
    let without = mixed("        - MixupOperator:").replace("  class_num: &class_num 10\n", "");
    assert!(error(&without, "train").contains("Arch.class_num"));
    let mut skip = options();
    skip.skip_unknown_ops = true;
    let text = mixed("        - Unheard: {a: 1}");
    let t = TrainingConfig::from_text(&text, "m.yaml", "train", &skip).unwrap();
    assert_eq!((t.recipe.mixing, t.skipped[0].line), (None, 13));
    // Its probability becomes "no operation". Without other operations, the whole is skipped.
    let text = mixed(
        "        - OpSampler:\n            Unheard: {prob: 0.5}\n            MixupOperator: {prob: \
         0.5}\n        - OpSampler:\n            Unheard: {prob: 1}",
    );
    let t = TrainingConfig::from_text(&text, "m.yaml", "train", &skip).unwrap();
    let choice = MixChoice {
        p: 0.5,
        op: MixOp::Mixup { alpha: 1.0 },
    };
    assert_eq!(t.recipe.mixing, all(vec![MixOp::OneOf(vec![choice])]));
    let lines: Vec<u64> = t.skipped.iter().map(|s| s.line).collect();
    assert_eq!(lines, [14, 17]);
    let inner = "        - OpSampler:\n            OpSampler: {prob: 1}";
    assert!(error(&mixed(inner), "train").contains("another OpSampler"));
    // Mistakes found in the compiled recipe have their line too.
    let twice = mixed("        - MixupOperator:\n        - CutmixOperator:");
    let e = read(&twice, "train").check().unwrap_err().to_string();
    assert!(e.contains("mine.yaml:14:") && e.contains("cutmix"), "{e}");
}

#[test]
fn what_is_no_config_is_said_to_be_none() {
    for (text, word) in [
        ("featherload: 1\nops: []", "not a PaddleClas config"),
        ("featherload: 1\nDataLoader: {}", "not a PaddleClas config"),
        ("DataLoader: {}", "no tree with a dataset"),
        ("DataLoader: {Train: {dataset: {}}}", "mine.yaml:1:"),
        ("DataLoader: {Train: {dataset: 5}}", "parameters of dataset"),
        ("DataLoader: [", "not YAML"),
        ("", "not a PaddleClas config"),
    ] {
        let e = error(text, "train");
        assert!(e.contains(word), "{text}: {e}");
    }
}

#[test]
fn a_recipe_that_cannot_work_is_refused_at_the_line_of_its_operation() {
    let text = CONFIG.replace(
        "        - RandCropImage:\n            size: 224\n",
        "        - ResizeImage: {size: 8}\n        - RandomCropImage: {size: 9}\n",
    );
    let t = TrainingConfig::from_text(&text, "mine.yaml", "train", &options()).unwrap();
    let e = t.check().unwrap_err().to_string();
    assert!(e.starts_with("mine.yaml:18: "), "{e}");
}

/// CONFIG with a list of paths, whose labels are quarter turns.
fn turned(key: &str, op: &str) -> String {
    let dataset = format!("name: CustomLabelDataset\n      {key}");
    changed(&dataset, "")
        .replace(
            "cls_label_path: ./train.txt",
            "sample_list_path: ./paths.txt",
        )
        .replace(
            "            order: ''\n    sampler",
            &format!("            order: ''\n{op}    sampler"),
        )
}

#[test]
fn labels_of_a_custom_label_dataset_are_drawn() {
    let op = "        - RandomRot90:\n";
    let turns = |t: &TrainingConfig| {
        let turns = t.recipe.ops.iter().filter_map(|op| match op {
            Op::RandomRotate90(o) => Some(o.label),
            _ => None,
        });
        turns.collect::<Vec<_>>()
    };
    for key in [
        "label_key: random_rot90_orientation",
        "label_key: orientation",
    ] {
        let t = read(&turned(key, op), "train");
        t.check().unwrap();
        assert_eq!(t.list, Some("./paths.txt".into()));
        assert_eq!(t.list_options.labels, ListLabels::None);
        assert_eq!(turns(&t), [true]);
    }
    // Without a key no drawn value is a label, as for data sets with their own labels.
    assert_eq!(
        turns(&read(&turned("label_key: null", op), "train")),
        [false]
    );
    let own = turned("x: 1", op)
        .replace(
            "name: CustomLabelDataset\n      x: 1",
            "name: ImageNetDataset",
        )
        .replace("sample_list_path", "cls_label_path");
    assert_eq!(turns(&read(&own, "train")), [false]);
    for (key, op, words) in [
        (
            "label_key: orientation",
            "",
            ["mine.yaml:12:", "add it to transform_ops"],
        ),
        (
            "label_key: blur_image",
            op,
            ["mine.yaml:12:", "comes from BlurImage: add it"],
        ),
        (
            "label_key: nonsense",
            op,
            ["mine.yaml:12:", "'nonsense' is not supported"],
        ),
        ("delimiter: ','", op, ["mine.yaml:12:", "paths alone"]),
        (
            "cls_label_path: a",
            op,
            ["mine.yaml:12:", "has no parameter 'cls_label_path'"],
        ),
    ] {
        let e = error(&turned(key, op), "train");
        assert!(words.iter().all(|word| e.contains(word)), "{key}: {e}");
    }
    let twice = read(&turned("label_key: orientation", &op.repeat(2)), "train");
    let e = twice.check().unwrap_err().to_string();
    assert!(e.contains("remove one"), "{e}");
}
