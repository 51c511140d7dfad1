"""Plan what a vendor has to do for a set of networks, in the order in which networks work the soonest.

The plan is derived from obstacles: things that a vendor has to do before a network works. `network_needs.py` finds them
in a report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import final


class ObstacleKind(StrEnum):
    """The kinds of obstacles that prevent a network from working."""

    function = "function"
    element_type = "element type"
    failure = "failure"
    cause = "cause"
    not_run = "not run"


@final
@dataclass(frozen=True, order=True)
class Obstacle:
    """Something that a vendor has to do before a network works.

    Attributes:
        kind: implement a function, support an element type, correct a function, fix a cause, or run cases.
        name: the function, the function with the element type, or the ID of the cause.
    """

    kind: ObstacleKind
    name: str


@final
@dataclass(frozen=True, kw_only=True)
class BlockedCalls:
    """The calls of a network that an obstacle blocks: the number of distinct calls (cases), and of calls per step."""

    cases: int
    steps: int


Needs = Mapping[str, Mapping[Obstacle, BlockedCalls]]
"""The obstacles of each network, each with the calls that it blocks. A network without obstacles works."""


@final
@dataclass(frozen=True, kw_only=True)
class PlannedObstacle:
    """An obstacle in the plan.

    Attributes:
        obstacle: the obstacle.
        networks: the networks of the plan that it blocks.
        cases, steps: the distinct calls, and the calls per training step, that it blocks in these networks.
    """

    obstacle: Obstacle
    networks: tuple[str, ...]
    cases: int
    steps: int


@final
@dataclass(frozen=True, kw_only=True)
class Stage:
    """Obstacles that have to be removed together, and the networks that then work.

    Attributes:
        obstacles: those that no earlier stage removes, the most important one first.
        networks: the networks that work after this stage and do not work before.
    """

    obstacles: tuple[PlannedObstacle, ...]
    networks: tuple[str, ...]


def plan_stages(needs: Needs) -> Sequence[Stage]:
    """Return the stages in order.

    Each stage removes the obstacles of the network that then has the fewest left. Among networks with equally many, the
    one comes first whose obstacles block more networks, then more cases. Within a stage, an obstacle comes first if it
    blocks more networks, then more cases, then more steps.

    Args:
        needs: The obstacles of each network.

    Returns:
        The stages. A first stage without obstacles has the networks that work already.
    """
    planned = {entry.obstacle: entry for entry in _describe_obstacles(needs)}
    left = {network: set(obstacles) for network, obstacles in needs.items()}
    stages = []
    while left:
        target = min(left, key=lambda network: _urgency(network, left[network], planned))
        removed = frozenset(left[target])
        unlocked = tuple(sorted(network for network, obstacles in left.items() if obstacles <= removed))
        obstacles = sorted((planned[obstacle] for obstacle in removed), key=_importance)
        stages.append(Stage(obstacles=tuple(obstacles), networks=unlocked))
        left = {network: obstacles - removed for network, obstacles in left.items() if network not in unlocked}
    return stages


def _describe_obstacles(needs: Needs) -> Iterable[PlannedObstacle]:
    """Yield each obstacle with the networks, cases and calls that it blocks."""
    blocked: dict[Obstacle, list[tuple[str, BlockedCalls]]] = defaultdict(list)
    for network in sorted(needs):
        for obstacle, calls in needs[network].items():
            blocked[obstacle].append((network, calls))
    for obstacle, entries in blocked.items():
        yield PlannedObstacle(
            obstacle=obstacle,
            networks=tuple(network for network, _ in entries),
            cases=sum(calls.cases for _, calls in entries),
            steps=sum(calls.steps for _, calls in entries),
        )


def _urgency(
    network: str, obstacles: set[Obstacle], planned: Mapping[Obstacle, PlannedObstacle]
) -> tuple[int, int, int, str]:
    """Return the sort key of a network. Networks with the fewest obstacles come first."""
    entries = [planned[obstacle] for obstacle in obstacles]
    return len(entries), -sum(len(e.networks) for e in entries), -sum(e.cases for e in entries), network


def _importance(entry: PlannedObstacle) -> tuple[int, int, int, Obstacle]:
    """Return the sort key of an obstacle. Obstacles that block the most networks come first."""
    return -len(entry.networks), -entry.cases, -entry.steps, entry.obstacle
