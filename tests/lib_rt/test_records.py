"""Timing records."""

import threading
import time

import pytest

from lib_rt import recording
from lib_rt.library import ffi, last_error, lib


def start(name: str) -> object:
    """Start a profiling record and return it."""
    record = ffi.new("void**")
    assert lib.diopiRecordStart(name.encode(), record) == 0
    assert record[0] != ffi.NULL
    return record


def end(record: object) -> None:
    """End a profiling record."""
    assert lib.diopiRecordEnd(record) == 0
    assert record[0] == ffi.NULL


def test_records_nest_and_take_time() -> None:
    with recording() as records:
        outer = start("outer")
        inner = start("inner")
        time.sleep(0.002)
        end(inner)
        end(outer)
        end(start("after"))
    assert [(record.name, record.depth) for record in records] == [("inner", 1), ("outer", 0), ("after", 0)]
    assert 0.002 <= records[0].seconds <= records[1].seconds < 10


def test_records_are_discarded_while_nothing_is_recorded() -> None:
    end(start("before"))
    with recording() as records:
        pass
    end(start("after"))
    assert records == []
    with recording() as records:
        for i in range(200):
            end(start(f"record {i}"))
    assert [record.name for record in records] == [f"record {i}" for i in range(200)]


def test_each_thread_counts_its_nesting_depth() -> None:
    with recording() as records:
        outer = start("outer")
        thread = threading.Thread(target=lambda: end(start("elsewhere")))
        thread.start()
        thread.join()
        end(outer)
    assert {record.name: record.depth for record in records} == {"elsewhere": 0, "outer": 0}


@pytest.mark.parametrize("invalid", [ffi.NULL, ffi.new("void**"), ffi.new("void**", ffi.cast("void*", 12345))])
def test_ending_a_record_that_was_not_started_is_an_error(invalid: object) -> None:
    assert lib.diopiRecordEnd(invalid) == 1
    assert "diopiRecordEnd" in last_error()


def test_ending_a_record_twice_is_an_error() -> None:
    record = start("once")
    twice = ffi.new("void**", record[0])
    end(record)
    assert lib.diopiRecordEnd(record) == 1
    assert lib.diopiRecordEnd(twice) == 1
    assert "is a dead handle, expected a live record" in last_error()


def test_starting_a_record_without_name_or_result_is_an_error() -> None:
    assert lib.diopiRecordStart(ffi.NULL, ffi.new("void**")) == 1
    assert lib.diopiRecordStart(b"name", ffi.NULL) == 1


@pytest.mark.parametrize("index", [-1, 1])
def test_reading_a_discarded_record_is_an_error(index: int) -> None:
    results = ffi.new("char const**"), ffi.new("int32_t*"), ffi.new("int64_t*")
    with recording():
        end(start("only"))
        assert lib.diopirt_record_logged(index, *results) == 1
        assert last_error() == f"diopirt_record_logged: there is no record {index}, the log has 1"
