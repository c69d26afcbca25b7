"""PSS of several ranks on one scene: `ray_ranks.py FEATHERLOAD SCENE RANKS WORKERS`."""

import os
import subprocess
import sys
import time

featherload, scene, ranks, workers = (
    sys.argv[1],
    sys.argv[2],
    int(sys.argv[3]),
    sys.argv[4],
)


def pss(pids):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(
                    int(line.split()[1]) for line in file if line.startswith("Pss:")
                )
        except OSError:
            pass
    return total / 1024


def tree(roots):
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(name))
            except OSError:
                pass
    found, left = [], list(roots)
    while left:
        pid = left.pop()
        found.append(pid)
        left += children.get(pid, [])
    return found


command = [
    featherload,
    "rays",
    scene,
    "--steps",
    "100000000",
    "--workers",
    workers,
    "--json",
]
processes = [
    subprocess.Popen([*command, "--rank", str(rank)], stdout=subprocess.DEVNULL)
    for rank in range(ranks)
]
for _ in range(8):
    time.sleep(4)
    alive = tree([process.pid for process in processes])
    print(
        f"{ranks} ranks, {workers} workers each: {len(alive)} processes, {pss(alive):.1f} MiB"
    )
for process in processes:
    process.kill()
