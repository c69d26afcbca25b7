"""Captions: the rule of a loader, and the captions of a batch.

The library makes captions. Never in here: random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from numbers import Real
from threading import RLock
from typing import Any, Literal

from ._columns import HeldColumns
from ._errors import ConfigError
from ._featherload import RawBatch
from ._item_feed import AskedItems
from ._items import Items
from ._values import shown, whole, yes_or_no

_CHOICES = {"choose": ("first", "random"), "missing": ("error", "empty")}
_TEXTS = ("column", "prefix", "suffix", "separator", "keep_separator", "secondary_separator")
_FLAGS = ("lines", "wildcards", "shuffle")
_PROBABILITIES = ("drop", "tag_drop")
_UNREAD = object()


@dataclass(frozen=True)
class Captions:
    """How a column of texts becomes one caption for each row, for ``Loader(captions=...)``.

    ::

        captions = featherload.Captions("caption", choose="random", drop=0.1)

    Meaning and order of the steps are those of kohya's sd-scripts. Random numbers follow from seed,
    epoch and position of a row, so pixels keep theirs. ``docs/columns.md`` describes the steps.

    Raises ``ConfigError`` for a value that a field cannot have. It names the field.
    """

    column: str
    """A column of texts or of lists of texts, or text files beside images, such as ``".txt"``."""
    _: KW_ONLY
    choose: Literal["first", "random"] = "first"
    """Which of several captions a row gets."""
    lines: bool = False
    """Each line of a text is a caption. Blank lines are none."""
    missing: Literal["error", "empty"] = "error"
    """What a row without a text gets: an error that names the sample, or an empty text."""
    prefix: str = ""
    """Text before each caption, with a blank between them. It is a part of the first tag."""
    suffix: str = ""
    """Text after each caption, with a blank between them. It is a part of the last tag."""
    drop: float = 0.0
    """Probability of an empty caption, 0 to 1."""
    wildcards: bool = False
    """``{a|b}`` becomes one of its parts. ``{{`` and ``}}`` are braces."""
    shuffle: bool = False
    """Tags of a caption are in a random order."""
    keep: int = 0
    """The first tags of this number keep their places, and are not dropped."""
    tag_drop: float = 0.0
    """Probability that a tag is dropped, 0 to 1."""
    separator: str = ","
    """What separates the tags of a column. Tags of a caption have ``", "`` between them."""
    keep_separator: str | None = None
    """If a caption has this text, tags before it are kept in place of the first ``keep``. Tags
    after a second one are kept, too."""
    secondary_separator: str | None = None
    """Stands inside of one tag for ``separator``, which replaces it in the end."""
    map: Callable[[list[str]], Any] | None = None
    """A function on the captions of a whole batch, such as a tokenizer. ``batch.captions`` is what
    it returns. It runs once for a batch, when ``batch.captions`` is read."""

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                values = " or ".join(map(repr, known))
                raise _refused(name, getattr(self, name), f"is unknown: give {values}")
        for name in _TEXTS:
            value = getattr(self, name)
            if value is None and name in ("keep_separator", "secondary_separator"):
                continue
            if not isinstance(value, str):
                raise _refused(name, value, "is no text: give one")
            if not value and name not in ("prefix", "suffix"):
                raise _refused(name, value, "is empty: give a text")
            if not _is_unicode(value):
                raise _refused(name, value, "is no Unicode: give another text")
        for name in _FLAGS:
            yes_or_no(name, getattr(self, name))
        whole("keep", self.keep, 0, (1 << 32) - 1)
        for name in _PROBABILITIES:
            value = getattr(self, name)
            if not _is_probability(value):
                raise _refused(name, value, "is no probability: give 0 to 1, such as 0.1")
            object.__setattr__(self, name, float(value))
        if self.map is not None and not callable(self.map):
            raise _refused("map", self.map, "cannot be called: give a function of a list of texts")

    def _options(self) -> dict[str, Any]:
        """The fields as options of the library."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["map"]
        return {name: value for name, value in values.items() if value is not None}


def _refused(name: str, value: Any, why: str) -> ConfigError:
    return ConfigError(f"captions: {name} {shown(value)} {why}", option=name)


def _is_probability(value: Any) -> bool:
    is_number = issubclass(type(value), Real) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1


def _is_unicode(value: str) -> bool:
    """Whether it has no half of a character, which no file has."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked(captions: Any) -> Captions | None:
    """The rule of ``captions=``: a name alone is a column."""
    if captions is None or isinstance(captions, Captions):
        return captions
    if isinstance(captions, str):
        return Captions(captions)
    raise ConfigError(
        f"captions is {shown(captions)}: give a column, such as 'caption', or "
        "featherload.Captions('caption', drop=0.1)",
        option="captions",
    )


class BatchCaptions:
    """The captions of one batch, and of its copies on other devices. They are made once.

    ``held``: the columns of the loader that Python has.
    """

    def __init__(self, rule: Captions, held: HeldColumns | None) -> None:
        self._rule, self._held = rule, held
        self._made: Any = _UNREAD
        # Threads may read captions at the same time.
        self._lock = RLock()

    def read(self, raw: RawBatch) -> Any:
        with self._lock:
            if self._made is _UNREAD:
                captions = self._texts(raw)
                self._made = captions if self._rule.map is None else self._rule.map(captions)
            return self._made

    def _texts(self, raw: RawBatch) -> list[str]:
        column = self._rule.column
        if self._held is None or not self._held.has(column):
            return raw.captions()
        values = texts(column, self._held.values(column, raw))
        try:
            return raw.captions(values)
        except TypeError:
            # A half of a character, or a list with other values.
            raise ConfigError(
                f"captions: column {column!r} has a value that is no Unicode text: clean its texts",
                option="captions",
            ) from None


def texts(column: str, values: Any) -> list[Any]:
    """The values of a column that Python has, which must be texts or lists of texts."""
    found = values if isinstance(values, list) else None
    others = [value for value in found or () if not isinstance(value, (str, list, type(None)))]
    if found is not None and not others:
        return found
    what = f"has {shown(others[0])}" if others else "has numbers"
    raise ConfigError(
        f"captions: column {column!r} {what}, and captions are made of texts: name a column of "
        "texts or of lists of texts, and read this one with columns",
        option="captions",
    )


def held_columns(
    items: Items | AskedItems | None,
    names: Sequence[str],
    rule: Captions | None,
    stored: Collection[str],
) -> HeldColumns | None:
    """The columns that Python has: of samples that Python lists ``names``, which batches have, and
    that of captions. Text files beside the images are not among them. ``stored``: names of stored
    values, which are opened later. None if the library reads all columns.
    """
    if items is None:
        return HeldColumns({}, names) if stored else None
    wanted = [name for name in names if name not in stored]
    if rule is not None and rule.column not in wanted:
        wanted.append(rule.column)
    known = items._column_names()
    columns = items._open([n for n in wanted if n in known or not n.startswith(".")])
    if rule is not None and rule.column in columns:
        texts(rule.column, columns[rule.column].read([0]))
    return HeldColumns(columns, names)


def library(
    names: Sequence[str] | None,
    rule: Captions | None,
    held: HeldColumns | None,
    stored: Collection[str],
) -> dict[str, Any]:
    """The keywords ``columns`` and ``captions`` for the library, without the columns that Python
    holds.
    """
    options = None if rule is None else rule._options()
    if held is not None:
        names = [name for name in names or () if not held.has(name) and name not in stored]
        if options is not None and held.has(options["column"]):
            del options["column"]
    return {"columns": names, "captions": options}
