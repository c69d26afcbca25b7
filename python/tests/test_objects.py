"""Objects of images: their arrays, the forms of targets, and torchvision's boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherload
from featherload import ConfigError

COUNT = 11
SIZES = [(67, 91), (120, 45), (33, 33), (200, 301)]


def _size(n: int) -> tuple[int, int]:
    return SIZES[n % len(SIZES)]


def _item(n: int) -> dict[str, Any]:
    """The objects of image ``n``: none in each fifth."""
    random = np.random.default_rng(n)
    height, width = _size(n)
    count = 0 if n % 5 == 0 else 1 + n % 4
    corners = random.uniform(0, 0.6, (count, 2)) * [width, height]
    sides = random.uniform(0.1, 0.4, (count, 2)) * [width, height]
    points = np.concatenate([corners[:, None] + sides[:, None] / k for k in (2, 3)], 1)
    seen = random.integers(0, 3, (count, 2, 1))
    return {
        "boxes": np.concatenate([corners, corners + sides], 1),
        "labels": random.integers(1, 91, count),
        "iscrowd": random.integers(0, 2, count),
        "ids": 100 * n + np.arange(count),
        "keypoints": np.concatenate([points, seen], 2),
        "image_id": 7 * n,
        "size": (height, width),
    }


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from PIL import Image

    root = tmp_path_factory.mktemp("objects")
    for n in range(COUNT):
        pixels = np.random.default_rng(n).integers(0, 256, (*_size(n), 3), np.uint8)
        Image.fromarray(pixels).save(root / f"{n:02}.png")
    return root


def _recipe(*ops: Any) -> dict[str, Any]:
    return {"featherload": 1, "ops": [*ops, {"cast": {"dtype": "u8"}}]}


def _loader(root: Path, objects: Any = None, **options: Any) -> Any:
    options = {
        "recipe": _recipe({"resize": {"size": [48, 64]}}),
        "batch_size": 4,
        "num_workers": 2,
        "shuffle": False,
        **options,
    }
    if objects is None:
        objects = {
            "files": [_item(n) for n in range(COUNT)],
        }
    return featherload.Loader(root, objects=objects, **options)


def _want(n: int) -> Any:
    """Boxes of image ``n`` in 64 x 48 pixels."""
    height, width = _size(n)
    return _item(n)["boxes"] * np.array([64 / width, 48 / height] * 2)


def test_flat_arrays(photos: Path) -> None:
    with _loader(photos) as loader:
        seen = 0
        for batch in loader:
            objects = batch.objects
            assert objects.offsets.dtype == np.int64 and objects.boxes.dtype == np.float32
            for row, (start, end) in enumerate(
                zip(objects.offsets, objects.offsets[1:], strict=False)
            ):
                item = _item(seen)
                assert np.abs(objects.boxes[start:end] - _want(seen)).max(initial=0) < 1e-4
                assert (objects.labels[start:end] == item["labels"]).all()
                assert (objects.ids[start:end] == item["ids"]).all()
                assert (objects.iscrowd[start:end] == item["iscrowd"]).all()
                assert objects.iscrowd.dtype == np.bool_
                keypoints = objects.keypoints[start:end]
                assert keypoints.shape == (end - start, 2, 3)
                assert (keypoints[..., 2] == item["keypoints"][..., 2]).all()
                assert tuple(objects.original_sizes[row]) == _size(seen)
                assert tuple(objects.sizes[row]) == (48, 64)
                assert objects.image_ids[row] == 7 * seen
                seen += 1
    assert seen == COUNT


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_lists_of_dicts(photos: Path, framework: Any) -> None:
    with _loader(photos, framework=framework) as loader:
        n = 0
        for images, targets in loader:
            assert len(images) == len(targets)
            for target in targets:
                assert target["image_id"] == 7 * n
                assert np.abs(np.asarray(target["boxes"]) - _want(n)).max(initial=0) < 1e-4
                assert target["boxes"].shape == (len(_item(n)["labels"]), 4)
                assert target["labels"].shape == (len(_item(n)["labels"]),)
                n += 1
    assert n == COUNT


def test_the_batch_of_ultralytics(photos: Path) -> None:
    torch = pytest.importorskip("torch")
    with _loader(photos, framework="torch", targets="flat") as loader:
        n = 0
        for batch in loader:
            flat = batch.targets
            assert flat["batch_idx"].dtype == torch.float32 and flat["cls"].shape[1] == 1
            for row in range(len(batch[0])):
                here = flat["batch_idx"] == row
                boxes = flat["bboxes"][here] * torch.tensor([64.0, 48.0, 64.0, 48.0])
                x, y, w, h = boxes.numpy().T
                corners = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)
                assert np.abs(corners - _want(n)).max(initial=0) < 1e-3
                assert flat["keypoints"][here].shape == (len(boxes), 2, 3)
                n += 1
    assert n == COUNT


def test_padded_targets(photos: Path) -> None:
    most = 6
    files = [_item(n) for n in range(COUNT)]
    for objects in ({"files": files, "max_objects": most}, {"files": files}):
        with _loader(photos, objects, targets="padded") as loader:
            n = 0
            for batch in loader:
                padded = batch[1]
                counts = batch.objects.counts
                side = most if "max_objects" in objects else max(counts)
                assert padded["boxes"].shape == (len(counts), side, 4)
                assert (padded["valid"].sum(1) == counts).all()
                assert (padded["labels"][~padded["valid"]] == -1).all()
                assert (padded["boxes"][~padded["valid"]] == 0).all()
                for row, count in enumerate(counts):
                    assert (padded["valid"][row, :count]).all()
                    found = padded["boxes"][row, :count]
                    assert np.abs(found - _want(n)).max(initial=0) < 1e-4
                    n += 1
        assert n == COUNT


def test_the_batch_of_detr(photos: Path) -> None:
    """Against the processor of transformers, from the same annotations."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    processor = transformers.DetrImageProcessor(
        do_resize=False, do_normalize=False, do_pad=False, do_convert_annotations=True
    )
    files = [{**_item(n), "iscrowd": None} for n in range(COUNT)]
    files = [{k: v for k, v in item.items() if v is not None} for item in files]
    options = {"recipe": _recipe({"resize": {"size": [48, 64]}}), "targets": "detr"}
    objects = {"files": files, "style": "hf"}
    with _loader(photos, objects, framework="torch", **options) as loader:
        n = 0
        for images, targets in loader:
            assert targets["pixel_mask"].shape == (len(images), 48, 64)
            assert targets["pixel_mask"].dtype == torch.int64 and targets["pixel_mask"].all()
            for got in targets["labels"]:
                item = _item(n)
                height, width = _size(n)
                left, top, right, bottom = item["boxes"].T
                sides = np.stack([left, top, right - left, bottom - top], 1)
                annotations = [
                    {
                        "bbox": box.tolist(),
                        "category_id": int(label),
                        "area": float(box[2] * box[3]),
                        "iscrowd": 0,
                    }
                    for box, label in zip(sides, item["labels"], strict=True)
                ]
                blank = np.zeros((height, width, 3), np.uint8)
                want = processor(
                    images=blank,
                    annotations={"image_id": 7 * n, "annotations": annotations},
                    return_tensors="pt",
                )["labels"][0]
                # A resize leaves shares as they are.
                assert torch.allclose(got["boxes"], want["boxes"], atol=1e-5)
                assert (got["class_labels"] == want["class_labels"]).all()
                assert (got["orig_size"] == want["orig_size"]).all()
                assert got["size"].tolist() == [48, 64]
                assert (got["image_id"] == want["image_id"]).all()
                ratio = 48 * 64 / (height * width)
                assert torch.allclose(got["area"], want["area"] * ratio, rtol=1e-4)
                n += 1
    assert n == COUNT


def test_objects_move_as_in_torchvision(photos: Path) -> None:
    """Random crops and flips: boxes equal torchvision's for the same region."""
    torch = pytest.importorskip("torch")
    from torchvision import tv_tensors
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional

    recipe = _recipe({"random_resized_crop": {"size": 40}}, {"random_horizontal_flip": {}})
    files = [{**_item(n), "keypoints": None} for n in range(COUNT)]
    files = [{k: v for k, v in item.items() if v is not None} for item in files]
    options: dict[str, Any] = {"shuffle": True, "seed": 3}
    crops = featherload.Loader(photos, [recipe, recipe], batch_size=4, num_workers=1, **options)
    with crops, _loader(photos, {"files": files}, recipe=recipe, **options) as loader:
        for batch, geometry in zip(loader, [b.geometry[0] for b in crops], strict=True):
            for row, n in enumerate(batch.ids):
                item = _item(int(n))
                boxes = tv_tensors.BoundingBoxes(
                    torch.tensor(item["boxes"], dtype=torch.float32),
                    format="XYXY",
                    canvas_size=_size(int(n)),
                )
                left, top, right, bottom = (round(float(v)) for v in geometry.boxes[row])
                moved = functional.resized_crop(
                    boxes, top, left, bottom - top, right - left, [40, 40]
                )
                if geometry.flips[row]:
                    moved = functional.horizontal_flip(moved)
                kept = v2.SanitizeBoundingBoxes(labels_getter=lambda x: x[1])(
                    (moved, torch.tensor(item["labels"]))
                )
                target = batch[1][row]
                assert np.abs(target["boxes"] - kept[0].numpy()).max(initial=0) < 1e-3
                assert (target["labels"] == kept[1].numpy()).all()


def test_names_of_categories(photos: Path) -> None:
    files = [_item(n) for n in range(COUNT)]
    with _loader(photos, {"files": files, "names": {1: "person"}}) as loader:
        names = dict(loader.categories)
        labels = {int(label) for item in files for label in item["labels"]} | {1}
        assert set(names) == labels and names[1] == "person"
    with _loader(photos, {"files": files, "labels": "contiguous"}) as loader:
        given = sorted({int(label) for item in files for label in item["labels"]})
        batch = next(iter(loader))
        row = 1
        start, end = batch.objects.offsets[row : row + 2]
        found = [given[label] for label in batch.objects.labels[start:end]]
        assert found == _item(row)["labels"].tolist()
        del batch


def test_a_moved_batch_keeps_its_targets(photos: Path) -> None:
    torch = pytest.importorskip("torch")
    with _loader(photos, framework="torch") as loader:
        batch = next(iter(loader))
        moved = batch.to("meta")
        assert moved.images.device.type == "meta"
        assert moved.targets[1]["boxes"].device.type == "meta"
        assert moved.objects.labels.device.type == "meta"
        assert batch.to("cpu") is batch
        assert batch.to(torch.float32).targets is batch.targets
        del batch, moved


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([{"boxes": []}] * 3, "those of 3 images, and there are 11 images"),
        ([{"bbox": []}] * COUNT, "item 0 has 'bbox': use area, boxes"),
        ([7] * COUNT, "item 0 is 7: give a dict"),
        ([{"boxes": [[0, 0, 1, 1]], "labels": ["cat"]}] * COUNT, "labels has dtype"),
        ([{"boxes": [[0, 0, 1, 1]], "labels": [1.5]}] * COUNT, "labels has fractions"),
        ([{"boxes": [[0, 0, 1, 1]], "labels": [1, 2]}] * COUNT, "`boxes` has 1 entries"),
        ([{"boxes": [[0, 0, -1, 1]], "labels": [1]}] * COUNT, "box 0 is [0.0, 0.0, -1.0, 1.0]"),
        ({"files": [{}] * COUNT, "style": "dali"}, "unknown variant 'dali'"),
        ({"files": [{}] * COUNT, "min_visibility": 0.5}, "no meaning in style torchvision"),
        ({"style": "hf"}, "objects need `files`"),
    ],
)
def test_errors_name_the_object(photos: Path, objects: Any, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        _loader(photos, objects)
    assert said in str(error.value)


def test_errors_of_targets(photos: Path) -> None:
    with pytest.raises(ConfigError, match="use one of list, flat, padded, detr"):
        _loader(photos, targets="dict")
    with pytest.raises(ConfigError, match="these images are in no cache.*say where they are"):
        featherload.Loader(photos, targets="list")
    with featherload.Loader(photos, num_workers=1) as loader:
        batch = next(iter(loader))
        with pytest.raises(AttributeError, match="this batch has no objects"):
            _ = batch.objects
        del batch
    with pytest.raises(ConfigError, match="several crops"):
        _loader(photos, recipe=[_recipe({"resize": {"size": [8, 8]}})] * 2)


def test_the_plan_counts_objects(photos: Path) -> None:
    item = {"boxes": [[0, 0, 1, 1]] * 5000, "labels": [1] * 5000}
    options: dict[str, Any] = {"recipe": _recipe({"resize": {"size": [8, 8]}}), "num_workers": 1}
    few = featherload.plan(photos, **options)
    many = featherload.plan(photos, objects=[item] * COUNT, **options)
    assert many["memory"]["total_bytes"] - few["memory"]["total_bytes"] > COUNT * 5000 * 60


def _outlined(n: int) -> dict[str, Any]:
    """The objects of image ``n`` with outlines of triangles."""
    item = {name: value for name, value in _item(n).items() if name != "keypoints"}
    outlines = [
        [[[left, top], [right, (top + bottom) / 2], [(left + right) / 2, bottom]]]
        for left, top, right, bottom in item["boxes"]
    ]
    return {**item, "polygons": outlines}


def _drawn(n: int) -> Any:
    """The masks of image ``n`` by pycocotools, M x H x W."""
    mask = pytest.importorskip("pycocotools.mask", reason="pycocotools is absent")
    height, width = _size(n)
    rings = [np.asarray(rings).reshape(1, -1).tolist() for rings in _outlined(n)["polygons"]]
    if not rings:
        return np.zeros((0, height, width), np.uint8)
    runs = [mask.merge(mask.frPyObjects(ring, height, width)) for ring in rings]
    return np.stack([mask.decode(one) for one in runs])


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("size", ["full", "quarter"])
def test_instance_masks_of_torchvision(photos: Path, size: str) -> None:
    torch = pytest.importorskip("torch")
    from torchvision import tv_tensors
    from torchvision.transforms.v2 import functional

    keeps = {"min_size": 0, "min_area": 0, "masks": size}
    objects = {"files": [_outlined(n) for n in range(COUNT)], **keeps}
    with _loader(photos, objects, framework="torch") as loader:
        n = 0
        for _, targets in loader:
            for target in targets:
                want = tv_tensors.Mask(torch.from_numpy(_drawn(n)))
                if len(want):
                    want = functional.resize(want, [48, 64])
                    if size == "quarter":
                        want = want[:, ::4, ::4]
                    assert target["masks"].dtype == torch.uint8
                    assert (target["masks"] == want).all()
                n += 1
    assert n == COUNT


def test_masks_in_every_form(photos: Path) -> None:
    files = [_outlined(n) for n in range(COUNT)]
    objects = {"files": files, "style": "ultralytics", "masks": "quarter", "max_objects": 4}
    forms: dict[str, Any] = {}
    for form in ("list", "flat", "padded", "detr"):
        with _loader(photos, objects, targets=form) as loader:
            forms[form] = [(batch[1], batch.objects) for batch in loader]
    for (lists, objects_of), (flat, _), (padded, _), (detr, _) in zip(*forms.values(), strict=True):
        for row, target in enumerate(lists):
            masks = target["masks"]
            assert masks.shape == (len(target["labels"]), 12, 16)
            assert (padded["masks"][row, : len(masks)] == masks).all()
            assert (detr["labels"][row]["masks"] == masks).all()
            numbers = flat["masks"][row]
            assert ((numbers > 0) == masks.any(0)).all()
            # Where only one object is, its number is there.
            for place, mask in enumerate(masks):
                alone = (mask == 1) & (masks.sum(0) == 1)
                assert (numbers[alone] == place + 1).all()
        assert padded["masks"].shape[1] == 4
        assert objects_of.counts == [len(target["labels"]) for target in lists]


def test_masks_outlive_their_slot(photos: Path) -> None:
    """Batches that are copied because all others are held have their masks, too."""
    objects = {"files": [_outlined(n) for n in range(COUNT)], "masks": "full"}
    options: dict[str, Any] = {"batch_size": 1, "depth": 2}
    with _loader(photos, objects, batch_size=1) as loader:
        want = [np.array(batch.objects.masks[0]) for batch in loader]
    with _loader(photos, objects, **options) as loader, pytest.warns(RuntimeWarning):
        held = list(loader)
        for batch, masks in zip(held, want, strict=True):
            assert (batch.objects.masks[0] == masks).all()
        del held, batch


def test_masks_without_outlines(photos: Path) -> None:
    with pytest.raises(ConfigError, match="these objects have none: remove `masks`"):
        _loader(photos, {"files": [_item(n) for n in range(COUNT)], "masks": "full"})


def test_masks_of_images_of_own_sizes(photos: Path) -> None:
    objects = {"files": [_outlined(n) for n in range(COUNT)], "masks": "full", "min_size": 0}
    options: dict[str, Any] = {"recipe": "full", "batch_size": 4}
    for form in ("list", "flat", "padded"):
        with _loader(photos, objects, targets=form, **options) as loader:
            for batch in loader:
                sizes = batch.objects.sizes
                for (height, width), masks in zip(sizes, batch.objects.masks, strict=True):
                    assert masks.shape[1:] == (height, width)
                largest = tuple(sizes.max(0))
                if form == "flat":
                    assert batch.targets["masks"].shape == (len(sizes), *largest)
                if form == "padded":
                    assert batch.targets["masks"].shape[2:] == largest


def test_boxes_at_the_edges_stay(photos: Path) -> None:
    """Rounding of shares and of a resize must not drop a box that touches an edge."""
    edges = [[0.25, 0.5, 0.500002, 1.0], [0.75, 0.75, 0.5, 0.500001], [0.5, 0.5, 1.0, 1.0]]
    item = {"boxes": edges, "labels": [1, 2, 3]}
    objects = {"files": [item] * COUNT, "box_format": "cxcywh", "normalized": True}
    for side in range(30, 90, 7):
        recipe = _recipe({"resize": {"size": [side, side + 3]}})
        with _loader(photos, objects, recipe=recipe) as loader:
            for batch in loader:
                assert batch.objects.counts == [3] * len(batch.images)
                assert batch.objects.boxes.min() >= 0
                assert (batch.objects.boxes <= [side + 3, side] * 2).all()


def test_moved_images_free_their_slot(photos: Path) -> None:
    torch = pytest.importorskip("torch")
    objects = {"files": [_outlined(n) for n in range(COUNT)], "masks": "full"}
    with _loader(photos, objects, framework="torch", batch_size=1) as loader:
        moved = [batch.to(torch.float64) for batch in loader]
        assert loader._stream.held()[0] == 0
        for batch in moved:
            assert batch.objects.masks[0] is batch.targets[0]["masks"]
        del moved, batch


def test_other_frameworks_of_one_batch(photos: Path) -> None:
    torch = pytest.importorskip("torch")
    with _loader(photos, targets="padded") as loader:
        batch = next(iter(loader))
        _, targets = batch.torch()
        assert isinstance(targets["boxes"], torch.Tensor)
        assert (targets["boxes"].numpy() == batch.targets["boxes"]).all()
        assert (batch.numpy()[1]["labels"] == batch.targets["labels"]).all()
        del batch, targets


def test_arrays_of_jax(photos: Path) -> None:
    jax = pytest.importorskip("jax")
    files = [{**_outlined(n), "image_id": 9_000_000_000 + n} for n in range(COUNT)]
    objects = {"files": files, "masks": "full"}
    for form in ("list", "flat", "padded", "detr"):
        with _loader(photos, objects, targets=form, framework="jax") as loader:
            batch = next(iter(loader))
            assert isinstance(batch.objects.boxes, jax.Array)
            assert batch.objects.image_ids[1] == 9_000_000_001
            if form == "padded":
                assert isinstance(batch.targets["valid"], jax.Array)
            if form == "detr":
                assert isinstance(batch.targets["pixel_mask"], jax.Array)
            del batch


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ({"files": "x.json", "box_format": "xywh"}, "box_format are for lists"),
        ({"files": [{}] * COUNT, "strict": True}, "say how files are read"),
        ({"files": [{}] * COUNT, "names": {"x": "cat"}}, "whole numbers as keys"),
        ({"files": [{}] * COUNT, "box_format": "yolo"}, "use one of xyxy, xywh, cxcywh"),
        ({"files": "x.json", "keypoint_swap": [0]}, "which exchanges no keypoints"),
        ({"files": "x.json", "names": ["cat"]}, "remove `names`"),
    ],
)
def test_options_without_effect_are_refused(photos: Path, objects: Any, said: str) -> None:
    with pytest.raises(featherload.Error) as error:
        _loader(photos, objects)
    assert said in str(error.value)


def test_keypoints_need_partners_where_a_style_exchanges_them(photos: Path) -> None:
    files = [_item(n) for n in range(COUNT)]
    with pytest.raises(ConfigError, match="give `keypoint_swap`"):
        _loader(photos, {"files": files, "style": "ultralytics"})
    for swap, said in (([0], "1 numbers, and objects have 2"), ([1, 1], "partner 1")):
        objects = {"files": files, "style": "ultralytics", "keypoint_swap": swap}
        with pytest.raises(ConfigError, match=said):
            _loader(photos, objects)
    without = {name: value for name, value in _item(1).items() if name != "keypoints"}
    without["keypoints"] = np.zeros((len(without["labels"]), 3, 2))
    with pytest.raises(ConfigError, match="give n x K x 3"):
        _loader(photos, [without] * COUNT)


def test_images_with_rare_categories_come_more_often(photos: Path) -> None:
    # Category 1 in all images with objects, 2 in one of them.
    def item(n: int) -> dict[str, Any] | None:
        if n == 3:
            return None
        boxes = [[1, 2, 20, 25]] * (2 if n == 7 else 1)
        return {"boxes": boxes, "labels": [1, 2][: len(boxes)]}

    files = [item(n) for n in range(COUNT)]
    sampler = featherload.samplers.RareObjects(threshold=1.0, empty=0.0, num_samples=4000)
    with _loader(photos, {"files": files}, shuffle=None, sampler=sampler) as loader:
        ids = np.bincount(list(loader.sampler), minlength=COUNT)
    factors = np.full(COUNT, (COUNT / (COUNT - 1)) ** 0.5)
    factors[7], factors[3] = COUNT**0.5, 0
    assert ids[3] == 0
    assert ids == pytest.approx(4000 * factors / factors.sum(), rel=0.2)
    for sampler, why in [
        (featherload.samplers.RareObjects(threshold=2.0), "threshold is 2"),
        (featherload.samplers.RareObjects(empty=-1.0), "empty is -1"),
    ]:
        with pytest.raises(ConfigError, match=why):
            _loader(photos, {"files": files}, shuffle=None, sampler=sampler)
    with pytest.raises(ConfigError, match="needs the objects"):
        featherload.Loader(photos, sampler=featherload.samplers.RareObjects())


def test_an_unknown_format_of_boxes_is_named(photos: Path) -> None:
    with _loader(photos) as loader:
        objects = next(iter(loader)).objects
        with pytest.raises(ConfigError, match="'xyxy' is unknown: use one of coco, pascal_voc"):
            objects.with_boxes_as("xyxy")


def test_a_trainer_has_one_name_for_masks_and_objects(photos: Path) -> None:
    from featherload._named_batches import NamedBatches

    masks = [np.zeros(_size(n), np.uint8) for n in range(COUNT)]
    with _loader(photos, masks=masks, targets="detr") as loader:
        batches = NamedBatches(iter(loader), ("pixel_values", "labels"))
        with pytest.raises(ConfigError, match="masks and objects.*leave masks or objects out"):
            next(batches)
