"""Limit PyTorch to one thread, because several threads slow down networks of this size."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """Let PyTorch use one thread, so that its results do not depend on the number of cores."""
    torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
