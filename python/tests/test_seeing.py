"""Pictures and bars show what the model gets, and move nothing."""

from __future__ import annotations

import io
import json
import logging
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import digest, need, png

import featherload
from featherload._overlay import color_of, corners_of

Make = Callable[..., featherload.Loader]

LEVELS = {"ops": [{"resize": {"size": 256}}, {"center_crop": {"size": 224}}]}


def decoded(png: bytes) -> Any:
    """The pixels of a PNG whose lines have no filter."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    length = int.from_bytes(png[33:37], "big")
    lines = np.frombuffer(zlib.decompress(png[41 : 41 + length]), np.uint8)
    return lines.reshape(height, width * 3 + 1)[:, 1:].reshape(height, width, 3)


def test_a_preview_is_the_batch_with_normalize_taken_back(loader: Make, tmp_path: Path) -> None:
    plain = next(iter(loader(recipe=LEVELS, dtype="uint8", layout="nhwc", shuffle=False)))
    for options in ({}, {"layout": "nhwc"}, {"dtype": "float16"}):
        one = loader(recipe="eval224", shuffle=False, **options)
        seen = one.preview(5)
        assert [row.id for row in seen] == plain.ids[:5].tolist()
        assert [row.path for row in seen] == plain.paths()[:5]
        assert seen[0].label == one.dataset.classes[plain.labels[0]]
        for row in range(5):
            apart = np.abs(seen[row].image.astype(int) - plain.images[row].astype(int))
            assert apart.max() <= 1
    seen.save(tmp_path / "rows.png", columns=2)
    grid = decoded((tmp_path / "rows.png").read_bytes())
    assert grid.shape == (3 * 226, 2 * 226, 3) and (grid == seen.grid(2)).all()
    assert (grid[226:450, 226:450] == seen[3].image).all()
    assert (grid[452:, 226:] == 255).all()
    drawn = seen._repr_html_()
    assert drawn.count("data:image/png") == 5 and seen[0].label in drawn
    assert str(seen).count("\n") == 4 and "224 x 224" in str(seen)


def test_a_preview_draws_masks_and_objects(tmp_path: Path) -> None:
    root = tmp_path / "images"
    root.mkdir()
    (root / "a.png").write_bytes(png(np.full((40, 60, 3), 100, np.uint8)))
    (root / "b.png").write_bytes(png(np.full((40, 60, 3), 100, np.uint8)))
    labels = np.zeros((2, 40, 60), np.uint8)
    labels[0, 20:, :30] = 1
    annotation = {
        **{"id": 1, "image_id": 1, "category_id": 3, "iscrowd": 0, "area": 200},
        **{"bbox": [10, 5, 20, 10], "keypoints": [32, 30, 2, 50, 30, 2, 5, 35, 0]},
        "segmentation": [[40, 2, 56, 2, 56, 12, 40, 12]],
    }
    category = {"id": 3, "name": "c", "keypoints": ["p", "q", "r"], "skeleton": [[1, 2], [2, 3]]}
    images = [
        {"id": n, "file_name": f"{name}.png", "height": 40, "width": 60}
        for n, name in ((1, "a"), (2, "b"))
    ]
    whole = {"images": images, "annotations": [annotation], "categories": [category]}
    (tmp_path / "coco.json").write_text(json.dumps(whole))
    mean = {"normalize": {"mean": [0.5] * 3, "std": [0.2] * 3}}
    recipe = {"ops": [{"random_horizontal_flip": {"p": 1}}, {"resize": {"size": [40, 60]}}, mean]}
    objects = {"files": str(tmp_path / "coco.json"), "masks": "full"}
    options: dict[str, Any] = {"num_workers": 1, "batch_size": 2, "shuffle": False}
    with featherload.Loader(root, recipe, objects=objects, **options) as one:
        first, second = one.preview()
        # These images have no labels.
        assert first.label is None and first.caption() == "0 1 object"
        again = one.preview()[0].image
    assert first.caption().endswith("1 object") and second.caption().endswith("0 objects")
    assert (again == first.image).all()
    assert (second.image == 100).all()
    # The colour of label 3 is that of number 4 of Pascal VOC.
    color = [0, 0, 128]
    # The box is at 30 to 50 and 5 to 15 after the flip. Lines are three pixels wide.
    for x, y in [(30, 5), (40, 5), (50, 15), (30, 10), (49, 10), (31, 6)]:
        assert first.image[y, x].tolist() == color, (x, y)
    assert first.image[10, 40].tolist() == [100] * 3
    # The mask, half transparent, at 4 to 20.
    assert first.image[8, 12].tolist() == [50, 50, 114]
    assert first.image[8, 22].tolist() == [100] * 3
    # Keypoints that are labelled are white, and the line between them has the colour.
    assert first.image[30, 27].tolist() == first.image[30, 9].tolist() == [255] * 3
    assert first.image[30, 18].tolist() == color
    assert first.image[35, 54].tolist() == [100] * 3
    with featherload.Loader(
        root, recipe, objects={**objects, "masks": "quarter"}, **options
    ) as one:
        assert one.preview()[0].image[8, 12].tolist() == [50, 50, 114]
    of_masks = {"files": [labels[0], labels[1]]}
    with featherload.Loader(root, recipe, masks=of_masks, **options) as one:
        drawn = one.preview()[0].image
    assert drawn[30, 45].tolist() == [114, 50, 50]
    assert drawn[30, 20].tolist() == drawn[10, 45].tolist() == [100] * 3


def test_rotated_boxes_of_a_preview_have_four_corners() -> None:
    corners = np.array(corners_of([10, 20, 4, 2, 90]))
    assert np.allclose(corners, [[9, 22], [9, 18], [11, 18], [11, 22]])
    assert corners_of([1.0] * 8) == [(1.0, 1.0)] * 4
    assert corners_of([]) == []
    colors = {0: [0, 0, 0], 1: [128, 0, 0], 15: [192, 128, 128], 255: [224, 224, 192]}
    assert {label: color_of(label).tolist() for label in colors} == colors


def test_a_preview_leaves_the_loader_where_it_is(loader: Make) -> None:
    whole = digest(loader())
    one = loader()
    assert one.preview(3)[0].id == one.preview(3)[0].id
    assert digest(one) == whole
    # The epoch at hand: the second one now, which is in another order.
    second = one.preview(32)
    assert [row.id for row in second] == next(iter(one)).ids.tolist()


def test_previews_of_other_kinds(loader: Make, photos: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "some" / name).mkdir(parents=True)
        source = next((photos).glob("*/*.jpg"))
        (tmp_path / "some" / name / "good.jpg").symlink_to(source)
    (tmp_path / "some" / "a" / "bad.jpg").write_bytes(source.read_bytes()[:100])
    some: dict[str, Any] = {"src": tmp_path / "some", "on_error": "skip", "shuffle": False}
    seen = loader(**some, batch_size=4, pad_last=True).preview()
    assert [row.status.name for row in seen] == ["FAILED", "OK", "OK", "PADDING"]
    assert seen[0].fault and not seen[0].image.any() and "failed" in seen[0].caption()
    assert "bad.jpg" in str(seen) and seen[3].caption() == "padding"
    own = loader(**some, recipe="full", batch_size=3).preview()
    assert own[0].image.shape == (1, 1, 3) and own[1].image.std() > 5
    for op in ({"convert_color": {"to": "lab"}}, {"grayscale": {"num_output_channels": 1}}):
        (row,) = loader(**some, recipe={"ops": [*LEVELS["ops"], op]}, batch_size=3).preview()[1:2]
        assert row.image.shape == (224, 224, 3) and row.image.std() > 5
    rgb, bgr = (
        loader(**some, recipe={"ops": [{"decode": {"color": color}}, *LEVELS["ops"]]}).preview(2)[1]
        for color in ("rgb", "bgr")
    )
    assert (rgb.image == bgr.image).all()
    mix = {"ops": LEVELS["ops"], "mixing": {"ops": [{"mixup": {"alpha": 1.0}}], "num_classes": 8}}
    mixed = loader(recipe=mix).preview(4)
    assert "+" in mixed[0].label and "0." in mixed[0].label


def test_a_bar_counts_images_and_changes_nothing(loader: Make) -> None:
    need("tqdm")
    told = io.StringIO()
    one = loader(batch_size=48)
    ids = [batch.ids.tolist() for batch in one.progress(file=told, mininterval=0)]
    one.set_epoch(0)
    assert ids == [batch.ids.tolist() for batch in one]
    assert "epoch 0: 100%" in told.getvalue() and "256/256" in told.getvalue()
    assert "waits=" in told.getvalue()
    # Where it begins, whoever says so.
    epoch = iter(one)
    next(epoch)
    state = {**one.state_dict(), "epoch": 3}
    del epoch
    other = loader(batch_size=48)
    other.load_state_dict(state)
    told = io.StringIO()
    assert sum(1 for _ in other.progress(file=told, mininterval=0)) == 5
    assert "epoch 3" in told.getvalue() and "96/288" in told.getvalue()
    other.set_epoch(7)
    told = io.StringIO()
    assert sum(1 for _ in other.progress(file=told, mininterval=0)) == 6
    assert "epoch 7" in told.getvalue() and "48/288" in told.getvalue()


def test_a_bar_of_a_loop_that_is_left_is_closed(
    loader: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("tqdm")
    from featherload import _progress

    made = []
    tqdm = _progress.tqdm

    def remembered(**options: Any) -> Any:
        made.append(tqdm(**options))
        return made[-1]

    monkeypatch.setattr(_progress, "tqdm", remembered)
    for _ in loader().progress(file=io.StringIO()):
        break
    assert len(made) == 1 and made[0].disable


def test_without_tqdm_there_is_no_bar(loader: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert sum(1 for _ in loader().progress()) == 8


def test_a_build_tells_how_far_it_is(
    photos: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need("tqdm")
    with caplog.at_level(logging.WARNING, "featherload"):
        featherload.cache.build(photos, tmp_path / "loud")
        shown = capsys.readouterr().err
        assert "writing: 100%" in shown and "256/256" in shown
        featherload.cache.build(photos, tmp_path / "quiet", progress=False)
    assert capsys.readouterr().err == ""
    assert not caplog.records

    def broken(**_: Any) -> Any:
        raise OSError("no screen")

    monkeypatch.setattr("featherload._progress.tqdm", broken)
    with caplog.at_level(logging.ERROR, "featherload"):
        assert featherload.cache.build(photos, tmp_path / "dark")["samples"] == 256
    assert "progress cannot be shown" in caplog.text
