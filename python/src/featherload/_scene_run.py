"""The common part of ``Rays`` and ``Views``: a run over the images of a scene, step by step."""

from __future__ import annotations

import inspect
import json
import operator
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
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
from ._scene_arrays import FRAMEWORKS
from ._turn import Turn
from ._values import LAST, shown, whole

_Stream = TypeVar("_Stream", RayStream, ViewStream)
_Step = TypeVar("_Step")


class SceneRun(Iterator[_Step], Generic[_Stream, _Step]):
    """A run over the images of a scene, without end."""

    _things: ClassVar[str]
    """The kind of the run, which is the plural of its products."""
    _held_things: ClassVar[str] = "batches"

    framework: Framework
    split: Split
    """The split of the frames."""

    @classmethod
    def _described(
        cls, keywords: dict[str, Any]
    ) -> tuple[str, tuple[int, int], Scene | None, RawScene | None]:
        """All keywords except ``framework`` as JSON for the extension, rank and world size, and
        the scene if it was read already.
        """
        scene = keywords.pop("scene")
        read = scene if isinstance(scene, Scene) else None
        text, found = _options.run_text(cls._things, None if read else scene, keywords)
        return text, found, read, read._raw if read else None

    @classmethod
    def _planned(
        cls, keywords: inspect.BoundArguments, plan: Callable[[str, RawScene | None], str]
    ) -> ScenePlan:
        """The plan of a run with these keywords."""
        keywords.apply_defaults()
        said = dict(keywords.arguments)
        del said["framework"]
        text, _, _, raw = cls._described(said)
        return ScenePlan(json.loads(plan(text, raw)))

    def _start(self, stream: Callable[[str, RawScene | None], _Stream], **keywords: Any) -> None:
        """Starts the run with these keywords."""
        self._stream: _Stream | None = None
        framework = keywords.pop("framework")
        if framework not in FRAMEWORKS:
            raise ConfigError(
                f"framework {framework!r} is unknown: use one of {', '.join(FRAMEWORKS)}",
                option="framework",
            )
        self.framework, self.split = framework, keywords["split"]
        text, found, self._given_scene, raw = self._described(keywords)
        self._stream = stream(text, raw)
        self._pid = os.getpid()
        # Rank and world size of this process, unless the caller gave them.
        self._found_rank = found if keywords["rank"] is None else None
        # Threads may share the run.
        self._turn = Turn(self._things)
        self._warned = False
        self._steps = self._parts = self._first_parts = 0
        self._began = self._until = 0.0
        tell_warnings()

    def __iter__(self) -> Self:
        return self

    def _step_of(self, raw: Any) -> _Step:
        """Converts a step of the extension to the public class."""
        raise NotImplementedError

    def _next(self, at: int | None, *request: int) -> _Step:
        """The next step, or step ``at``. ``request``: for rays, their number."""
        stream, turn = self._open(), self._turn
        turn.check("next")
        take: Callable[..., Any] = stream.next
        raw: Any = None
        # Releasing the lock is a call, and Ctrl-C may arrive after any call.
        try:
            turn.here.call = "next"
            with turn.lock:
                self._check_rank()
                if at is not None and at != stream.step():
                    stream.go_to(at)
                raw = take(*request)
                tell_warnings()
                self._check_copied(raw, 3)
                step = self._step_of(raw)
                self._count(*request)
                stream.taken()
            return step
        except BaseException:
            # Ctrl-C, a warning that is an error, no memory: the next call returns this step.
            if raw is not None:
                with turn.lock:
                    stream.not_taken(raw)
            raise
        finally:
            turn.here.call = ""

    def _count(self, parts: int = 1) -> None:
        self._until = time.perf_counter()
        self._steps += 1
        self._parts += parts
        if self._steps == 1:
            self._began, self._first_parts = self._until, parts

    def _rate(self) -> float:
        """Rays or views per second, after the first step."""
        took = self._until - self._began
        return (self._parts - self._first_parts) / took if took else 0.0

    @property
    def step(self) -> int:
        """The number of the next step."""
        return self._open().step()

    def go_to(self, step: int) -> None:
        """Sets the next step."""
        number = whole("step", step, 0, LAST)
        # Before the lock: in a forked copy another thread may hold it for ever.
        stream = self._open()
        self._turn.move("go_to", lambda: stream.go_to(number))

    def state_dict(self) -> dict[str, Any]:
        """The position of the run: the next step, and everything except the rank on which its
        result depends. It has only numbers and texts.
        """
        state: dict[str, Any] = json.loads(self._open().state())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues at the position of ``state``, with any number of workers, on any rank.

        Raises ``ConfigError`` if ``state`` is not a state, or belongs to another scene, seed, split
        or size. The text names the difference.
        """
        try:
            # Numbers of NumPy and torch are numbers.
            text = json.dumps(dict(state), default=operator.index)
        except (TypeError, ValueError):
            raise ConfigError(
                f"the state is not one that state_dict gave: {shown(state)}: give its result",
                option="state",
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
        """Ends the workers now. Arrays that were returned stay readable."""
        if self._stream is not None and os.getpid() == self._pid:
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self._things.capitalize()} have processes and cannot go to another process: make "
            "them there"
        )

    def _open(self) -> _Stream:
        if self._stream is None:
            raise ConfigError(f"the {self._things} did not start: make them again")
        if os.getpid() != self._pid:
            raise WorkerError(
                f"{self._things} cannot be used in a forked copy of the process that made them: "
                "make them there, or start that process by spawn"
            )
        return self._stream

    def _check_rank(self) -> None:
        """Raises an error if the rank in torch.distributed is another one: ranks could get the same
        steps.
        """
        group, found = _options.process_group(), self._found_rank
        if group is None or found is None:
            return
        if group != found:
            raise ConfigError(
                f"this process is rank {group[0]} of {group[1]} in torch.distributed, but the "
                f"{self._things} were made for rank {found[0]} of {found[1]}: make them after "
                "init_process_group, or give rank",
                option="rank",
            )

    def _check_copied(self, raw: RawRays | RawView, calls: int) -> None:
        """Warns once if the step is a copy. ``calls``: calls below the caller's line."""
        if not raw.copied or self._warned or self._stream is None:
            return
        self._warned = True
        held, depth = self._stream.held()
        warnings.warn(
            f"{held} {self._held_things} are held and depth is {depth}: further "
            f"{self._held_things} are copied, which takes time and memory. Drop them earlier, or "
            "give "
            f"depth={2 * (depth or 1)}",
            RuntimeWarning,
            stacklevel=calls + 1,
        )
