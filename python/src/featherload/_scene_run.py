"""What ``Rays`` and ``Views`` share: a run over the images of a scene, step by step."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from . import _options
from ._batch import Framework
from ._errors import ConfigError, WorkerError
from ._featherload import RawRays, RawScene, RawView, RayStream, ViewStream, tell_warnings
from ._processes import private_bytes
from ._reports import ScenePlan
from ._scene import Frame, Scene, Split
from ._turn import Turn
from ._values import LAST, shown, whole

_Stream = TypeVar("_Stream", RayStream, ViewStream)


class SceneRun(Generic[_Stream]):
    """A run over the images of a scene."""

    _things: ClassVar[str]
    """What a step gives, many of them."""
    _held_things: ClassVar[str] = "batches"

    framework: Framework
    split: Split
    """The frames' split."""

    @staticmethod
    def _planned(
        keywords: dict[str, Any],
        text_of: Callable[[Any, Mapping[str, Any]], tuple[str, object]],
        plan: Callable[[str, RawScene | None], str],
    ) -> ScenePlan:
        """The plan of a run with all these keywords."""
        del keywords["framework"]
        scene = keywords.pop("scene")
        read = scene if isinstance(scene, Scene) else None
        text, _ = text_of(None if read else scene, keywords)
        return ScenePlan(json.loads(plan(text, read._raw if read else None)))

    def _begin(
        self,
        stream: _Stream,
        given_scene: Scene | None,
        framework: Framework,
        split: Split,
        rank: tuple[int, int | None] | None,
    ) -> None:
        """``rank``: that of this process, where nobody gave one, and the number of ranks that it
        depends on.
        """
        self._stream: _Stream | None = stream
        self._pid = os.getpid()
        self._given_scene = given_scene
        self.framework = framework
        self.split = split
        self._found_rank = rank
        # Threads may share the run.
        self._turn = Turn(self._things)
        self._warned = False
        tell_warnings()

    @property
    def step(self) -> int:
        """The step that comes next."""
        return self._open().step()

    def go_to(self, step: int) -> None:
        """The next step is ``step``."""
        number = whole("step", step, 0, LAST)
        # Before the lock, which another thread may hold for ever in a forked copy.
        stream = self._open()
        self._turn.move("go_to", lambda: stream.go_to(number))

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands: the step that comes next, and what it depends on but the rank.
        Numbers and texts.
        """
        state: dict[str, Any] = json.loads(self._open().state())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where ``state`` stands, with any number of workers, on any rank.

        Raises ``ConfigError`` for what is no state, and for one of another scene, seed, split or
        size: the text names what differs.
        """
        try:
            # Numbers of NumPy and torch are numbers.
            text = json.dumps(dict(state), default=operator.index)
        except (TypeError, ValueError):
            raise ConfigError(
                f"the state is not one that state_dict gave: {shown(state)}", option="state"
            ) from None
        stream = self._open()
        self._turn.move("load_state_dict", lambda: stream.resume(text))

    @cached_property
    def images(self) -> list[Path]:
        """The files of the images, in the order of their numbers."""
        return [Path(path) for path in self._open().images()]

    @cached_property
    def scene(self) -> Scene:
        """The scene."""
        return self._given_scene or Scene._of(self._open().scene())

    @cached_property
    def frames(self) -> list[Frame]:
        """The frames of the split, in the order of their numbers."""
        return [self.scene.frames[number] for number in self.scene.frames_of(self.split)]

    def _stats(self) -> dict[str, Any]:
        """The library's report, with ``memory_bytes``."""
        report: dict[str, Any] = json.loads(self._open().report())
        tell_warnings()
        processes = [pid for pid in (report["coordinator"], *report["workers"]) if pid is not None]
        memory = report["ring_bytes"] + sum(private_bytes(pid) for pid in processes)
        return {"memory_bytes": memory, **report}

    def close(self) -> None:
        """Ends the workers now. What was given stays readable."""
        if self._stream is not None and os.getpid() == self._pid:
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self._things.capitalize()} have processes of their own and cannot go to another "
            "process: make them there"
        )

    def _open(self) -> _Stream:
        if self._stream is None:
            raise ConfigError(f"the {self._things} were never started")
        if os.getpid() != self._pid:
            raise WorkerError(
                f"{self._things} cannot be used in a forked copy of the process that made them: "
                "make them there, or start that process by spawn"
            )
        return self._stream

    def _check_rank(self) -> None:
        """Processes of one rank would all be given the same."""
        group, found = _options.process_group(), self._found_rank
        if group is None or found is None:
            return
        rank, world = found
        if group[0] != rank or world not in (None, group[1]):
            raise ConfigError(
                f"this process is rank {group[0]} of {group[1]} by torch.distributed, and the "
                f"{self._things} were made for rank {rank}"
                f"{'' if world is None else f' of {world}'}: make them behind init_process_group, "
                f"or give rank",
                option="rank",
            )

    def _check_copied(self, raw: RawRays | RawView, calls: int) -> None:
        """``calls``: between the caller's line and this."""
        if not raw.copied or self._warned or self._stream is None:
            return
        self._warned = True
        held, depth = self._stream.held()
        warnings.warn(
            f"{held} {self._held_things} are held and depth is {depth}: further ones come as "
            f"copies, which takes time and memory. Drop {self._held_things} earlier, or give "
            f"depth={2 * (depth or 1)}",
            RuntimeWarning,
            stacklevel=calls + 1,
        )
