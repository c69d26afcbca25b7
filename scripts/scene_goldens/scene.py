"""Writes the goldens of scenes: results of nerfstudio's own functions for poses and names.

Runs `auto_orient_and_center_poses` of nerfstudio's cameras/camera_utils.py and the splits of
data/utils/dataparsers_utils.py. It compiles them from their source files, without the rest of
the package. Tensors and torch's default are float64, so that rounding to float32 does not hide
errors.

The file was made with Python 3.11, torch 2.15.0, NumPy 2.4.6 and nerfstudio main (2026-11).
Signs of eigenvectors are those of torch's LAPACK.
"""

import ast
import json
import math
import os
import sys
import types

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def functions(path, names):
    """Compiles the functions of these names, without the imports of their file."""
    tree = ast.parse(open(path, encoding="utf-8").read())
    kept = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]
    for node in kept:
        # Annotations need packages that the functions do not use.
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        node.decorator_list = []
    module = types.ModuleType("part")
    module.__dict__.update(torch=torch, np=np, math=math, os=os)
    exec(compile(ast.Module(kept, []), path, "exec"), module.__dict__)
    return module


def rotations(rng, count):
    q = rng.normal(size=(count, 4))
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
        ],
        1,
    )


def looking(rng, count, outward, tilt):
    """The poses of cameras on a ring, which look at its centre or away from it."""
    poses = np.tile(np.eye(4), (count, 1, 1))
    for i in range(count):
        a = 2 * np.pi * i / count + 0.1 * rng.normal()
        centre = np.array([3 * np.cos(a), 2 * np.sin(a), 0.5 + 0.3 * rng.normal()])
        z = centre / np.linalg.norm(centre) * (-1 if outward else 1)
        up = np.array([0, 0, 1]) + tilt * rng.normal(size=3)
        x = np.cross(up, z)
        x /= np.linalg.norm(x)
        poses[i, :3, :] = np.stack([x, np.cross(z, x), z, centre], -1)
    return poses


def forward(rng, count):
    """The poses of cameras side by side, which look in the same direction."""
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, 3] = rng.normal(size=(count, 3)) * [1, 0.5, 0.1]
    return poses


def sets(rng):
    yield "ring, inward", looking(rng, 9, False, 0.05)
    yield "ring, outward", looking(rng, 8, True, 0.05)
    yield "forward", forward(rng, 6)
    yield "upside down", looking(rng, 7, False, 0.0) @ np.diag([1.0, -1, -1, 1])
    two = looking(rng, 5, False, 0.1)[:2]
    yield "two", two
    for number in range(24):
        count = int(rng.integers(3, 9))
        poses = np.tile(np.eye(4), (count, 1, 1))
        poses[:, :3, :3] = rotations(rng, count)
        poses[:, :3, 3] = rng.normal(size=(count, 3)) * rng.uniform(0.1, 5, size=3)
        poses[:, :3, 3] += rng.normal(size=3) * 3
        yield f"random {number}", poses


def main():
    source, out = sys.argv[1:]
    part = functions(
        f"{source}/cameras/camera_utils.py",
        ["rotation_matrix_between", "focus_of_attention", "auto_orient_and_center_poses"],
    )
    splits = functions(
        f"{source}/data/utils/dataparsers_utils.py",
        ["get_train_eval_split_fraction", "get_train_eval_split_interval"],
    )
    rng = np.random.default_rng(7)
    cases = []
    for name, poses in sets(rng):
        # Rounded as in a file of poses, so that both programs read the same numbers.
        poses = np.round(poses, 9)
        transforms = {}
        for method in ["up", "vertical", "pca", "none"]:
            for center in ["poses", "focus", "none"]:
                if center != "poses" and method in ("pca", "vertical") and "random" in name:
                    continue
                if method == "pca" and len(poses) < 4:
                    # Three centres are in a plane, so two axes or the sign of one are arbitrary.
                    continue
                try:
                    oriented, transform = part.auto_orient_and_center_poses(
                        torch.tensor(poses), method=method, center_method=center
                    )
                except (IndexError, torch.linalg.LinAlgError):
                    # `vertical` needs three poses, and `focus` two with different directions.
                    continue
                transforms[f"{method}/{center}"] = {
                    "transform": [[float(v) for v in row] for row in transform.numpy()],
                    "largest": float(torch.max(torch.abs(oriented[:, :3, 3]))),
                }
        cases.append({"name": name, "poses": poses[:, :3].tolist(), "transforms": transforms})
    fractions = []
    for count in [1, 2, 3, 7, 10, 50, 99, 100, 311, 1000]:
        for part_of in [0.0, 0.1, 0.5, 0.9, 0.95, 1.0]:
            _, evaluates = splits.get_train_eval_split_fraction(["x"] * count, part_of)
            if len(evaluates) <= 120:
                fractions.append([count, part_of, [int(i) for i in evaluates]])
    intervals = []
    for count, every in [(1, 8), (8, 8), (9, 8), (50, 8), (17, 3), (5, 1)]:
        _, evaluates = splits.get_train_eval_split_interval(["x"] * count, every)
        intervals.append([count, every, [int(i) for i in evaluates]])
    eigen = []
    for _ in range(60):
        spread = rng.normal(size=(9, 3)) * rng.uniform(0.1, 5, size=3) @ rotations(rng, 1)[0]
        matrix = np.round(spread.T @ spread, 9)
        values, vectors = torch.linalg.eigh(torch.tensor(matrix))
        eigen.append([matrix.tolist(), values.tolist(), vectors.tolist()])
    goldens = {"eigen": eigen, "cases": cases, "fractions": fractions, "intervals": intervals}
    with open(out, "w", encoding="utf-8") as file:
        json.dump(goldens, file, separators=(",", ":"))
        file.write("\n")


main()
