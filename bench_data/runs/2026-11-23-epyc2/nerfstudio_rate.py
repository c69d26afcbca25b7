"""A data manager of nerfstudio's for rays, timed: `nerfstudio_rate.py ours|vanilla|parallel SCENE [STEPS]`.

Prints the seconds until the manager is there and until its first batch, then steps a second of
4,096 rays, and the PSS of the process and its children at the end, less what importing took.
"""

import os
import sys
import time
import warnings
from pathlib import Path


def main():
    warnings.filterwarnings("ignore")
    from nerfstudio.data.datamanagers.base_datamanager import VanillaDataManagerConfig
    from nerfstudio.data.datamanagers.parallel_datamanager import ParallelDataManagerConfig
    from nerfstudio.data.dataparsers.nerfstudio_dataparser import NerfstudioDataParserConfig

    from featherload.nerfstudio import RayDataManagerConfig

    kind, scene = sys.argv[1], Path(sys.argv[2])
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 500

    def pss():
        total, pids = 0, [os.getpid()]
        while pids:
            pid = pids.pop()
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += int(text.split("\nPss:")[1].split()[0])
                pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
            except OSError:
                pass
        return total / 1024

    config = {
        "ours": RayDataManagerConfig,
        "vanilla": VanillaDataManagerConfig,
        "parallel": ParallelDataManagerConfig,
    }[kind](
        dataparser=NerfstudioDataParserConfig(data=scene, downscale_factor=1),
        train_num_rays_per_batch=4096,
    )
    before = pss()
    began = time.perf_counter()
    manager = config.setup(device="cpu")
    there = time.perf_counter()
    manager.next_train(0)
    first = time.perf_counter()
    # Until all images are decoded and caches are warm.
    for step in range(1, 200):
        manager.next_train(step)
    start = time.perf_counter()
    for step in range(200, 200 + steps):
        manager.next_train(step)
    took = time.perf_counter() - start
    print(
        f"{kind}: there after {there - began:.2f} s, first batch after {first - began:.2f} s, "
        f"{steps / took:.0f} steps/s ({4096 * steps / took / 1e6:.2f} M rays/s), "
        f"{pss() - before:.0f} MiB"
    )
    sys.stdout.flush()
    # Processes of the parallel manager end no other way.
    os._exit(0)


if __name__ == "__main__":
    main()
