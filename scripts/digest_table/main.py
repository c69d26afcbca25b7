"""Makes a table of the results of many small runs of a build, and compares two builds by it.

    digests make BINARY [--device cuda] [--only GROUP] > TABLE.json
    digests compare BINARY TABLE.json

BINARY makes the images. Photos and PaddleClas configs are in the folder that FEATHERLOAD_DATA names
(default: ../shared/data). `compare` runs the cases of TABLE on TABLE's device. If TABLE was made
with --only, it runs those groups alone. It prints each difference, and exits with 1 when there is
one.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cases
import cases_of_devices
from data import FOLDER, Data, behind_demo
from runner import Runner
from spelling import of_today
from table import differences, dump


def main():
    options = arguments()
    binary = options.binary.resolve()
    if not os.access(binary, os.X_OK):
        sys.exit(f"digests: {options.binary} is not an executable file: build it first")
    want = of_today(json.loads(options.table.read_text())) if options.do == "compare" else None
    leave_out = options.leave_out if want else []
    for group in leave_out:
        if group not in want["cases"]:
            groups = ", ".join(want["cases"])
            sys.exit(f"digests: --leave-out: no group {group} in {options.table}: use one of {groups}")
    if want:
        options.device, options.only = want["device"], want.get("only", [])
    table = make(binary, options)
    if want is None:
        sys.stdout.write(dump(table))
        return
    found = list(differences(want, table, leave_out))
    print("".join(f"{text}\n" for text in found), end="")
    compared = sum(len(lines) for group, lines in table["cases"].items() if group not in leave_out)
    print(f"{compared} cases compared, {len(found)} differences")
    sys.exit(1 if found else 0)


def arguments():
    parser = argparse.ArgumentParser(
        prog="digests", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="do", required=True)
    make_it = commands.add_parser("make", help="run all cases and print the table")
    make_it.add_argument("binary", type=Path)
    make_it.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    make_it.add_argument(
        "--only",
        metavar="GROUP",
        action="append",
        default=[],
        help="a group to run after the inputs, such as scenes; may be repeated [all]",
    )
    compare = commands.add_parser("compare", help="run the cases of a table, print the differences")
    compare.add_argument("binary", type=Path)
    compare.add_argument("table", type=Path)
    compare.add_argument(
        "--leave-out",
        metavar="GROUP",
        action="append",
        default=[],
        help="a group to leave out of the comparison; may be repeated",
    )
    for command in (make_it, compare):
        command.add_argument("--data", type=Path, help="shared data [FEATHERLOAD_DATA]")
        command.add_argument("--jobs", type=int, default=2, help="cases at a time [2]")
        command.add_argument("--keep", action="store_true", help=f"keep the folder {FOLDER}")
    return parser.parse_args()


def make(binary, options):
    repository = Path(__file__).resolve().parents[2]
    shared = options.data or os.environ.get("FEATHERLOAD_DATA") or repository / "../shared/data"
    device, only = options.device, options.only
    table = {"device": device} | ({"only": only} if only else {}) | {"cases": {}}
    began = time.monotonic()
    with Data(Path(shared), options.keep) as data, ThreadPoolExecutor(options.jobs) as pool:
        runner = Runner(binary)
        table["shared"] = data.present()

        def run(group, lines):
            started = time.monotonic()
            lines = [" ".join(line.split()) for line in lines]
            if len(set(lines)) < len(lines):
                sys.exit(f"digests: the group {group} has a case twice: remove one")
            table["cases"][group] = dict(zip(lines, pool.map(runner.case, lines)))
            seconds = time.monotonic() - started
            print(f"{seconds:6.1f} s  {len(lines):4} {group}", file=sys.stderr)

        run("inputs", cases.INPUTS)
        behind_demo(data)
        table |= runner.versions()
        groups = cases.of_cpu(data) if device == "cpu" else cases_of_devices.groups(data)
        for group in only or groups:
            if group not in groups:
                sys.exit(f"digests: --only: no group {group}: use one of {', '.join(groups)}")
            run(group, groups[group])
    print(f"{time.monotonic() - began:6.1f} s in all", file=sys.stderr)
    if "device" in table["cases"]:
        refuse_without_device(table["cases"]["device"])
    unequal = list(cases_of_devices.unequal(table["cases"].get("decoders", {})))
    if unequal:
        sys.exit("digests: the stream depends on the decoder:\n" + "\n".join(unequal))
    return table


def refuse_without_device(results):
    """Exits when most cases of the device failed: a table of errors compares nothing."""
    failed = [steps[0] for steps in results.values() if steps[0]["exit"] != 0]
    if 2 * len(failed) > len(results):
        count = f"{len(failed)} of {len(results)}"
        sys.exit(f"digests: {count} cases of the device failed: {failed[0]['error']}")


main()
