"""Memory of processes, as the system reports it."""

from __future__ import annotations

import os


def private_bytes(pid: int) -> int:
    """Memory of a process that it does not share. 0 if the process has ended."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            _, resident, shared, *_ = file.read().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
