"""The rule of captions of a dataset, and the texts that it is for. Reads no file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from .._captions import Captions
from ._config import DEFAULTS, Section, difference, shared_value
from ._entries import Entry


@dataclass(frozen=True)
class _TagRule:
    """The options of a subset that say which tags of its captions move."""

    moves: bool
    keep: int
    keep_separator: str | None

    @classmethod
    def of(cls, subset: Section) -> _TagRule:
        if not _moves(subset):
            return cls(False, 0, None)
        keep = max(subset.find("keep_tokens"), 0)
        return cls(True, keep, subset.find("keep_tokens_separator") or None)


def _moves(subset: Section) -> bool:
    """Whether tags of its captions are shuffled or dropped."""
    return bool(subset.find("shuffle_caption")) or subset.find("caption_tag_dropout_rate") > 0


def _whole_caption(subset: Section, caption: str) -> list[str]:
    """The caption with prefix and suffix. Its lines, of which one is chosen in each epoch."""
    if prefix := subset.find("caption_prefix"):
        caption = f"{prefix} {caption}"
    if suffix := subset.find("caption_suffix"):
        caption = f"{caption} {suffix}"
    lines = caption.split("\n")
    return lines if subset.find("enable_wildcard") else lines[:1]


def caption_rule(entries: Sequence[Entry]) -> tuple[Captions, list[str] | list[list[str]]]:
    """The rule of captions, and the texts of all images that it is for."""
    texts = [_whole_caption(entry.subset, entry.caption) for entry in entries]
    subsets = list({id(entry.subset): entry.subset for entry in entries}.values())
    options: dict[str, Any] = {}
    rate = shared_value(subsets, "caption_dropout_rate")
    if rate > 0:
        options["drop"] = min(rate, 1)
    moving = [subset for subset in subsets if _moves(subset)]
    options |= _separators(subsets, moving, entries, texts)
    if moving:
        options["shuffle"] = bool(shared_value(moving, "shuffle_caption"))
        options["tag_drop"] = min(max(shared_value(moving, "caption_tag_dropout_rate"), 0), 1)
        separator = options.get("separator", DEFAULTS["caption_separator"])
        options |= _KeptTags(subsets, separator).mark(entries, texts)
    if not any(subset.find("enable_wildcard") for subset in subsets):
        return Captions("caption", **options), [lines[0] for lines in texts]
    for entry, lines in zip(entries, texts, strict=True):
        if not entry.subset.find("enable_wildcard"):
            # Double braces stand for one.
            lines[:] = [line.replace("{", "{{").replace("}", "}}") for line in lines]
    return Captions("caption", choose="random", wildcards=True, **options), texts


def _separators(
    subsets: Sequence[Section],
    moving: Sequence[Section],
    entries: Sequence[Entry],
    texts: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """The separator of tags, and the one inside of tags."""
    with_secondary = [subset for subset in subsets if subset.find("secondary_separator")]
    splitting = [subset for subset in subsets if subset in moving or subset in with_secondary]
    options: dict[str, Any] = {}
    if splitting:
        options["separator"] = shared_value(splitting, "caption_separator")
    if not with_secondary:
        return options
    secondary = options["secondary_separator"] = shared_value(with_secondary, "secondary_separator")
    for entry, lines in zip(entries, texts, strict=True):
        has_it = any(secondary in line for line in lines)
        if has_it and not entry.subset.find("secondary_separator"):
            raise difference(
                with_secondary[0],
                entry.subset,
                "secondary_separator",
                f", and the caption of {entry.path} has {secondary}",
            )
    return options


class _KeptTags:
    """The tags that keep their places, where subsets keep different ones.

    A rule of captions has one ``keep``. So one group of subsets has it, and captions of the others
    get a mark after the tags that stay: ``keep_separator`` of the rule.
    """

    def __init__(self, subsets: Sequence[Section], separator: str) -> None:
        self._subsets, self._separator = subsets, separator
        self._rules = {id(subset): _TagRule.of(subset) for subset in subsets}

    def mark(self, entries: Sequence[Entry], texts: Sequence[list[str]]) -> dict[str, Any]:
        """The options of the rule. Changes the texts."""
        rules = list(dict.fromkeys(self._rules.values()))
        # Groups that have a caption which a mark would change, and the first such image.
        fixed: dict[_TagRule, Entry] = {}
        if len(rules) > 1:
            for entry, lines in zip(entries, texts, strict=True):
                rule = self._rules[id(entry.subset)]
                if not all(self._can_be_marked(line, rule, entry.subset) for line in lines):
                    fixed.setdefault(rule, entry)
        unmarked = next((rule for rule in fixed if rule.moves), None)
        unmarked = unmarked or next(rule for rule in rules if rule.moves)
        self._check(unmarked, {rule: entry for rule, entry in fixed.items() if rule != unmarked})
        options: dict[str, Any] = {}
        if unmarked.keep:
            options["keep"] = unmarked.keep
        if len(rules) == 1:
            if unmarked.keep_separator is not None:
                options["keep_separator"] = unmarked.keep_separator
            return options
        mark = unmarked.keep_separator or _unused_character(texts)
        for entry, lines in zip(entries, texts, strict=True):
            rule = self._rules[id(entry.subset)]
            if rule == unmarked:
                continue
            for at, line in enumerate(lines):
                parts = self._parts(line, rule)
                if any(mark in part for part in parts):
                    self._check(unmarked, {rule: entry})
                lines[at] = mark.join(parts)
        return {**options, "keep_separator": mark}

    def _can_be_marked(self, line: str, rule: _TagRule, subset: Section) -> bool:
        """Whether the caption stays the same with a mark in it."""
        if subset.find("enable_wildcard") and ("{" in line or "}" in line):
            # A wildcard may have separators.
            return False
        if rule.keep_separator is not None and rule.keep_separator in line:
            return True
        tags = [tag.strip() for tag in line.strip().split(self._separator)]
        if not rule.moves:
            # Tags are joined with ", " and without empty ones.
            return not line.strip() or ("" not in tags and ", ".join(tags) == line.strip())
        return tags == [""] or "" not in tags

    def _parts(self, line: str, rule: _TagRule) -> list[str]:
        """The tags that stay, those that move, and the last ones that stay."""
        if not rule.moves:
            return [line, ""]
        if rule.keep_separator is not None and rule.keep_separator in line:
            return line.split(rule.keep_separator, 2)
        tags = line.strip().split(self._separator)
        return [self._separator.join(part) for part in (tags[: rule.keep], tags[rule.keep :])]

    def _check(self, unmarked: _TagRule, others: Mapping[_TagRule, Entry]) -> None:
        for rule, entry in others.items():
            one = next(s for s in self._subsets if self._rules[id(s)] == unmarked)
            keys = ["keep_tokens_separator", "keep_tokens"]
            if not rule.moves:
                keys = ["shuffle_caption", "caption_tag_dropout_rate"]
            key = next((key for key in keys if one.find(key) != entry.subset.find(key)), keys[-1])
            raise difference(
                one,
                entry.subset,
                key,
                f", and the caption of {entry.path} has wildcards, empty tags, the other separator "
                "or tags without a blank between them",
            )


def _unused_character(texts: Iterable[Iterable[str]]) -> str:
    """A character for private use that no text has."""
    used: set[str] = set()
    for text in chain.from_iterable(texts):
        used.update(text)
    return next(character for character in map(chr, range(0xE000, 0xF900)) if character not in used)


# Sizes and operations.
