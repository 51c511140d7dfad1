"""Large cases of pooling: the same windows for every rank."""

from collections.abc import Iterator
from typing import Any

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import normal
from diopi_test.cases.layouts import channels_last
from diopi_test.cases.model import LARGE, Case, cases_for
from diopi_test.cases.pool import CHOICES, KINDS, Windows, windows_of
from diopi_test.cases.template import CaseTemplate

HALF = CaseTemplate(
    "half-channels-last",
    Windows((5, 13, 17), (3, 2, 3), (2, 1, 1), leading=(7, 131)),
    layout=channels_last,
    dtypes=(Dtype.float16,),
    domains={"input": normal()},
)
WIDE = CaseTemplate("many-channels", Windows((3, 7, 91), (2, 3, 3), (1, 2, 2), (1, 1, 1)))
LONG = CaseTemplate("long", Windows((3, 11, 1031), (3, 3, 2), (1, 2, 1)))


def _windows_of_kind(kind: str, rank: int) -> tuple[CaseTemplate[Any], ...]:
    """Return the windows of one kind of pooling; the more axes, the fewer channels."""
    wide, long = WIDE.with_sizes(leading=WIDE_LEADING[rank]), LONG.with_sizes(leading=LONG_LEADING[rank])
    if "Adaptive" not in kind:
        return wide, long, HALF
    return wide.with_sizes(output=(2, 4, 46)), long.with_sizes(output=(1, 7, 517)), HALF.with_sizes(output=(3, 5, 7))


WIDE_LEADING = {1: (3, 509), 2: (1, 509), 3: (1, 131)}
LONG_LEADING = {1: (3, 37), 2: (1, 19), 3: (1, 19)}
"""The leading sizes by number of spatial axes."""


def _rank(prototype: Prototype) -> int:
    return int(prototype.name.partition("Pool")[2][0])


@cases_for(
    *(f"diopi{k}{n}d{form}" for k in KINDS for n in (1, 2, 3) for form in ("", "Backward", "WithIndices")), level=LARGE
)
def pooling(prototype: Prototype) -> Iterator[Case]:
    kind = next(kind for kind in KINDS if prototype.name.startswith(f"diopi{kind}"))
    return windows_of(prototype, kind, _windows_of_kind(kind, _rank(prototype)))


@cases_for(*(f"diopiPool{n}d{form}" for n in (1, 2, 3) for form in ("", "Backward")), level=LARGE)
def pool(prototype: Prototype) -> Iterator[Case]:
    for (mode, adaptive), (kind, _) in CHOICES.items():
        chosen = _windows_of_kind(kind, _rank(prototype))[:: 2 if mode == "max" else 1][:2]
        named = (
            template.replace(f"{kind}-{template.label}", {"mode": mode, "adaptive": adaptive}) for template in chosen
        )
        yield from windows_of(prototype, kind, named)
