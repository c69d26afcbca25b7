"""Cases of batches that are made on a GPU."""

import itertools
import re

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
    # In these cases workers finish some rows.
    "--recipe recipes/device-blur.yaml",
    "--recipe recipes/mix-one-of.yaml",
    "--recipe recipes/mix-timm.yaml --dtype f16",
]

# The decoders of JPEGs. `gpu` is left out of cases in which workers finish rows.
DECODERS = [f"--decode-on {on} --num-workers {n}" for on in ("cpu", "gpu", "auto") for n in (4, 15)]
CACHES = ["--encode copy", "--encode jpeg:90 --resize shorter:200", "--encode raw"]


def groups(data):
    default = "bench default --device cuda"
    two = "--batch-size 8 --epochs 2"
    cases = [
        f"{default} {recipe} --upload {upload} --num-workers {n} {two}"
        for recipe in RECIPES
        for upload, n in (("in-place", 1), ("copied", 8))
    ]
    cases += [
        f"bench {source} --device cuda {recipe} --num-workers 4 {two}"
        for source in ("mixed", "large")
        for recipe in [*CROPS, "--recipe full"]
    ]
    cases += [
        f"{default} {recipe} --upload {upload} --num-workers 4 --batch-size 8 --epochs 12 "
        "--kill-workers-every 10"
        for recipe in CROPS
        for upload in ("in-place", "copied")
    ]
    cases += [
        f"{default} --recipe train224 --num-workers 4 {options}"
        for options in (
            "--batch-size 7 --pad-last",
            "--batch-size 5 --rank 1 --world-size 2",
            "--batch-size 6 --multi-scale 224x224,96x160 --epochs 2",
            "--batch-size 8 --gpu-memory-limit 64M",
            "--batch-size 8 --depth 6 --epochs 4",
        )
    ]
    broken = "bench broken --device cuda --recipe train224 --num-workers 4 --batch-size 7"
    cases += [f"{broken} {policy}" for policy in (NO_LABELS, "--on-error substitute")]
    shared = [f"tree {name}" for name in data.present()]
    return {
        "shared inputs": ["tree lists", "tree tars", *shared],
        "device": cases,
        "labels of failed rows": [f"{broken} --on-error skip"],
        "caches": [f"cache build default cache-{n} {how}" for n, how in enumerate(CACHES)],
        "decoders": decoders(data),
    }


def decoders(data):
    """Cases whose stream must not depend on the decoder: see `unequal`."""
    sources = ["default", "mixed", "large", "'tars/*.tar' --label-field txt --index-dir none"]
    sources += [f"cache-{n} --sampler shard-shuffle" for n in range(len(CACHES))]
    sources += ["photos"] * bool(data.photos) + ["fox"] * bool(data.fox)
    recipes = ["--recipe train224", "--recipe eval224", "--recipe train224 --decode full"]
    runs = [f"{source} {recipe}" for source, recipe in itertools.product(sources, recipes)]
    runs += [f"broken --recipe train224 {policy}" for policy in ("--on-error substitute", NO_LABELS)]
    runs += [
        f"photos --recipe train224 --depth 6 {more}"
        for more in (
            "--kill-workers-every 5",
            "--batch-size 16 --start 1:3",
            "--batch-size 5 --rank 1 --world-size 2",
            "--batch-size 6 --multi-scale 224x224,96x160",
        )
        if data.photos
    ]
    cases = [
        f"bench {run} --device cuda {decoder} --epochs 3"
        for run, decoder in itertools.product(runs, DECODERS)
    ]
    return cases + [
        f"bench default --device cuda --recipe recipes/mix-{name}.yaml {decoder} --epochs 2"
        for name, decoder in itertools.product(("one-of", "timm"), DECODERS)
        if "--decode-on gpu" not in decoder
    ]


def unequal(results):
    """Lines of the group `decoders` that fail, or that differ from the first line of their run."""
    first = {}
    for line, steps in results.items():
        run = re.sub(r"--decode-on \S+ --num-workers \d+", "", line)
        said = [(step["exit"], step.get("digests"), step.get("failures")) for step in steps]
        if first.setdefault(run, said) != said or any(step["exit"] for step in steps):
            yield line
