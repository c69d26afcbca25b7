"""Cases of operations on samples and batches: results, reports and errors."""

from itertools import product

import recipes
from words import NO_LABELS, QUICK


def presets(pictures):
    cases = []
    for recipe, dtype in product(recipes.PRESETS, ("u8", "f16", "bf16", "f32")):
        other = "nchw" if recipe == "full" else "nhwc"
        cases.append(f"bench default --recipe {recipe} --dtype {dtype} {QUICK}")
        cases.append(f"bench default --recipe {recipe} --dtype {dtype} --layout {other} {QUICK}")
    for source, recipe in product(pictures, ("train224", "eval224")):
        for decode in ("full", "scaled"):
            cases.append(f"bench {source} --recipe {recipe} --decode {decode} {QUICK}")
    cases += [f"bench {source} --recipe full {QUICK}" for source in pictures]
    cases += [
        f"bench mixed --recipe eval224 --dtype u8 {options} {QUICK}"
        for options in (
            "--orientation stored",
            "--orientation exif --background black",
            "--background 3fa0c8 --decode full",
            "--seed 7 --epochs 2",
        )
    ]
    cases += [f"bench odd --recipe {recipe} {NO_LABELS} {QUICK}" for recipe in recipes.PRESETS]
    return cases


def operations():
    """Each recipe over photos, and over sizes that test its edge cases."""
    cases = []
    for name in recipes.SINGLE:
        recipe = f"--recipe recipes/{name}.yaml"
        cases.append(f"bench default {recipe} {QUICK} --limit 16")
        cases.append(f"bench odd {recipe} {NO_LABELS} --num-workers 0 --batch-size 5 --epochs 2")
    for name in recipes.DECODES:
        cases.append(f"bench mixed --recipe recipes/{name}.yaml {QUICK}")
    return cases


def reorders(pictures):
    sources = [name for name in pictures if name in ("default", "fox")]
    ways = [
        "--reorder off",
        "--reorder exact",
        "--reorder exact --decode scaled",
        "--reorder fast",
        "--reorder fast --decode full",
    ]
    return [
        f"bench {source} --recipe recipes/{name}.yaml {way} --num-workers 1 --batch-size 4 "
        "--limit 4"
        for source in sources
        for name in recipes.ORDERS
        for way in ways
    ]


def mixing():
    cases = []
    for name in recipes.MIXINGS:
        recipe = f"bench default --recipe recipes/{name}.yaml"
        cases.append(f"{recipe} --batch-size 7 --epochs 2 --num-workers 2")
        cases.append(f"{recipe} --batch-size 9 --pad-last --dtype f16 --num-workers 0 --seed 3")
    for name in ("mix-one-of", "mix-timm"):
        recipe = f"bench default --recipe recipes/{name}.yaml"
        cases += [
            f"{recipe} --batch-size 7 --dtype bf16 --layout nhwc --num-workers 1",
            f"{recipe} --batch-size 5 --rank 1 --world-size 2 --epochs 2 --num-workers 1",
            f"{recipe} --batch-size 4 --multi-scale 64x96,32x64 --num-workers 1",
            f"{recipe} --batch-size 8 --epochs 12 --num-workers 3 --kill-workers-every 10",
        ]
    vectors = "--list lists/vectors.txt --root default --delimiter '\\t'"
    cases += [
        f"bench {vectors} --recipe recipes/{name}.yaml --batch-size 6 --num-workers 1"
        for name in ("mix-mixup", "mix-cutmix", "mix-fmix-soft", "mix-timm-rare")
    ]
    # Failed rows have labels of zero here.
    cases += [
        f"bench broken --recipe recipes/{name}.yaml --on-error {policy} --batch-size 8 "
        "--num-workers 1"
        for name in ("mix-none", "mix-mixup", "mix-one-of", "mix-timm")
        for policy in ("skip", "substitute")
    ]
    return cases


def plans(pictures):
    shape = "--num-workers 2 --batch-size 16"
    moving = ("recipes/order-lab.yaml", "recipes/order-floats.yaml")
    on_device = ("recipes/contrast.yaml", "recipes/mix-mixup.yaml")
    cases = [
        f"plan {source} --recipe {recipe} {shape} --sample 6"
        for source in pictures
        for recipe in recipes.PRESETS
    ]
    cases += [
        f"plan default --recipe recipes/{name}.yaml {shape} --sample 8"
        for name in recipes.OPERATIONS
    ]
    cases += [f"plan default --recipe recipes/{name}.yaml {shape}" for name in recipes.MIXINGS]
    cases += [
        f"plan --picture {size} --recipe {recipe} --reorder {reorder} --num-workers {n} "
        f"--batch-size {batch}"
        for size, n, batch in (("1080x1920", 2, 64), ("37x4001", 16, 256))
        for recipe in (*recipes.PRESETS, *moving)
        for reorder in ("off", "exact", "fast")
    ]
    cases += [
        f"plan large --recipe {recipe} {options} --dtype f32 --batch-size 32"
        for recipe in ("train224", "recipes/order-lab.yaml")
        for options in (
            "--num-workers 1",
            "--num-workers 8 --depth 9",
            "--num-workers 2 --memory-limit 300M",
        )
    ]
    cases += [
        f"plan default --recipe train224 {shape} {order} --sample 12"
        for order in (
            "--sampler weighted",
            "--sampler identity --per-id 4",
            "--sampler largest-first",
            "--sampler repeated --rank 1 --world-size 2",
            "--multi-scale 224x224,96x160",
        )
    ]
    cases += [
        f"plan default --recipe {recipe} --device cuda {upload} --num-workers 2 "
        f"--batch-size {batch}"
        for recipe in (*recipes.PRESETS, *on_device)
        for upload, batch in (("", 64), ("--upload copied", 64), ("--gpu-memory-limit 100M", 16))
    ]
    return cases


def refused():
    return [
        f"bench {arguments}"
        for arguments in (
            "nowhere",
            "default --recipe train225",
            "default --recipe recipes/typo.yaml",
            "default --recipe recipes/no-size.yaml",
            "default --recipe recipes/mix-mixup.yaml --dtype u8",
            "mixed --recipe recipes/mix-mixup.yaml --rank 3 --world-size 2",
            "default --recipe train224 --start 0:77",
            "default --recipe train224 --epochs 0",
            "default --recipe train224 --batch-size 0",
            "default --sampler identity --per-id 3 --batch-size 64",
            "default --recipe full --multi-scale 64x64",
            "default --recipe full --memory-limit 1M --num-workers 1",
            "default --dtype bfloat16",
            "--list lists/unlike.txt --root default",
            "--list lists/tabs.txt --root default --labels none --delimiter ab",
            "'tars/set-{000..009}.tar' --index-dir none",
            "'tars/*.tar' --label-field nothing --index-dir none",
            "default --mode train",
        )
    ]
