"""Writes a table as text, one case a line, and finds the differences between two tables."""

import json


def dump(table):
    head = {name: value for name, value in table.items() if name != "cases"}
    groups = []
    for group, cases in table["cases"].items():
        rows = [f"{json.dumps(case)}: {json.dumps(steps)}" for case, steps in cases.items()]
        groups.append(f"{json.dumps(group)}: {{\n" + ",\n".join(rows) + "\n}")
    return json.dumps(head)[:-1] + ', "cases": {\n' + ",\n".join(groups) + "}}\n"


def differences(want, got, leave_out):
    """Yields a text for each difference: in the head, in the cases that ran, in their results."""
    for name in (want.keys() | got.keys()) - {"cases"}:
        if want.get(name) != got.get(name):
            yield f"{name}: was {want.get(name)}, is {got.get(name)}"
    for group in [*want["cases"], *(g for g in got["cases"] if g not in want["cases"])]:
        if group in leave_out:
            continue
        before, now = want["cases"].get(group, {}), got["cases"].get(group, {})
        yield from _lacks(group, [case for case in before if case not in now], "were not run")
        yield from _lacks(group, [case for case in now if case not in before], "are not in TABLE")
        for case in before:
            if case in now and before[case] != now[case]:
                yield f"{group}: {case}" + "".join(_steps(before[case], now[case]))


def _lacks(group, cases, what):
    if cases:
        yield f"{group}: {len(cases)} cases {what}, such as {cases[0]}"


def _steps(before, now):
    for number, (was, now_is) in enumerate(zip(before, now), 1):
        for name in [*was, *(n for n in now_is if n not in was)]:
            if was.get(name) != now_is.get(name):
                yield (
                    f"\n    step {number}, {name}:"
                    f"\n        was {json.dumps(was.get(name))}"
                    f"\n        is  {json.dumps(now_is.get(name))}"
                )
