"""The check of random draws: the generator's state determines the result, and drawing advances the offset."""

from __future__ import annotations

from collections.abc import Iterator

from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.verdict import CheckResult

_OFFSETS = 2**64
"""The number of possible offsets of a generator; the offset after the last one is 0."""


def check(run: CallRecord) -> CheckResult | None:
    """Check that the call uses the generator's state as the standard requires; return None if it draws nothing."""
    if not run.case.draws:
        return None
    problems = [*_state_problems(run), *_repetition_problems(run)]
    kinds = tuple(dict.fromkeys(kind for kind, _ in problems))
    return CheckResult(
        check="draws",
        passed=not problems,
        message="; ".join(message for _, message in problems),
        problems=kinds,
    )


def _state_problems(run: CallRecord) -> Iterator[tuple[str, str]]:
    """Yield the problems of the generators' states.

    The seed stays unchanged, and the offset advances if the call draws numbers. A gradient repeats the draws of the
    forward function. If there are several generators, some may stay unchanged. If `train` is false, none advances.

    Yields:
        The kind and a description of each problem.
    """
    are_drawn = any(expected.needs_validator and record.values.size for record, expected in run.results())
    are_drawn &= not run.prototype.is_gradient
    advances = [(generator.after[1] - generator.before[1]) % _OFFSETS for generator in run.generators]
    for generator, advance in zip(run.generators, advances, strict=True):
        (seed, offset), (seed_after, offset_after) = generator.before, generator.after
        if seed_after != seed:
            yield "seed_changed", f"the seed of {generator.name} changed from {seed} to {seed_after}"
        if (are_drawn and not any(advances)) or advance >= _OFFSETS // 2:
            message = (
                f"the offset of {generator.name} was {offset} and is {offset_after}, expected the call to advance it"
            )
            yield "offset_not_advanced", message
        if advance and not run.case.arguments.get("train", True):
            yield "drawn_without_training", f"{generator.name} was drawn from although train is false"


def _repetition_problems(run: CallRecord) -> Iterator[tuple[str, str]]:
    """Yield the kind and a description of each difference from the repeated call; nothing if it was not repeated."""
    if run.again is None:
        return
    for (first, expected), (second, _) in zip(run.results(), run.again.results(), strict=True):
        if expected.needs_validator and first.values.tobytes() != second.values.tobytes():
            message = f"{first.name} differs when the call is repeated from the same generator state"
            yield "state_ignored", message
    if [g.after for g in run.generators] != [g.after for g in run.again.generators]:
        yield "state_ignored", "the generator advances differently when the call is repeated from the same state"
