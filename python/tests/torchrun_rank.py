"""A rank of `test_torchrun.py`: saves the samples that it received, and continues after them.

torchrun_rank.py SRC PLACE: keeps `rank-N.json` in PLACE, which all machines see. It is no test.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import featherload

EPOCHS = 2
# Batches that a rank takes before one of them dies.
BEFORE = 5
# Looks at the downloads that find none under way, one after the other, before it dies.
RESTS = 20


def is_at(kept: Path, seen: list[list[int]]) -> bool:
    return kept.exists() and [*map(len, json.loads(kept.read_text())["seen"])] == [*map(len, seen)]


def rests(place: Path) -> bool:
    """Whether no machine downloads. What lies in buffers of a process that is killed is sent again,
    and the test counts what is sent."""
    return not any(place.glob("node-*/**/*.part"))


def main(src: str, place: Path) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # Of the machine, which its ranks share.
    fetched = os.environ["FETCHED"]
    kept = place / f"rank-{rank}.json"
    loader = featherload.Loader(
        src,
        Path(__file__).with_name("small.yaml"),
        batch_size=8,
        num_workers=1,
        sampler=featherload.samplers.ShardShuffle(window=32),
        fetch_dir=fetched,
    )
    seen: list[list[int]] = [[] for _ in range(EPOCHS)]
    is_first = not kept.exists()
    if not is_first:
        found = json.loads(kept.read_text())
        seen = found["seen"]
        loader.load_state_dict(found["state"])
        print(f"rank {rank} of {world} continues after {sum(map(len, seen))} samples", flush=True)
    batches = 0
    while loader.epoch < EPOCHS:
        epoch = loader.epoch
        for batch in loader:
            seen[epoch] += batch.ids[batch.good_rows()].tolist()
            new = kept.with_suffix(".new")
            new.write_text(json.dumps({"seen": seen, "state": loader.state_dict()}))
            os.replace(new, kept)
            batches += 1
            if is_first and batches == BEFORE:
                if rank == world - 1:
                    while not all(is_at(place / f"rank-{n}.json", seen) for n in range(world)):
                        time.sleep(0.05)
                    quiet = 0
                    while quiet < RESTS:
                        quiet = quiet + 1 if rests(place) else 0
                        time.sleep(0.05)
                    os.kill(os.getpid(), signal.SIGKILL)
                # Until torchrun ends it too.
                time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
