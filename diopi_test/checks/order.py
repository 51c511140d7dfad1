"""Work is done in stream order: after what was queued before the call, before what is queued after it."""

from __future__ import annotations

from diopi_test.series import Series
from diopi_test.verdict import Finding


def check(series: Series) -> Finding | None:
    """Copies queued just before the call are seen by it, and copies queued just after it see its results.

    The inputs of the second call are sent behind other copies that keep the stream busy, and nobody waits for them: it
    is wrong to take what lies in memory until then. The results of every call are copied back by the same stream at
    once; where they are wrong, they are looked at again a moment later: it is wrong for them to have changed.
    """
    late = series.first.run.late if series.first.run is not None else ()
    if late:
        names = ", ".join(late)
        return Finding("order", False, f"{names} changed after a copy queued behind the call had read the results")
    if series.queued is None:
        return None
    fails = bool(series.queued.problem) and series.waited is not None and not series.waited.problem
    return Finding("order", not fails, f"with inputs still on their way: {series.queued.problem}" if fails else "")
