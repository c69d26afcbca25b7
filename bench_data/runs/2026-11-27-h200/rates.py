"""Builds of featherload and peers in turns, over the same photos and cores.

    PEERS=FOLDER PEERS_ROOT=FOLDER python3 rates.py WORKLOAD WORKERS CPUS ROUNDS LABEL=BINARY... [PEER...]

PEERS holds one.py, which measures one peer; PEERS_ROOT/data/imagenet has the photos. CPUS: a list
for taskset, or all. f32, batch 64. Prints images/s of each round, medians, and ratios of pairs.
"""
import json, os, statistics, subprocess, sys

workload, workers, cpus, rounds, *names = sys.argv[1:]
peers, root = os.environ["PEERS"], os.environ["PEERS_ROOT"]
pin = [] if cpus == "all" else ["taskset", "-c", cpus]


def ours(binary):
    words = ["bench", f"{root}/data/imagenet", "--labels", "none", "--recipe", workload, "--dtype",
             "f32", "--batch", "64", "--workers", workers, "--epochs", "4", "--json"]
    out = subprocess.run([*pin, binary, *words], capture_output=True, text=True)
    if out.returncode:
        raise SystemExit(out.stderr)
    report = json.loads(out.stdout)
    return report["images_per_s"], report["cpu_s_per_1k_images"]


def peer(name):
    words = [sys.executable, f"{peers}/one.py", name, workload, "--workers", workers, "--batch",
             "64", "--windows", "3", "--data", "imagenet"]
    out = subprocess.run([*pin, *words], capture_output=True, text=True, timeout=240)
    lines = [line for line in out.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{name}: {out.stderr[-2000:]}")
    windows = json.loads(lines[-1]).get("windows")
    if not windows:
        raise SystemExit(f"{name}: {lines[-1][:2000]}")
    return statistics.median(w["rate"] for w in windows), None


seen = {name.split("=")[0]: [] for name in names}
for turn in range(int(rounds)):
    for name in names if turn % 2 == 0 else names[::-1]:
        label, _, binary = name.partition("=")
        seen[label].append(ours(binary) if binary else peer(label))
for label, values in seen.items():
    rates = [v[0] for v in values]
    cpu = [v[1] for v in values if v[1]]
    text = f", CPU {statistics.median(cpu):.3f} s/1k" if cpu else ""
    print(f"{workload} {workers} workers: {label}: {statistics.median(rates):.0f} images/s "
          f"({min(rates):.0f} to {max(rates):.0f}){text}")
labels = list(seen)
first, new = labels[0], labels[1]
for label in [first, *labels[2:]]:
    pairs = [b[0] / a[0] for a, b in zip(seen[label], seen[new])]
    print(f"{workload} {workers} workers: {new} / {label}: {statistics.median(pairs):.2f} "
          f"({min(pairs):.2f} to {max(pairs):.2f})", flush=True)
