"""Texts of exceptions and reports: what is foreign in them moves no cursor."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import featherload
from featherload import _featherload
from featherload._reports import Report

HOSTILE = "a\x1bc\x9b1m\u202e\u2028\n.jpg"
SHOWN = "a\\u{1b}c\\u{9b}1m\\u{202e}\\u{2028}\\n.jpg"


def test_exceptions_print_one_line_that_no_terminal_obeys(tmp_path: Path) -> None:
    # Of the library, of the package's own files, and of the executable.
    for fails in (
        lambda: featherload.Loader(tmp_path / HOSTILE, batch_size=2),
        lambda: featherload.Scene(tmp_path / HOSTILE),
        lambda: featherload.index(tmp_path / HOSTILE),
    ):
        with pytest.raises(featherload.Error) as caught:
            fails()
        assert SHOWN in str(caught.value)
        assert str(caught.value).isprintable()
    error = featherload.ConfigError(HOSTILE, path=HOSTILE)
    assert (str(error), error.path) == (SHOWN, HOSTILE)


def test_a_path_of_60_mb_is_not_printed_whole() -> None:
    with pytest.raises(featherload.Error) as caught:
        featherload.Loader("x" * 60_000_000, batch_size=2)
    text = str(caught.value)
    assert len(text) <= 8192 and "bytes left out" in text and "xxx" in text


def test_texts_that_are_no_utf8_show_their_bytes() -> None:
    assert _featherload.printable("\udcff\x7f é") == "\\xff\\u{7f} é"
    assert _featherload.printable("\ud800").isprintable()


def test_reports_print_lines_of_their_own() -> None:
    report = Report({"name": HOSTILE})
    assert str(report) == f"name  {SHOWN}"
    assert SHOWN in report._repr_html_()


def test_warnings_are_printable(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scans = tmp_path / "scans"
    scans.mkdir()
    (scans / f"{HOSTILE}.tar").write_bytes(b"")
    with caplog.at_level(logging.WARNING, "featherload"), pytest.raises(featherload.Error):
        featherload.Loader(f"{scans}/*.tar", batch_size=2)
    assert all(record.getMessage().isprintable() for record in caplog.records)
