"""Each example runs on the demo set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import need

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("name", "framework", "says"),
    [
        ("train_torch.py", "torchvision", "epoch 0: loss "),
        ("train_lightning.py", "lightning", "16 steps"),
        ("train_jax.py", "jax", "epoch 1: loss "),
        ("resume.py", "numpy", "8 batches, the same as in one go"),
        ("ddp.py", "torch", "8 batches on each of 2 ranks"),
    ],
)
def test_it_runs(name: str, framework: str, says: str, photos: Path) -> None:
    need(framework)
    program = [sys.executable]
    if name == "ddp.py":
        program += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ended = subprocess.run(
        [*program, EXAMPLES / name, photos],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    assert says in ended.stdout, ended.stdout


def test_every_example_is_run() -> None:
    assert len(list(EXAMPLES.glob("*"))) == 5
