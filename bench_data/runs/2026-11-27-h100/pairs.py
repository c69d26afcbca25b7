"""Interleaved pairs of two builds: pairs.py OLD NEW WORK [STARTS]

STARTS: pairs of the cases that measure starts and first batches (60). Each case has one pair more,
which does not count.
"""
import json, statistics, subprocess, sys

old, new, work = sys.argv[1:4]
starts = int(sys.argv[4]) if len(sys.argv) > 4 else 60


def run(binary, *words, cpus=None):
    pre = ["taskset", "-c", cpus] if cpus else []
    out = subprocess.run([*pre, binary, *words, "--json"], capture_output=True, text=True)
    if out.returncode:
        raise SystemExit(f"{binary} {words}: {out.stderr}")
    return json.loads(out.stdout)


def make(*words):
    subprocess.run([old, *words], check=True, capture_output=True)


data, mixed, cache = f"{work}/demo", f"{work}/mixed", f"{work}/cache"
make("demo", data, "--images", "400")
make("demo", mixed, "--kind", "mixed", "--images", "96")
make("cache", "build", data, cache, "--encode", "jpeg:90", "--resize", "shorter:256",
     "--shard-samples", "100")
one = ["--recipe", "train224", "--batch", "32", "--limit", "32"]
six = ["--batch", "32", "--epochs", "6"]
two = ["--workers", "2"]
START = ["first_batch_ms", "startup_ms"]
CPU = ["cpu_s_per_1k_images", "images_per_s"]
window = ["--sampler", "shard-shuffle", "--shuffle-window", "100"]
fetched = f"file://{cache}"
CASES = {
    "train224, 2 workers": ([data, "--recipe", "train224", *two, *six], "2,4", CPU, 10),
    "eval224, kinds mixed, 2 workers": ([mixed, "--recipe", "eval224", *two, *six], "2,4", CPU, 10),
    "folder, 2 workers": ([data, *two, *one], "2,4", START, starts),
    "folder, 16 workers": ([data, "--workers", "16", *one], None, START, starts),
    "folder, 16 workers, 2 cores": ([data, "--workers", "16", *one], "2,4", START, starts),
    "cache here": ([cache, *two, *one], "2,4", START, starts),
    "cache fetched before": ([fetched, *two, *one], "2,4", START, starts),
    "cache fetched before, shard-shuffle": ([fetched, *two, *one, *window], "2,4", START, starts),
}
print("case | figure | old | new | new/old: median (quartiles) | least/least")
for name, (words, cpus, fields, pairs) in CASES.items():
    seen = {f: ([], []) for f in fields}
    for pair in range(pairs + 1):
        order = [(0, old), (1, new)]
        if pair % 2:
            order.reverse()
        for side, binary in order:
            more = ["--fetch-dir", f"{work}/fetched-{side}"] if fetched in words else []
            report = run(binary, "bench", *words, *more, cpus=cpus)
            for f in fields if pair else []:
                seen[f][side].append(report[f])
    for f, (a, b) in seen.items():
        ratios = [y / x for x, y in zip(a, b)]
        q = statistics.quantiles(ratios, n=4)
        print(f"{name} | {f} | {statistics.median(a):.4g} | {statistics.median(b):.4g} | "
              f"{q[1]:.3f} ({q[0]:.3f}, {q[2]:.3f}) | {min(b) / min(a):.3f}", flush=True)
