"""Disturbs runs of a featherload binary in many ways, and checks how they end.

    storm [KIND ...] [--binary FILE] [--count N] [--seconds S] [--seed N] [--json FILE]

Each step starts one run or a few and disturbs them. A run must end within the row limit and two
seconds. It must print the digest of an undisturbed run, or an error. It must leave no process and
no file. Any other end is a problem: it is printed with the command that repeats the step, and the
exit status is 1. A kind ends after COUNT steps or SECONDS, whichever comes first. A kind that this
machine does not allow is skipped, and counted.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import kills
import overwrite
import stores
import strangers
import surroundings
from runs import OF_REPORTS
from sets import World

# The kind NAME is the function storm_NAME.
KINDS = {
    name.removeprefix("storm_"): function
    for module in (overwrite, kills, stores, surroundings, strangers)
    for name, function in vars(module).items()
    if name.startswith("storm_")
}
ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# The steps and seconds of --short, for each kind. The time of a step depends on the kind.
SHORT = (12, 3.0)


def main():
    options = arguments()
    if options.list:
        for name, function in KINDS.items():
            print(f"{name:20} {function.__doc__}")
        return
    binary = options.binary.resolve()
    if not os.access(binary, os.X_OK):
        sys.exit(f"storm: {options.binary} is not an executable file: build it, or give --binary")
    folder = Path(options.folder or TARGET / "storm").resolve()
    world = World(binary, folder)
    began = time.monotonic()
    totals = {}
    try:
        for kind in options.kinds or KINDS:
            totals[kind] = storm(world, kind, options)
    finally:
        if options.json:
            write(options, totals, time.monotonic() - began)
    problems = sum(t["problems"] for t in totals.values())
    skipped = [kind for kind, t in totals.items() if t["skipped"]]
    steps = sum(t["steps"] for t in totals.values())
    print(
        f"storm: {len(totals)} kinds, {steps} steps in {time.monotonic() - began:.0f} s, "
        f"{problems} problems, {len(skipped)} kinds skipped (seed {options.seed})"
    )
    bad = problems or (options.require and skipped)
    if not problems:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if bad else 0)


def arguments():
    parser = argparse.ArgumentParser(
        prog="storm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="kinds to run [all]")
    parser.add_argument("--list", action="store_true", help="print the kinds and end")
    default = TARGET / "release" / "featherload"
    parser.add_argument("--binary", type=Path, default=default, help="executable [%(default)s]")
    parser.add_argument("--count", type=int, default=100, help="steps of a kind [100]")
    parser.add_argument("--seconds", type=float, default=60.0, help="most seconds of a kind [60]")
    parser.add_argument("--short", action="store_true", help="few steps of each kind, for the gate")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices [1]")
    parser.add_argument("--step", type=int, default=0, help="the first step, to do one again [0]")
    parser.add_argument("--require", action="store_true", help="a skipped kind is a failure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, too")
    parser.add_argument("--folder", type=Path, help="where sets and runs lie [target/storm]")
    options = parser.parse_args()
    if options.short:
        options.count, options.seconds = SHORT
    for kind in options.kinds:
        if kind not in KINDS:
            parser.error(f"no kind '{kind}': use one of {', '.join(KINDS)}")
    return options


def storm(world, kind, options):
    texts, counts, problems = Counter(), Counter(), 0
    skipped, steps, after = None, 0, 0.0
    began = time.monotonic()
    for step in range(options.step, options.step + options.count):
        if time.monotonic() - began > options.seconds:
            break
        outcome = KINDS[kind](world, random.Random(f"{options.seed} {kind} {step}"))
        if outcome.skipped:
            skipped = outcome.skipped
            break
        steps += 1
        texts.update(outcome.texts)
        counts.update(outcome.counts)
        after = max(after, outcome.after)
        if outcome.problems:
            problems += 1
            again = f"scripts/storm {kind} --seed {options.seed} --step {step} --count 1"
            print(f"PROBLEM {again}", *outcome.problems, sep="\n    ", flush=True)
    idle = [name for name, n in counts.items() if n == 0 and name not in OF_REPORTS]
    if idle and steps >= 8:
        problems += 1
        print(f"PROBLEM {kind}: in {steps} steps none of: {', '.join(idle)}", flush=True)
    took = time.monotonic() - began
    say(kind, steps, took, texts, counts, problems, skipped, after)
    return {
        "steps": steps,
        "seconds": round(took, 1),
        "longest_end_s": round(after, 3),
        "ends": dict(texts.most_common()),
        "counts": dict(counts),
        "problems": problems,
        "skipped": skipped,
    }


def say(kind, steps, took, texts, counts, problems, skipped, after):
    if skipped:
        print(f"{kind:20} SKIP: {skipped}", flush=True)
        return
    good = [(text, n) for text, n in texts.items() if not text.startswith(("error", "ended by"))]
    errors = sum(texts.values()) - sum(n for _, n in good)
    parts = [f"{n} {text}" for text, n in good] + [f"{errors} errors, {problems} problems"]
    parts += [f"{n} {name}" for name, n in counts.items()]
    print(f"{kind:20} {steps} steps, {took:.1f} s: {', '.join(parts)}", end="")
    print(f"; ended {after:.2f} s later at most", flush=True)
    ends = Counter()
    for text, number in texts.items():
        if text.startswith(("error", "ended by")):
            ends[re.sub(r"\(of \d+ files\)", "", text)] += number
    for text, number in ends.most_common(12):
        print(f"    {number:5} x {text}", flush=True)


def write(options, totals, took):
    report = {
        "command": sys.argv[1:],
        "seed": options.seed,
        "seconds": round(took, 1),
        "cores": len(os.sched_getaffinity(0)),
        "kinds": totals,
    }
    options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
