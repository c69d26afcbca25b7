"""Writes tests/goldens/camera.json: results of other libraries for cameras and points.

Axes are OpenCV's, and pixel centres are at 0.5. Each case has a `name`, a `camera` in the form
of our `Camera`, and some of:

- `rays`: [x, y, dx, dy, dz]: the direction of length 1 through an image point;
- `seen`: [X, Y, Z, x, y]: a point of space, and its image point;
- `bundle`: [x, y, dx, dy, dz, pixel_area, directions_norm]: a ray of nerfstudio's;
- `origins`: [x, y, ox, oy, oz]: an image point, and the origin of its ray;
- `straight`: the pinhole camera of the straightened image, with a tolerance of `within` pixels;
- `places`: [x, y, u, v]: a point of the straightened image, and its source point in the bent
  image. The tolerance is 1e-3 pixels, since OpenCV's map is f32.
"""

import ast
import json
import os
import sys
from pathlib import Path

import cv2
import numpy as np
import pycolmap
import torch

FOX = {"fx": 1375.52, "fy": 1374.49, "cx": 554.558, "cy": 965.268, "width": 1080, "height": 1920}
FOX_K = [0.0578421, -0.0805099]
FOX_P = [-0.000980296, 0.00015575]
# An odd size, a principal point that is not the centre, unequal focal lengths.
ODD = {"fx": 612.25, "fy": 598.5, "cx": 401.75, "cy": 287.125, "width": 801, "height": 599}
# Its corners are 80 degrees from the axis: COLMAP mirrors rays at 90 degrees and beyond.
WIDE = {**ODD, "fx": 401.5, "fy": 405.25}
# The rays of its corners point backwards.
WIDEST = {**ODD, "fx": 301.5, "fy": 305.25}
ONE = {**ODD, "fy": 612.25}
WIDE_ONE = {**WIDE, "fy": 401.5}

random = np.random.default_rng(20261123)


def rounded(rows, digits=11):
    """Rounds rows of numbers to a number of significant digits."""
    return [[float(f"{value:.{digits}g}") for value in row] for row in rows]


def camera(base, lens):
    return {**base, "lens": lens}


def image_points(base, count):
    x = random.uniform(0, base["width"], count).round(2)
    y = random.uniform(0, base["height"], count).round(2)
    return np.stack([x, y], 1)


# COLMAP ------------------------------------------------------------------------------------


def colmap_case(model, base, parameters, lens, count=120):
    """A case of COLMAP. `parameters` follow focal lengths and principal point, in its order."""
    one = len(pycolmap.Camera.create_from_model_name(1, model, 1.0, 4, 4).focal_length_idxs()) == 1
    focal = [base["fx"]] if one else [base["fx"], base["fy"]]
    if one:
        assert base["fx"] == base["fy"]
    values = [*focal, base["cx"], base["cy"], *parameters]
    if model == "EQUIRECTANGULAR":
        values = [base["width"], base["height"]]
    theirs = pycolmap.Camera(
        model=model, width=base["width"], height=base["height"], params=values
    )
    assert theirs.verify_params()
    points = image_points(base, count)
    rays = theirs.cam_ray_from_img(points)
    assert np.isfinite(rays).all(), model
    depth = random.uniform(0.5, 5, (count, 1))
    space = (theirs.cam_ray_from_img(image_points(base, count)) * depth).round(4)
    seen = np.array([theirs.img_from_cam(point) for point in space])
    assert np.isfinite(seen).all(), model
    return {
        "name": f"COLMAP {int(theirs.model)} {model}",
        "camera": camera(base, lens),
        "rays": rounded(np.hstack([points, rays])),
        "seen": rounded(np.hstack([space, seen])),
    }


def colmap_cases():
    zero2 = [0.0, 0.0]
    four = [0.031, -0.012, 0.0021, 0.0007]
    aria = [0.021, -0.011, 0.003, 0.0017, -0.0009, 0.0002]
    sphere = {"width": 801, "height": 599, "fx": 400.5, "fy": 599.0, "cx": 400.5, "cy": 299.5}
    brown = lambda k, p: {"brown": {"k": (k + [0.0] * 4)[:4], "p": p}}
    fisheye = lambda k: {"fisheye": {"k": (k + [0.0] * 4)[:4]}}
    yield colmap_case("SIMPLE_PINHOLE", ONE, [], "pinhole")
    yield colmap_case("PINHOLE", ODD, [], "pinhole")
    yield colmap_case("SIMPLE_RADIAL", ONE, [-0.11], brown([-0.11], zero2))
    yield colmap_case("RADIAL", ONE, [-0.13, 0.041], brown([-0.13, 0.041], zero2))
    yield colmap_case("OPENCV", FOX, FOX_K + FOX_P, brown(FOX_K, FOX_P))
    yield colmap_case("OPENCV_FISHEYE", WIDE, four, fisheye(four))
    k = [0.11, -0.05, 0.012, 0.21, -0.03, 0.008]
    p = [0.0013, -0.0021]
    yield colmap_case(
        "FULL_OPENCV", ODD, [*k[:2], *p, *k[2:]], {"rational": {"k": k, "p": p}}
    )
    yield colmap_case("FOV", ODD, [0.93], {"fov": {"omega": 0.93}})
    yield colmap_case("SIMPLE_RADIAL_FISHEYE", WIDE_ONE, [-0.04], fisheye([-0.04]))
    yield colmap_case("RADIAL_FISHEYE", WIDE_ONE, [0.05, -0.014], fisheye([0.05, -0.014]))
    s = [0.0041, -0.0027]
    yield colmap_case(
        "THIN_PRISM_FISHEYE",
        WIDE,
        [*four[:2], *p, *four[2:], *s],
        {"thin_prism_fisheye": {"k": four, "p": p, "s": s}},
    )
    s = [0.0021, -0.0013, -0.0017, 0.0009]
    yield colmap_case(
        "RAD_TAN_THIN_PRISM_FISHEYE",
        WIDE,
        [*aria, *p, *s],
        {"fisheye624": {"k": aria, "p": p, "s": s}},
    )
    yield colmap_case("SIMPLE_FISHEYE", WIDE_ONE, [], fisheye([]), 30)
    yield colmap_case("FISHEYE", WIDE, [], fisheye([]), 30)
    yield colmap_case("EQUIRECTANGULAR", sphere, [], "equirectangular")


# nerfstudio --------------------------------------------------------------------------------


def nerfstudio_functions():
    """Compiles functions of cameras/camera_utils.py from its source. Annotations and decorators
    are removed, so that the package's many dependencies are not needed."""
    source = Path(os.environ["NERFSTUDIO"]) / "cameras" / "camera_utils.py"
    names = {
        "_compute_residual_and_jacobian",
        "radial_and_tangential_undistort",
        "fisheye624_project",
        "fisheye624_unproject_helper",
    }
    tree = ast.parse(source.read_text())
    taken = [node for node in tree.body if getattr(node, "name", None) in names]
    assert {node.name for node in taken} == names
    for node in taken:
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
    space = {"torch": torch}
    exec(compile(ast.Module(taken, []), str(source), "exec"), space)
    return space


THEIRS = nerfstudio_functions()


def bundle(kind, base, distortion, points):
    """Origins, directions, pixel_area and directions_norm in OpenCV's axes, all f64.

    A copy of `_generate_rays_from_coords` in cameras/cameras.py, with the camera at the origin.
    The numbers of lines are of main in November 2026. `distortion` is in nerfstudio's order.
    nerfstudio's own functions undistort, with more rounds than their default of 10 and 5.
    """
    fx, fy, cx, cy = (base[name] for name in ("fx", "fy", "cx", "cy"))
    x, y = torch.tensor(points).T
    # Lines 623-632: the point, the pixel to its right, and the pixel below.
    pixels = torch.stack([torch.stack([x + dx, y + dy], -1) for dx, dy in [(0, 0), (1, 0), (0, 1)]])
    coord = torch.stack([(pixels[..., 0] - cx) / fx, (pixels[..., 1] - cy) / fy], -1)
    plain = coord[0].clone()
    if distortion is not None and kind in ("PERSPECTIVE", "FISHEYE"):
        # Lines 636-653.
        k = torch.tensor(distortion, dtype=torch.float64)
        coord = THEIRS["radial_and_tangential_undistort"](
            coord, k.expand(coord.shape[:-1] + (6,)), max_iterations=100
        )
    coord[..., 1] *= -1  # 656
    origins = torch.zeros(len(points), 3, dtype=torch.float64)
    if kind == "PERSPECTIVE":  # 782-787
        rays = torch.cat([coord, -torch.ones_like(coord[..., :1])], -1)
    elif kind == "FISHEYE":  # 789-804
        theta = coord.norm(dim=-1, keepdim=True).clip(0, torch.pi)
        rays = torch.cat([coord * torch.sin(theta) / theta, -torch.cos(theta)], -1)
    elif kind == "EQUIRECTANGULAR":  # 806-817
        theta = -torch.pi * coord[..., 0]
        phi = torch.pi * (0.5 - coord[..., 1])
        rays = torch.stack(
            [
                -torch.sin(theta) * torch.sin(phi),
                torch.cos(phi),
                -torch.cos(theta) * torch.sin(phi),
            ],
            -1,
        )
    elif kind == "ORTHOPHOTO":  # 839-852
        rays = torch.tensor([0.0, 0.0, -1.0], dtype=torch.float64).expand(3, len(points), 3)
        origins[:, 0], origins[:, 1] = plain[:, 0], -plain[:, 1]
    else:  # 854-880, and camera_utils.py 877-882
        parameters = torch.tensor([[fx, fy, cx, cy, *distortion]], dtype=torch.float64)
        rays = THEIRS["fisheye624_unproject_helper"](
            pixels.reshape(1, -1, 2), parameters, max_iters=100
        ).reshape(3, -1, 3)
        rays = rays * torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)
    norm = rays.norm(dim=-1, keepdim=True)  # 892-910
    rays = rays / norm
    area = (rays[0] - rays[1]).norm(dim=-1) * (rays[0] - rays[2]).norm(dim=-1)
    turned = torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)
    return origins * turned, rays[0] * turned, area, norm[0, :, 0]


def nerfstudio_case(kind, base, distortion, lens, count=60):
    points = image_points(base, count)
    points = np.floor(points) + 0.5
    origins, rays, area, norm = bundle(kind, base, distortion, points)
    rows = np.hstack([points, rays, area[:, None], norm[:, None]])
    case = {
        "name": f"nerfstudio {kind}",
        "camera": camera(base, lens),
        "bundle": rounded(rows),
    }
    if kind == "ORTHOPHOTO":
        case["origins"] = rounded(np.hstack([points, origins]))
    if kind == "FISHEYE624":
        space = np.column_stack([random.uniform(-2, 2, (count, 2)), random.uniform(0.5, 3, count)])
        space = space.round(4)
        parameters = [base[name] for name in ("fx", "fy", "cx", "cy")] + distortion
        seen = THEIRS["fisheye624_project"](
            torch.tensor(space)[None], torch.tensor([parameters], dtype=torch.float64)
        )[0]
        case["seen"] = rounded(np.hstack([space, seen]))
    return case


def nerfstudio_cases():
    k = FOX_K + [0.013, -0.004]
    yield nerfstudio_case("PERSPECTIVE", FOX, k + FOX_P, {"brown": {"k": k, "p": FOX_P}})
    k = [0.031, -0.012, 0.0021, 0.0007]
    yield nerfstudio_case("FISHEYE", WIDEST, k + [0.0, 0.0], {"fisheye": {"k": k}})
    p = [0.0013, -0.0021]
    lens = {"thin_prism_fisheye": {"k": k, "p": p, "s": [0.0, 0.0]}}
    yield nerfstudio_case("FISHEYE", WIDEST, k + p, lens)
    sphere = {**ODD, "fx": 400.5, "fy": 400.5, "cx": 400.5, "cy": 200.25, "height": 400}
    yield nerfstudio_case("EQUIRECTANGULAR", sphere, None, "equirectangular")
    yield nerfstudio_case("ORTHOPHOTO", ODD, None, "orthographic")
    k = [0.021, -0.011, 0.003, 0.0017, -0.0009, 0.0002]
    s = [0.0021, -0.0013, -0.0017, 0.0009]
    lens = {"fisheye624": {"k": k, "p": p, "s": s}}
    yield nerfstudio_case("FISHEYE624", WIDE, [*k, *p, *s], lens)


# OpenCV ------------------------------------------------------------------------------------


def straight_case(name, base, distortion, lens, within, fisheye=False, count=40):
    """A case of OpenCV. Its pixel centres are integers, so 0.5 is subtracted and added again."""
    size = (base["width"], base["height"])
    matrix = np.array(
        [[base["fx"], 0, base["cx"] - 0.5], [0, base["fy"], base["cy"] - 0.5], [0, 0, 1]]
    )
    bent = np.array(distortion)
    if fisheye:
        new = cv2.fisheye.estimateNewCameraMatrixForUndistortRectify(
            matrix, bent, size, np.eye(3), balance=0
        )
        maps = cv2.fisheye.initUndistortRectifyMap(matrix, bent, np.eye(3), new, size, cv2.CV_32FC1)
        left, top, width, height = 0, 0, *size
    else:
        new, roi = cv2.getOptimalNewCameraMatrix(matrix, bent, size, 0)
        maps = cv2.initUndistortRectifyMap(matrix, bent, None, new, size, cv2.CV_32FC1)
        left, top, width, height = roi
    by = {
        "width": width,
        "height": height,
        "fx": new[0, 0],
        "fy": new[1, 1],
        "cx": new[0, 2] - left + 0.5,
        "cy": new[1, 2] - top + 0.5,
        "lens": "pinhole",
    }
    columns = random.integers(0, width, count)
    rows = random.integers(0, height, count)
    places = np.stack(
        [columns + 0.5, rows + 0.5, *(m[top + rows, left + columns] + 0.5 for m in maps)], 1
    )
    return {
        "name": f"OpenCV {name}",
        "camera": camera(base, lens),
        "straight": by,
        "within": within,
        "places": rounded(places, 8),
    }


def straight_cases():
    brown = lambda k, p: {"brown": {"k": k, "p": p}}
    # OpenCV's inverse stops after five rounds, which is enough for a weak lens.
    k = FOX_K + [0.0, 0.0]
    yield straight_case("fox", FOX, FOX_K + FOX_P, brown(k, FOX_P), 1e-4)
    k, p = [-0.12, 0.02, 0.003, 0.0], [0.001, -0.001]
    yield straight_case("barrel", ODD, [*k[:2], *p, k[2]], brown(k, p), 0.02)
    k = [0.11, -0.05, 0.012, 0.21, -0.03, 0.008]
    lens = {"rational": {"k": k, "p": p}}
    yield straight_case("rational", ODD, [*k[:2], *p, *k[2:]], lens, 0.02)
    k = [0.031, -0.012, 0.0021, 0.0007]
    lens = {"fisheye": {"k": k}}
    yield straight_case("fisheye", WIDE, k, lens, 1e-6, fisheye=True)
    even = {**WIDE, "width": 800, "height": 600}
    yield straight_case("fisheye", even, k, lens, 1e-6, fisheye=True)


def main():
    cases = [*colmap_cases(), *nerfstudio_cases(), *straight_cases()]
    versions = {
        "pycolmap": pycolmap.__version__,
        "opencv": cv2.__version__,
        "torch": torch.__version__.split("+")[0],
        "numpy": np.__version__,
        "nerfstudio": "main, November 2026",
    }
    head = json.dumps(versions)
    rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    text = f'{{"versions": {head},\n"cases": [\n{rows}\n]}}\n'
    Path(sys.argv[1]).write_text(text)


main()
