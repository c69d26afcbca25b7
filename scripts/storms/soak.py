"""One long run whose workers are killed, and the memory of its processes meanwhile.

    soak [--seconds S] [--every S] [--binary FILE] [--json FILE]

A bench runs for S seconds. Every second a random worker gets SIGKILL, SIGSEGV, SIGABRT or SIGTERM
(--every sets another interval). Then the bench is interrupted, and each of its whole epochs must
have the digest of an undisturbed one. The memory of the consumer and the coordinator, PSS and
private pages, is read every ten seconds. Its slope, in MiB an hour, is the median of the slopes
between all pairs of points after the first tenth (Theil and Sen). Outliers hardly change it.
"""

import argparse
import json
import random
import shutil
import signal
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import processes
from main import ROOT, TARGET
from runs import Run
from sets import World

SIGNALS = [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM]
# The largest slope of private pages of the consumer and the coordinator, in MiB an hour.
MOST_SLOPE = 0.1
SAMPLE_S = 10.0


def main():
    parser = argparse.ArgumentParser(
        prog="soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = TARGET / "release" / "featherload"
    parser.add_argument("--binary", type=Path, default=default, help="executable [%(default)s]")
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long [3600]")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between kills [1]")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices [1]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write points and figures, too")
    options = parser.parse_args()
    folder = TARGET / "soak"
    world = World(options.binary.resolve(), folder.resolve())
    figures = soak(world, options)
    print(json.dumps({k: v for k, v in figures.items() if k != "points"}, indent=1))
    if options.json:
        options.json.write_text(json.dumps(figures) + "\n")
    if not figures["problems"]:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if figures["problems"] else 0)


def memory(pid):
    """PSS and private bytes of a process, in MiB; None when it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    kib = {}
    for line in text.splitlines()[1:]:
        name, _, rest = line.partition(":")
        kib[name] = int(rest.split()[0])
    if "Pss" not in kib:
        return None
    return kib["Pss"] / 1024, (kib["Private_Dirty"] + kib["Private_Clean"]) / 1024


def slope(points):
    """The median slope of all pairs of points after the first tenth of the time, in MiB an hour."""
    begun = points[-1][0] * 0.1
    late = [p for p in points if p[0] >= begun]
    slopes = [
        (b[1] - a[1]) / (b[0] - a[0])
        for i, a in enumerate(late)
        for b in late[i + 1 :]
        if b[0] > a[0]
    ]
    return statistics.median(slopes) * 3600 if slopes else 0.0


def soak(world, options):
    chance = random.Random(options.seed)
    # A list that names each image many times, so that an epoch takes seconds.
    names = sorted(str(p.relative_to(world.folder / "demo")) for p in (world.folder / "demo").rglob("*.jpg"))
    lines = world.folder / "soak.txt"
    # About every tenth sample has no file: failed samples must not add up in memory.
    listed = []
    for at, name in enumerate(names * 100):
        listed += [name, f"gone-{at}.jpg"] if at % 9 == 0 else [name]
    lines.write_text("".join(f"{name} 0\n" for name in listed))
    words = ["bench", "--list", lines, "--root", world.folder / "demo", "--json", "--digest"]
    words += ["--on-error", "skip"]
    words += ["--recipe", "eval224", "--sampler", "sequential"]
    words += ["--batch-size", 16, "--num-workers", 2]
    alone = json.loads(world.call(*words[:-1], 0, "--epochs", 1))
    run = Run(world, [*words, "--epochs", 1_000_000])
    kills, points = Counter(), {"consumer": [], "coordinator": []}
    began = next_sample = time.monotonic()
    next_kill = began + options.every
    while run.runs() and time.monotonic() - began < options.seconds:
        now = time.monotonic()
        if now >= next_kill:
            next_kill += options.every
            if workers := run.of_role("worker"):
                number = chance.choice(SIGNALS)
                kills[number.name] += processes.send(chance.choice(workers), number)
        if now >= next_sample:
            next_sample += SAMPLE_S
            for role, seen in points.items():
                if (found := run.of_role(role)) and (taken := memory(found[0].pid)):
                    seen.append((round(now - began, 1), *taken))
        time.sleep(0.02)
    seconds = time.monotonic() - began
    if run.runs():
        run.child.send_signal(signal.SIGINT)
        run.sleep(10)
    figures = judged(run, alone["digests"][0], kills, points, seconds)
    due = int(seconds / options.every)
    if (sent := sum(kills.values())) < 0.9 * due:
        figures["problems"].append(f"{sent} of {due} kills were sent: use a longer --every")
    return figures


def judged(run, digest, kills, points, seconds):
    problems = []
    figures = {"seconds": round(seconds), "kills": dict(kills)}
    if run.runs():
        problems.append("the run did not end 10 s after SIGINT")
        run.end_all()
    elif run.child.returncode != 128 + signal.SIGINT:
        problems.append(f"exit status {run.child.returncode}: {run.said()[-500:]}")
    else:
        report = run.report()
        figures |= {k: report[k] for k in ("samples", "failed", "worker_deaths", "images_per_s")}
        # The last epoch was interrupted.
        whole = report["digests"][:-1]
        figures["epochs"] = len(whole)
        if set(whole) != {digest}:
            problems.append(f"not all of {len(whole)} epochs have the digest {digest}")
        # The coordinator may not have noticed the last kill.
        if sum(kills.values()) - report["worker_deaths"] not in (0, 1):
            deaths, sent = report["worker_deaths"], sum(kills.values())
            problems.append(f"the report has {deaths} deaths for {sent} kills")
    if left := processes.marked(run.mark):
        problems.append(f"processes are left: {left}")
    for role, seen in points.items():
        for at, what in ((1, "pss"), (2, "private")):
            values = [(p[0], p[at]) for p in seen]
            first, last = values[len(values) // 10][1], values[-1][1]
            rise = slope(values)
            figures[f"{role} {what} MiB"] = [round(first, 3), round(last, 3)]
            figures[f"{role} {what} MiB an hour"] = round(rise, 4)
            if what == "private" and rise > MOST_SLOPE:
                problems.append(f"{role}: {rise:.3f} MiB of {what} pages more an hour")
    return figures | {"problems": problems, "points": points}


if __name__ == "__main__":
    main()
