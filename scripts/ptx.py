#!/usr/bin/env python3
"""Compiles each kernel in kernels/ to PTX with NVRTC 12.0 for compute_70. With --check it
compares with kernels/*.ptx and writes nothing.

    scripts/ptx.py FOLDER_OF_LIBNVRTC [--check]

FOLDER_OF_LIBNVRTC holds libnvrtc.so.12 and its builtins, from the wheel
nvidia-cuda-nvrtc-cu12 12.0.140, which scripts/ptx fetches. Its PTX is the same to the
byte on every machine. Drivers from 525 on load it, for Volta to Blackwell.
"""

import ctypes
import difflib
import pathlib
import sys

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "kernels"
OPTIONS = [b"--gpu-architecture=compute_70", b"--std=c++17", b"-default-device"]
# A source whose first line begins with this text is compiled with the options after it, too.
MORE = b"// compile: "


def library(folder):
    folder = pathlib.Path(folder)
    # libnvrtc loads this library by name, and would not find it in its own folder.
    ctypes.CDLL(str(folder / "libnvrtc-builtins.so.12.0"), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(folder / "libnvrtc.so.12"))


def compiled(nvrtc, source):
    def call(name, *args):
        status = getattr(nvrtc, name)(*args)
        if status:
            nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
            return nvrtc.nvrtcGetErrorString(status).decode()
        return None

    def text(size_of, get):
        size = ctypes.c_size_t()
        call(size_of, program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        call(get, program, buffer)
        return buffer.value.decode()

    program = ctypes.c_void_p()
    code = source.read_bytes()
    first = code.split(b"\n", 1)[0]
    chosen = OPTIONS + (first.removeprefix(MORE).split() if first.startswith(MORE) else [])
    parts = sorted(KERNELS.glob("*/*.cuh"))
    names = (ctypes.c_char_p * len(parts))(*[f"{p.parent.name}/{p.name}".encode() for p in parts])
    texts = (ctypes.c_char_p * len(parts))(*[p.read_bytes() for p in parts])
    # The PTX's comments contain the name, so it has no path.
    fault = call("nvrtcCreateProgram", ctypes.byref(program), code, source.name.encode(),
                 len(parts), texts, names)
    if fault:
        sys.exit(f"{source}: {fault}")
    options = (ctypes.c_char_p * len(chosen))(*chosen)
    fault = call("nvrtcCompileProgram", program, len(chosen), options)
    log = text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog").strip()
    if fault or log:
        sys.exit(f"{source}: {fault or 'warnings'}\n{log}")
    return text("nvrtcGetPTXSize", "nvrtcGetPTX")


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    check = "--check" in sys.argv
    if len(arguments) != 1:
        sys.exit(__doc__)
    nvrtc = library(arguments[0])
    sources = sorted(KERNELS.glob("*.cu"))
    if not sources:
        sys.exit(f"no kernel in {KERNELS}: run this script from a full checkout")
    for source in sources:
        made = compiled(nvrtc, source)
        kept = source.with_suffix(".ptx")
        if not check:
            kept.write_text(made)
            print(f"{kept.name}: {len(made)} bytes")
            continue
        there = kept.read_text() if kept.exists() else ""
        if there != made:
            lines = difflib.unified_diff(there.splitlines(), made.splitlines(),
                                         "kept", "made", lineterm="", n=1)
            print("\n".join(list(lines)[:20]))
            sys.exit(f"{kept} differs from the PTX of {source.name}: run scripts/ptx")
        print(f"{kept.name}: equals the PTX of {source.name}")


main()
