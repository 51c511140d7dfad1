"""Former name of `diopi_test.run.pytest_entry`, under which older editable installations register the pytest plugin."""

from diopi_test.run.pytest_entry import pytest_load_initial_conftests

__all__ = ["pytest_load_initial_conftests"]
