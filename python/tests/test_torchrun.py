"""Two machines of two ranks each, by torchrun: its environment alone, and its restarts."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from conftest import need
from object_store import Store

from featherload._helper import helper

PROGRAM = Path(__file__).parent / "torchrun_rank.py"
NODES, RANKS = 2, 2
LIMIT = 200.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_rank_that_dies_is_started_again_and_each_sample_comes_once(
    store: Store, photos: Path, tmp_path: Path
) -> None:
    need("torch")
    cache = tmp_path / "cache"
    build = [helper(), "cache", "build", photos, cache, "--shard-samples", "16"]
    subprocess.run(build, check=True, capture_output=True)
    src = store.upload(cache, "sets/cache")

    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS)]
    command += ["--nnodes", str(NODES), "--max-restarts", "3", "--rdzv-backend", "c10d"]
    command += ["--rdzv-id", "test", "--rdzv-endpoint", f"127.0.0.1:{free_port()}"]
    agents = [
        subprocess.Popen(
            [*command, str(PROGRAM), src, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "FETCHED": str(tmp_path / f"node-{node}")},
        )
        for node in range(NODES)
    ]
    try:
        said = [agent.communicate(timeout=LIMIT) for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
    out = "".join(out for out, _ in said)
    assert all(agent.returncode == 0 for agent in agents), "\n".join(error for _, error in said)

    again = re.findall(r"rank (\d) of 4 continues after 40 samples", out)
    assert sorted(again) == ["0", "1", "2", "3"], out
    for epoch in range(2):
        seen: list[int] = []
        for rank in range(NODES * RANKS):
            seen += json.loads((tmp_path / f"rank-{rank}.json").read_text())["seen"][epoch]
        assert sorted(seen) == list(range(256))
    # One download for each machine, whatever its ranks; who is started again goes on with it.
    of_shards = sum(path.stat().st_size for path in cache.glob("shard-*.tar"))
    assert store.proxy.bytes_sent("*/shard-*.tar") <= NODES * of_shards * 1.02
