"""Reports of the tools. They print as tables, and notebooks draw them."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ._featherload import printable

_MIB = 1 << 20


def _mib(count: float) -> str:
    return f"{count / _MIB:,.1f} MiB"


@dataclass(frozen=True)
class Report(Mapping[str, Any]):
    """The report of a tool. ``report["name"]`` has the values that its ``--json`` prints. ``print``
    and notebooks show the main values as a table.
    """

    data: Mapping[str, Any]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Column heads, and rows."""
        flat = [[k, str(v)] for k, v in self.data.items() if not isinstance(v, (dict, list))]
        return ["", ""], flat

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __str__(self) -> str:
        heads, rows = self.table()
        lines = [heads, *rows] if any(heads) else rows
        lines = [[printable(cell) for cell in line] for line in lines]
        widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
        cells = (zip(line, widths, strict=True) for line in lines)
        return "\n".join("  ".join(c.ljust(w) for c, w in line).rstrip() for line in cells)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads, rows = self.table()

        def line(cells: list[str], tag: str) -> str:
            shown = (html.escape(printable(cell)) for cell in cells)
            return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in shown) + "</tr>"

        head = line(heads, "th") if any(heads) else ""
        return "<table>" + head + "".join(line(row, "td") for row in rows) + "</table>"


class Plan(Report):
    """The memory plan of a run."""

    @property
    def total_bytes(self) -> int:
        """Upper limit of the PSS of all processes together, in bytes."""
        return int(self["memory"]["total_bytes"])

    @property
    def device_bytes(self) -> int:
        """Memory on the device, without its context, in bytes."""
        return int(self["memory"]["device_bytes"])

    @property
    def batches(self) -> int | None:
        """Batches of an epoch on this rank; None without a data set."""
        batches: int | None = self.get("batches")
        return batches

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Column heads, and rows."""
        memory = self["memory"]
        rows = []
        if self.batches is not None:
            rows += [
                ["samples", f"{self['samples']:,}"],
                ["batches", f"{self.batches:,} of {memory['batch']}"],
            ]
        rows += [
            ["batch buffer", f"{_mib(memory['ring_bytes'])}, {memory['depth']} batches"],
            ["each worker", f"{_mib(memory['worker_bytes'])}, {memory['workers']} of them"],
            ["all processes", f"{_mib(self.total_bytes)} at most"],
        ]
        limit = self.get("limit")
        if limit:
            rows.append(["available", f"{_mib(limit['bytes'])}, {limit['by']}"])
        if self.device_bytes:
            rows.append(["device", _mib(self.device_bytes)])
        return ["", ""], rows


class ScenePlan(Report):
    """The memory plan of a run over the images of a scene."""

    @property
    def total_bytes(self) -> int:
        """Upper limit of the PSS of all processes together, in bytes."""
        return int(self["memory"]["total_bytes"])

    @property
    def device_bytes(self) -> int:
        """Memory on the device, without its context, in bytes."""
        return int(self["memory"]["device_bytes"])

    @property
    def in_file(self) -> bool:
        """Whether decoded images would be kept in a file, because they do not fit in memory."""
        return bool(self["store"]["in_file"])

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Column heads, and rows."""
        memory, store = self["memory"], self["store"]
        worker, workers = memory["worker"]["total_bytes"], memory["workers"]
        place = f"in a file in {store['folder']}" if self.in_file else "in memory"
        rows = [
            ["images", f"{self['images']:,}"],
            ["decoded images", f"{_mib(store['bytes'])}, {place}"],
            ["batch buffer", f"{_mib(memory['ring_bytes'])}, {memory['depth']} slots"]
            if not self.device_bytes
            else ["messages to workers", _mib(memory["ring_bytes"])],
            ["each worker", f"{_mib(worker)}, {workers} of them"],
            ["all processes", f"{_mib(self.total_bytes)} at most"],
        ]
        limit = self.get("limit")
        if limit:
            rows.append(["available", f"{_mib(limit['bytes'])}, {limit['by']}"])
        if self.device_bytes:
            rows.append(["device", _mib(self.device_bytes)])
        return ["", ""], rows


class IndexReport(Report):
    """The contents of a data set."""

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(self["samples"])

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self["classes"])

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Column heads, and rows."""
        headers = self["headers"]
        rows = [["samples", f"{self.samples:,}"], ["classes", f"{self.classes:,}"]]
        columns = self.get("columns")
        if columns:
            labels = ", ".join(columns["labels"]) or "none"
            image = columns.get("image")
            place = f"paths {columns['path']}" if image is None else f"images {image}"
            rows.append(["columns", f"{place}, labels {labels}"])
            available = [
                f"{of['name']} ({of['type']})" if "type" in of else of["name"]
                for of in columns.get("available", ())
            ]
            if available:
                rows.append(["available", ", ".join(available)])
        if headers:
            formats = ", ".join(f"{n:,} {name}" for name, n in headers["formats"].items())
            rows += [
                ["formats", formats],
                ["unreadable", f"{headers['unreadable']:,}"],
            ]
            if headers["sizes"]:
                mean = headers["sizes"]["mean_megapixels"]
                rows.append(["mean size", f"{mean:.2f} megapixels"])
        objects = self.get("objects")
        if objects:
            counts = sorted(objects["categories"], key=lambda one: -one["objects"])
            most = [f"{one['objects']:,} {one['name']}" for one in counts[:5]]
            if len(counts) > 5:
                most.append(f"{len(counts) - 5:,} more categories")
            rows.append(["objects", f"{objects['objects']:,}: " + ", ".join(most)])
            empty = objects["images_without_objects"]
            if empty:
                rows.append(["without objects", f"{empty:,} images"])
        rows.append(["left out", f"{self['skipped']:,}"])
        for reason, count in self["left_out"].items():
            named = ", ".join(self["examples"].get(reason, ()))
            rows.append(["", f"{count:,} x {reason} (such as {named})"])
        return ["", ""], rows


class SceneReport(Report):
    """The contents of a scene."""

    @property
    def frames(self) -> int:
        """The number of frames: images with a pose."""
        return int(self["frames"])

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Column heads, and rows."""
        splits = ", ".join(f"{count:,} {name}" for name, count in self["splits"].items())
        rows = [["format", self["format"]], ["frames", f"{self.frames:,}: {splits}"]]
        for camera in self["cameras"][:3]:
            lens = camera["lens"] if isinstance(camera["lens"], str) else next(iter(camera["lens"]))
            size = f"{camera['width']} x {camera['height']}"
            rows.append(["camera", f"{size}, {lens}, {camera['frames']:,} frames"])
        more = len(self["cameras"]) - 3
        if more > 0:
            rows.append(["", f"and {more:,} more"])
        rows += [[name, f"{self[name]:,} frames"] for name in ("masks", "depths") if self[name]]
        if self["times"]:
            rows.append(["times", f"{self['times']:,} frames"])
        if self["rolling_shutters"]:
            rows.append(["rolling shutter", f"{self['rolling_shutters']:,} frames"])
        rows += [
            ["points", "yes" if self["has_points"] else "none"],
            ["decoded", _mib(3 * self["pixels"])],
            ["missing", f"{self['missing']:,} images"],
            *(
                [name, f"missing: {self[f'missing_{name}']:,}"]
                for name in ("masks", "depths")
                if self[f"missing_{name}"]
            ),
        ]
        if self["missing_points"]:
            rows.append(["points", f"missing: {self['missing_points']}"])
        if len(self["models"]) > 1:
            for model in self["models"]:
                images = model["images"]
                count = "cannot be read" if images is None else f"{images:,} images"
                read = ", read" if model["is_read"] else ""
                rows.append(["model", f"{model['folder']}: {count}{read}"])
        rows += [["note", note] for note in self["notes"]]
        return ["", ""], rows


class Doctor(Report):
    """The findings about this machine."""

    @property
    def ok(self) -> bool:
        """Whether the machine has everything that a run needs."""
        return not self["broken_promises"]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Column heads, and rows."""
        found = self["findings"]
        return (
            ["", "what", "seen", "meaning"],
            [[str(f[k]) for k in ("verdict", "name", "value", "meaning")] for f in found],
        )


class Rss(Report):
    """Memory of all processes for each number of workers."""

    @property
    def slope_mib_per_worker(self) -> float:
        """MiB that each further worker takes, without the batch buffer, by least squares."""
        return float(self["slope_mib_per_worker"])

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Column heads, and rows."""
        rows = self["rows"]
        heads = [key for key, value in rows[0].items() if isinstance(value, (int, float))]
        return heads, [[f"{row[head]:,.4g}" for head in heads] for row in rows]


class CacheReport(Report):
    """A cache: what was built, found or verified."""

    @property
    def ok(self) -> bool:
        """Whether the cache is complete and undamaged."""
        return bool(self.data.get("complete", True)) and not self.data.get("findings")
