"""Random draws: one generator state gives one result, and a call that draws leaves an advanced offset behind."""

from __future__ import annotations

from collections.abc import Iterator

from diopi_test.run import Run
from diopi_test.verdict import Finding

_OFFSETS = 2**64


def check(run: Run) -> Finding | None:
    """The generator's state is used as the standard says; None for functions that draw nothing."""
    if run.prototype.promise != "random":
        return None
    problems = [*_states(run), *_repetition(run)]
    return Finding("draws", not problems, "; ".join(problems))


def _states(run: Run) -> Iterator[str]:
    """The seed stays, and the offset advances if anything was drawn."""
    drawn = any(expected.judged and record.values.size for record, expected in run.results())
    for generator in run.generators:
        (seed, offset), (seed_after, offset_after) = generator.before, generator.after
        advance = (offset_after - offset) % _OFFSETS
        if seed_after != seed:
            yield f"the seed of {generator.name} changed from {seed} to {seed_after}"
        if drawn and not 0 < advance < _OFFSETS // 2:
            yield f"the offset of {generator.name} was {offset} and is {offset_after}, expected an advanced one"
        if advance and not run.case.arguments.get("train", True):
            yield f"{generator.name} was drawn from although train is false"


def _repetition(run: Run) -> Iterator[str]:
    """The same state gave the same results, bit for bit, and the same state after it."""
    if run.again is None:
        return
    for (one, expected), (other, _) in zip(run.results(), run.again.results(), strict=True):
        if expected.judged and one.values.tobytes() != other.values.tobytes():
            yield f"{one.name} differs when the call is repeated from the same generator state"
    if [g.after for g in run.generators] != [g.after for g in run.again.generators]:
        yield "the generator advances differently when the call is repeated from the same state"
