"""Processes of a run, as the system sees them."""

from __future__ import annotations

import os


def private_bytes(pid: int) -> int:
    """What a process has beside memory that it shares; 0 of one that ended."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            _, resident, shared, *_ = file.read().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
