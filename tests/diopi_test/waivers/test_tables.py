"""TOML files of tables: all problems are reported at once, with file, table and key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from diopi_test.waivers.tables import TableError, TableKind, read_tables


@dataclass(frozen=True)
class Fruit:
    """A record that a table is read as."""

    name: str
    number: int = 1
    picked: date | None = None
    sorts: tuple[str, ...] = ()


def problems(fruit: Fruit) -> Iterator[str]:
    """Yield the problems of a record."""
    if fruit.number < 0:
        yield f"number: expected at least 0, found {fruit.number}"


KINDS = {"fruit": TableKind(Fruit, "name", problems)}


def read(tmp_path: Path, text: str) -> tuple[Fruit, ...]:
    """Return the records that are read from a file with this text."""
    path = tmp_path / "fruit.toml"
    path.write_text(text, "utf-8")
    return read_tables(path, KINDS)["fruit"]


def test_valid_tables_are_read(tmp_path: Path) -> None:
    text = '[[fruit]]\nname = "fig"\n[[fruit]]\nname = "plum"\nnumber = 3\npicked = 2026-08-01\nsorts = ["blue"]'
    assert read(tmp_path, text) == (Fruit("fig"), Fruit("plum", 3, date(2026, 8, 1), ("blue",)))
    assert read(tmp_path, text)[1].sorts == ("blue",)
    assert read(tmp_path, "") == ()


def test_all_errors_of_a_file_are_reported(tmp_path: Path) -> None:
    text = """
        color = "red"
        [[fruit]]
        number = "two"
        taste = 3
        [[fruit]]
        name = "plum"
        sorts = "blue"
        [[fruit]]
        name = "fig"
        number = -1
        [[fruit]]
        name = 7
        [vegetable]
    """
    with pytest.raises(TableError) as caught:
        read(tmp_path, text)
    path = tmp_path / "fruit.toml"
    assert str(caught.value).splitlines() == [
        f"{path}: 'color' is not a known table, expected [[fruit]]",
        f"{path}: 'vegetable' is not a known table, expected [[fruit]]",
        f"{path}: [[fruit]] 1: key 'taste' is not one of 'name', 'number', 'picked', 'sorts'.",
        f"{path}: [[fruit]] 1: name is missing",
        f"{path}: [[fruit]] 1: number: expected int, found 'two'",
        f"{path}: [[fruit]] 2 (plum): sorts: expected list, found 'blue'",
        f"{path}: [[fruit]] 3 (fig): number: expected at least 0, found -1",
        f"{path}: [[fruit]] 4: name: expected str, found 7",
    ]


@pytest.mark.parametrize("text", ['[fruit]\nname = "fig"', "fruit = 3", "fruit = [1]"])
def test_a_value_that_is_not_an_array_of_tables_is_rejected(tmp_path: Path, text: str) -> None:
    with pytest.raises(TableError, match=r"fruit.toml: .*\[\[fruit\]\]"):
        read(tmp_path, text)


def test_a_file_that_is_not_toml_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"fruit.toml: .*line 2, column 6"):
        read(tmp_path, "[[fruit]]\nname fig")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(TableError, match=r"bytes.toml: .*utf-8"):
        read_tables(tmp_path / "bytes.toml", KINDS)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=f"missing.toml: {os.strerror(2)}"):
        read_tables(tmp_path / "missing.toml", KINDS)
    with pytest.raises(TableError, match=os.strerror(21)):
        read_tables(tmp_path, KINDS)
