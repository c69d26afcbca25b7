"""Ten interleaved pairs of two builds: perf.py OLD NEW DATA SCENE WORK"""
import json, statistics, subprocess, sys, shutil, os
old, new, data, scene, work = sys.argv[1:]
def run(binary, *words, cpus=None):
    pre = ["taskset", "-c", cpus] if cpus else []
    out = subprocess.run([*pre, binary, *words, "--json"], capture_output=True, text=True)
    if out.returncode: raise SystemExit(f"{binary} {words}: {out.stderr}")
    return json.loads(out.stdout)
cache = f"{work}/cache"
if not os.path.exists(cache):
    subprocess.run([old, "cache", "build", data, cache, "--encode", "jpeg:90", "--resize", "shorter:256", "--shard-samples", "100"], check=True, capture_output=True)
CASES = {
    "train224, 2 workers": (["bench", data, "--recipe", "train224", "--workers", "2", "--batch", "32", "--epochs", "6"], "2,4", ["cpu_s_per_1k_images", "images_per_s"]),
    "mixed, 2 workers": (["bench", f"{work}/mixed", "--recipe", "eval224", "--workers", "2", "--batch", "32", "--epochs", "6"], "2,4", ["cpu_s_per_1k_images", "images_per_s"]),
    "first batch, 2 workers": (["bench", data, "--recipe", "train224", "--workers", "2", "--batch", "32", "--limit", "32"], "2,4", ["first_batch_ms", "startup_ms"]),
    "16 workers": (["bench", data, "--recipe", "train224", "--workers", "16", "--batch", "32", "--limit", "32"], None, ["first_batch_ms", "startup_ms"]),
    "cache here": (["bench", cache, "--recipe", "train224", "--workers", "2", "--batch", "32", "--limit", "32"], "2,4", ["first_batch_ms", "startup_ms"]),
    "cache fetched before": (["bench", f"file://{cache}", "--recipe", "train224", "--workers", "2", "--batch", "32", "--limit", "32"], "2,4", ["first_batch_ms", "startup_ms"]),
    "cache fetched before, shard-shuffle": (["bench", f"file://{cache}", "--recipe", "train224", "--workers", "2", "--batch", "32", "--limit", "32", "--sampler", "shard-shuffle", "--shuffle-window", "100"], "2,4", ["first_batch_ms", "startup_ms"]),
}
for name, (words, cpus, fields) in CASES.items():
    got = {f: [] for f in fields}
    raw = {f: ([], []) for f in fields}
    for pair in range(11):
        order = [("old", old), ("new", new)]
        if pair % 2: order.reverse()
        seen = {}
        for label, binary in order:
            more = ["--fetch-dir", f"{work}/fetched-{label}"] if "file://" in " ".join(words) else []
            seen[label] = run(binary, *words, *more, cpus=cpus)
        if pair == 0: continue
        for f in fields:
            got[f].append(seen["new"][f] / seen["old"][f])
            raw[f][0].append(seen["old"][f]); raw[f][1].append(seen["new"][f])
    for f in fields:
        q = sorted(got[f])
        print(f"{name} | {f} | {statistics.median(raw[f][0]):.4g} | {statistics.median(raw[f][1]):.4g} | {statistics.median(q):.3f} ({q[0]:.3f}, {q[-1]:.3f})", flush=True)
