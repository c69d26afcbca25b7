"""Cases of the course of a run: orders, workers, deaths, bad samples, resumes."""

from itertools import product

from words import NO_LABELS, QUICK


def samplers():
    orders = [
        "--sampler sequential",
        "--no-shuffle",
        "--sampler shuffle",
        "--sampler shuffle --seed 123456789012",
        "--sampler shard-shuffle --shard 3 --shuffle-window 7",
        "--sampler shard-shuffle",
        "--sampler identity --per-id 2",
        "--sampler identity --per-id 2 --prob id-avg",
        "--sampler weighted",
        "--sampler weighted --num-samples 47",
        "--sampler repeated",
        "--sampler repeated --repeats 2",
        "--sampler largest-first",
    ]
    # The last batch is short, since the set has 24 samples.
    drawn = "--recipe recipes/crop-resized.yaml --num-workers 1 --epochs 2"
    tails = ("", "--drop-last", "--pad-last")
    cases = [
        f"bench default {order} {tail} {drawn} --batch-size 10"
        for order, tail in product(orders, tails)
    ]
    cases += [
        f"bench default --sampler {order} --rank {rank} --world-size 3 {tail} {drawn} "
        "--batch-size 5"
        for order in ("shuffle", "repeated", "shard-shuffle")
        for rank, tail in product((0, 2), tails)
    ]
    cases += [
        f"bench default --sampler {order} --rank 1 --world-size 2 {drawn} --batch-size 6"
        for order in ("identity --per-id 3", "weighted", "largest-first", "shard-shuffle --shard 5")
    ]
    sizes = "--multi-scale 224x224,160x160,96x128"
    cases += [
        f"bench default --recipe train224 {sizes} --num-workers 1 --batch-size 5 --epochs 2 {more}"
        for more in ("", "--drop-last --rank 1 --world-size 2", "--sampler weighted")
    ]
    cases += [
        f"bench odd --sampler largest-first {classes} {drawn} --batch-size 5 {NO_LABELS}"
        for classes in ("", "--size-classes 3")
    ]
    return cases


def workers(pictures):
    shows = [
        "default --recipe train224",
        "default --recipe eval224 --dtype f16",
        "default --recipe full",
        "default --recipe recipes/order-jitter.yaml --reorder fast",
        "default --recipe recipes/mix-mixup.yaml",
    ]
    cases = [
        f"bench {show} --num-workers {n} --batch-size 6 --epochs 2"
        for show in shows
        for n in (0, 1, 2, 8)
    ]
    cases += [
        f"bench {show} --num-workers 2 --batch-size 6 --epochs 2 {options}"
        for show in shows[:3]
        for options in ("--launch fork", "--depth 1", "--depth 7")
    ]
    cases += [
        f"bench {show} --num-workers 3 --batch-size 6 --epochs 8 --kill-workers-every 10"
        for show in shows
    ]
    cases += [
        f"FEATHERLOAD_CPU={cpu} bench {source} --recipe {recipe} {QUICK}"
        for cpu in ("scalar", "sse4.1", "avx2")
        for source in ("default", "large")
        for recipe in ("train224", "eval224", "recipes/resize-floats.yaml")
        if source in pictures
    ]
    return cases


# Most samples fail here, so that rows are masked even with substitution.
MASKED = "--recipe full --max-pixels 100000"
# The options of runs over broken files, for each policy.
BAD = [
    "--recipe train224",
    "--recipe eval224 --dtype u8",
    "--recipe full",
    "--recipe train224 --sampler repeated",
    "--recipe eval224 --rank 1 --world-size 3 --pad-last --epochs 2",
    "--recipe train224 --multi-scale 64x64,96x32",
    MASKED,
    "--recipe recipes/order-mixed.yaml --max-scratch 1M",
]


def bad_samples():
    cases = [f"bench broken {options} {NO_LABELS} {QUICK}" for options in BAD]
    cases += [
        f"bench broken {options} --on-error substitute {QUICK}"
        for options in BAD
        if options != MASKED
    ]
    cases += [
        f"bench broken --recipe train224 --on-error {policy} {QUICK}"
        for policy in ("stop", "stop --no-shuffle", "stop --rank 1 --world-size 2")
    ]
    cases += [
        f"bench broken --recipe train224 {policy} --batch-size 7 --num-workers {n} {more}"
        for policy in (NO_LABELS, "--on-error substitute")
        for n, more in ((0, ""), (2, ""), (8, ""), (3, "--epochs 8 --kill-workers-every 10"))
    ]
    cases += [
        "bench broken --recipe train224 --sampler identity --per-id 2 --on-error substitute "
        f"{QUICK} --epochs 2",
        f"bench broken --recipe recipes/quarter-turns-labels.yaml --on-error substitute {QUICK}",
        "bench default --recipe train224 --pad-last --batch-size 9 --num-workers 1",
        "bench default --recipe recipes/quarter-turns-labels.yaml "
        "--pad-last --batch-size 9 --num-workers 1",
        "bench --list lists/vectors.txt --root default --delimiter '\\t' --recipe train224 "
        "--pad-last --batch-size 9 --num-workers 1",
    ]
    return cases


def failed_labels():
    labels = "--on-error skip"
    listed = "--root broken --delimiter '\\t'"
    cases = [f"bench broken {options} {labels} {QUICK}" for options in BAD]
    cases.append(f"bench broken {MASKED} --on-error substitute {QUICK}")
    cases += [
        f"bench broken --recipe train224 {labels} --batch-size 7 --num-workers {n} {more}"
        for n, more in ((0, ""), (2, ""), (3, "--epochs 8 --kill-workers-every 10"))
    ]
    cases += [
        f"bench broken --recipe recipes/quarter-turns-labels.yaml {labels} {QUICK}",
        f"bench --list lists/broken.txt {listed} --recipe train224 {labels} {QUICK}",
        f"bench --list lists/broken-vectors.txt {listed} --recipe train224 {labels} {QUICK}",
        f"bench --list lists/broken-vectors.txt {listed} --recipe full {labels} {QUICK} --pad-last",
    ]
    return cases


def resumes():
    cases = []
    for number, options in enumerate(
        (
            "default --recipe train224 --batch-size 5 --epochs 3",
            "default --recipe eval224 --batch-size 5 --epochs 3 --rank 1 --world-size 2",
            "default --recipe full --batch-size 5 --epochs 3",
            "default --recipe recipes/mix-one-of.yaml --batch-size 5 --epochs 3",
            "default --sampler identity --per-id 2 --recipe train224 --batch-size 6 --epochs 3",
            "default --sampler weighted --recipe train224 --batch-size 6 --epochs 3",
            "default --recipe train224 --multi-scale 64x64,96x96 --batch-size 5 --epochs 3",
            "broken --on-error substitute --recipe train224 --batch-size 5 --epochs 3",
        )
    ):
        state = f"states/resume-{number}.json"
        cases.append(
            f"bench {options} --num-workers 2 --limit 20 --save-state {state} && "
            f"bench {options} --num-workers 1 --resume {state}"
        )
    state = "states/resume-other.json"
    cases += [
        "bench default --recipe train224 --batch-size 5 --epochs 3 --num-workers 1 --start 1:2",
        "bench default --recipe train224 --batch-size 5 --epochs 3 --num-workers 0 --start 2:4",
        "bench default --recipe train224 --batch-size 5 --limit 5 --num-workers 1 "
        f"--save-state {state}"
        + "".join(
            f" && bench {other} --num-workers 1 --resume {state} --save-state states/unused.json"
            for other in (
                "default --recipe train224 --batch-size 6",
                "default --recipe train224 --batch-size 5 --seed 1",
                "default --recipe eval224 --batch-size 5",
                "default --recipe train224 --batch-size 5 --dtype f32",
                "default --recipe train224 --batch-size 5 --sampler weighted",
                "default --recipe train224 --batch-size 5 --drop-last",
                "mixed --recipe train224 --batch-size 5",
            )
        ),
    ]
    return cases
