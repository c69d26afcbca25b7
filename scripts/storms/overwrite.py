"""Overwrites control words of a running ring at random, as a faulty decoder could. Every word
before the rows is a target, also the words that workers cannot write."""

import os
import re
import struct
import time

from runs import Run
from sets import BATCH, DEPTH, SIDE

PAGE = 4096
WORD = 8
MASK = (1 << 64) - 1


def storm_overwrite(world, dice):
    """control words of the ring are overwritten, one or many"""
    words = world.bench(world.epochs_for(0.2))
    usual = world.usual(words)
    run = Run(world, words)
    control = None
    while control is None and run.runs():
        control = Control.of(run.child.pid)
    if control is None:
        return run.finish(usual)
    run.sleep(dice.uniform(0, usual * 0.9))
    written = 0
    try:
        for _ in range(dice.choice([1, 1, 1, 1, 2, 8, 64])):
            written += control.overwrite(dice)
            run.note()
            if dice.random() < 0.3:
                time.sleep(dice.uniform(0, 0.01))
    except OSError:
        # The run has ended meanwhile.
        pass
    finally:
        control.close()
    outcome = run.finish(usual)
    outcome.count("words overwritten", written)
    outcome.problems = [f"{p} [{control.last}]" for p in outcome.problems]
    return outcome


class Control:
    """The words before the rows, through the memory of the process that made the ring.

    This code knows one fact of the layout: the rows are the end of the ring, a whole number
    of pages for each slot. If that changes, it overwrites rows, and digests are wrong.
    """

    def __init__(self, memory, base, length):
        self.memory, self.base, self.length = memory, base, length
        self.last = ""

    @classmethod
    def of(cls, pid):
        """The control words of this process, or None when it has no ring yet."""
        parts = []
        try:
            with open(f"/proc/{pid}/maps") as maps:
                for line in maps:
                    if "memfd:featherload-ring" in line:
                        start, end = (int(n, 16) for n in re.match(r"(\w+)-(\w+)", line).groups())
                        parts.append((start, end))
            if not parts:
                return None
            rows = -(-BATCH * SIDE * SIDE * 3 // PAGE) * PAGE * DEPTH
            start, end = parts[0][0], parts[-1][1]
            # Parts with different rights are separate mappings, which must be adjacent.
            if sum(e - s for s, e in parts) != end - start or end - start <= rows:
                raise SystemExit(
                    f"storm: the ring's mappings {parts} do not fit rows of {rows} bytes: "
                    "update Control.of"
                )
            memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
        except (FileNotFoundError, ProcessLookupError):
            return None
        return cls(memory, start, end - start - rows)

    def close(self):
        os.close(self.memory)

    def get(self, at):
        return struct.unpack("<Q", self.read(at, WORD))[0]

    def read(self, at, length):
        found = os.pread(self.memory, length, self.base + at)
        if len(found) < length:
            raise ProcessLookupError
        return found

    def put(self, at, bytes_):
        os.pwrite(self.memory, bytes_, self.base + at)

    def in_use(self):
        whole = self.read(0, self.length)
        zero = bytes(WORD)
        return [at for at in range(0, len(whole), WORD) if whole[at : at + WORD] != zero]

    def overwrite(self, dice):
        """Makes one change, and returns the number of words that it wrote."""
        everywhere = range(0, self.length, WORD)
        used = self.in_use()
        at = dice.choice(used) if used and dice.random() < 0.6 else dice.choice(everywhere)
        old = self.get(at)
        how = dice.choice(("value", "value", "value", "copy", "line", "zeros"))
        if how == "value":
            new = dice.choice(
                [0, 1, 2, 3, dice.getrandbits(64), old ^ 1 << dice.randrange(64), old + 1, MASK]
            )
            new = [new & MASK]
        elif how == "copy" and used:
            new = [self.get(dice.choice(used))]
        else:
            count = min(8, (self.length - at) // WORD)
            new = [dice.getrandbits(64) if how == "line" else 0 for _ in range(count)]
        self.put(at, struct.pack(f"<{len(new)}Q", *new))
        self.last = f"word {at // WORD} of {self.length // WORD}, {old:#x} to {new[0]:#x}, {how}"
        return len(new)
