"""Translates tables with old names of options to the present names."""

import re

FLAG = r"(?<![\w-])--%s(?![\w-])"


def of_today(value):
    """The table with the present names of options in its command lines and error texts."""
    if isinstance(value, dict):
        return {of_today(name): of_today(item) for name, item in value.items()}
    if isinstance(value, list):
        return [of_today(item) for item in value]
    return _text(value) if isinstance(value, str) else value


def _text(text):
    text = re.sub(r"--rank (\d+)/(\d+)", r"--rank \1 --world-size \2", text)
    # `rays` had no --world-size, and its rays do not depend on the number of ranks.
    text = re.sub(r"--rank (\d+)(?= &&|$| --(?!world))", _with_world, text)
    text = re.sub(r"--max-scratch (\d+)(?= |$)", r"--max-scratch \1M", text)
    for old, new in (("batch", "batch-size"), ("workers", "num-workers"), ("world", "world-size")):
        text = re.sub(FLAG % old, f"--{new}", text)
    return text


def _with_world(found):
    return f"{found[0]} --world-size {int(found[1]) + 1}"
