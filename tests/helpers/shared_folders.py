"""Folders that one process of pytest-xdist fills and the other processes use."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the folder for temporary files of this session, which the processes of pytest-xdist share.

    Args:
        factory: The fixture `tmp_path_factory`.

    Returns:
        The folder.
    """
    root = factory.getbasetemp()
    return root.parent if "PYTEST_XDIST_WORKER" in os.environ else root


def fill_once(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], Any]) -> Path:
    """Return a folder of this session that `fill` has filled; call `fill` unless another process has called it.

    Args:
        factory: The fixture `tmp_path_factory`.
        name: A name that no other shared folder has.
        fill: Fills the empty folder; if it raises, the next process tries again.

    Returns:
        The folder, which tests must not change.
    """
    root = session_folder(factory)
    marker = root / f"{name}.done"
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = root / name
        if not marker.exists():
            folder.mkdir(exist_ok=True)
            fill(folder)
            marker.touch()
    return folder
