"""Compares CPU time, first batch and memory of two builds of featherload, over the same images.

    compare_cpu.py OLD NEW [--pairs N]

Ratios are NEW / OLD. The ratio of one pair means little on a shared machine. There is no limit,
so the exit status does not depend on the figures.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median

RECIPES = ("train224", "eval224")
RUN = ["--num-workers", "2", "--batch-size", "64", "--dtype", "f16", "--epochs", "4", "--json"]
WORKERS = "1,2,4,8"


def main():
    parser = argparse.ArgumentParser(prog="compare_cpu")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--pairs", type=int, default=10, help="pairs of runs [10]")
    options = parser.parse_args()
    builds = {"old": options.old.resolve(), "new": options.new.resolve()}
    with tempfile.TemporaryDirectory() as folder:
        pictures = Path(folder) / "demo"
        featherload(builds["old"], "demo", pictures)
        for recipe in RECIPES:
            compare_runs(builds, pictures, recipe, options.pairs)
        compare_memory(builds, pictures)


def compare_runs(builds, pictures, recipe, pairs):
    command = ["bench", pictures, "--recipe", recipe, *RUN]
    print(f"{recipe}, bench DEMO --recipe {recipe} {' '.join(RUN)}")
    for build in builds.values():
        featherload(build, *command)
    cpu, first = {"old": [], "new": []}, {"old": [], "new": []}
    for pair in range(pairs):
        # The two builds take turns to run first.
        for name in sorted(builds, reverse=pair % 2 == 0):
            report = json.loads(featherload(builds[name], *command))
            cpu[name].append(report["cpu_s_per_1k_images"])
            first[name].append(report["first_batch_ms"])
        old, new = cpu["old"][-1], cpu["new"][-1]
        print(f"  pair {pair + 1:2}  old {old:.3f}  new {new:.3f}  ratio {new / old:.3f}")
    ratios = [new / old for old, new in zip(cpu["old"], cpu["new"])]
    say("CPU seconds for 1,000 images", median(cpu["old"]), median(cpu["new"]))
    print(f"  ratio of pairs: median {median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")
    say("first batch, ms", median(first["old"]), median(first["new"]))


def compare_memory(builds, pictures):
    command = ["rss", pictures, "--recipe", RECIPES[0], "--num-workers", WORKERS, "--json"]
    print(f"memory, rss DEMO --recipe {RECIPES[0]} --num-workers {WORKERS}")
    reports = {name: json.loads(featherload(build, *command)) for name, build in builds.items()}
    for old, new in zip(reports["old"]["rows"], reports["new"]["rows"]):
        mib = [row["pss_total_bytes"] / 2**20 for row in (old, new)]
        say(f"PSS of all processes, {old['workers']} workers, MiB", *mib)
    slopes = [reports[name]["slope_mib_per_worker"] for name in ("old", "new")]
    say("PSS a worker, without ring and input, MiB", *slopes)


def say(what, old, new):
    print(f"  {what}: old {old:.3f}, new {new:.3f}")


def featherload(build, *words):
    command = [str(word) for word in (build, *words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"compare_cpu: {' '.join(command)}: {done.stderr}")
    return done.stdout


main()
