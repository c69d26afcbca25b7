"""Cases of batches that are made on a GPU: they need no shared data."""

from words import NO_LABELS

CROPS = ["--recipe train224", "--recipe eval224", "--recipe recipes/contrast.yaml"]
RECIPES = [
    *CROPS,
    "--recipe train224 --dtype f32 --layout nhwc",
    "--recipe train224 --dtype bf16",
    "--recipe eval224 --dtype u8",
    "--recipe full",
    "--recipe recipes/device-lab.yaml --reorder fast",
    "--recipe recipes/hsv.yaml",
    "--recipe recipes/decode-grey.yaml",
    # These have rows that workers finish.
    "--recipe recipes/device-blur.yaml",
    "--recipe recipes/mix-one-of.yaml",
    "--recipe recipes/mix-timm.yaml --dtype f16",
]


def groups():
    default = "bench default --device cuda"
    two = "--batch 8 --epochs 2"
    cases = [
        f"{default} {recipe} --upload {upload} --workers {n} {two}"
        for recipe in RECIPES
        for upload, n in (("in-place", 1), ("copied", 8))
    ]
    cases += [
        f"bench {source} --device cuda {recipe} --workers 4 {two}"
        for source in ("mixed", "large")
        for recipe in [*CROPS, "--recipe full"]
    ]
    cases += [
        f"{default} {recipe} --upload {upload} --workers 4 --batch 8 --epochs 12 "
        "--kill-workers-every 10"
        for recipe in CROPS
        for upload in ("in-place", "copied")
    ]
    cases += [
        f"{default} --recipe train224 --workers 4 {options}"
        for options in (
            "--batch 7 --pad-last",
            "--batch 5 --rank 1/2",
            "--batch 6 --multi-scale 224x224,96x160 --epochs 2",
            "--batch 8 --gpu-memory-limit 64M",
            "--batch 8 --depth 6 --epochs 4",
        )
    ]
    broken = "bench broken --device cuda --recipe train224 --workers 4 --batch 7"
    cases += [f"{broken} {policy}" for policy in (NO_LABELS, "--on-error substitute")]
    return {"device": cases, "labels of failed rows": [f"{broken} --on-error skip"]}
