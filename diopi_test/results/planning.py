"""Plan the work on a vendor so that the first networks work as early as possible.

An *obstacle* is something that the vendor has to change before a network works: for example, a function that is not
implemented. `network_needs.py` finds the obstacles in a report. This module orders them in stages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import final


class ObstacleKind(StrEnum):
    """The kinds of obstacles.

    Attributes:
        function: the vendor does not implement a function.
        element_type: the vendor does not support an element type of a function.
        failure: cases of a function fail, and the report, of an older version, does not contain their causes.
        cause: cases fail for a cause that the report names.
        not_run: the run did not contain the cases of a function.
    """

    function = "function"
    element_type = "element type"
    failure = "failure"
    cause = "cause"
    not_run = "not run"


@final
@dataclass(frozen=True, order=True)
class Obstacle:
    """Something that the vendor has to change before a network works.

    Attributes:
        kind: the kind of the obstacle.
        name: the function, the function with the element type, or the ID of the cause.
    """

    kind: ObstacleKind
    name: str


@final
@dataclass(frozen=True, kw_only=True)
class BlockedCalls:
    """The calls of a network that an obstacle blocks.

    Attributes:
        cases: the number of distinct calls. Each distinct call is a case of the suite.
        calls_per_step: the number of calls in a training step, in which a distinct call may occur several times.
    """

    cases: int
    calls_per_step: int


Needs = Mapping[str, Mapping[Obstacle, BlockedCalls]]
"""For each network, the calls that each obstacle blocks. A network without obstacles works."""


@final
@dataclass(frozen=True, kw_only=True)
class PlannedObstacle:
    """An obstacle in the plan.

    Attributes:
        obstacle: the obstacle.
        networks: the networks that the obstacle blocks.
        cases: the number of distinct calls that the obstacle blocks in these networks.
        calls_per_step: the number of calls per training step that the obstacle blocks in these networks.
    """

    obstacle: Obstacle
    networks: tuple[str, ...]
    cases: int
    calls_per_step: int = field(metadata={"key": "steps"})


@final
@dataclass(frozen=True, kw_only=True)
class Stage:
    """Obstacles that have to be removed together, and the networks that work afterwards.

    Attributes:
        obstacles: the obstacles that this stage removes, the most important one first.
        networks: the networks that work after this stage but not before.
    """

    obstacles: tuple[PlannedObstacle, ...]
    networks: tuple[str, ...]


def plan_stages(needs: Needs) -> Sequence[Stage]:
    """Return the stages of a plan in order.

    Each stage completes one network: the network with the fewest remaining obstacles. If several networks have equally
    many, the stage completes the network whose obstacles block more networks, or else more cases. Within a stage,
    obstacles are sorted by the number of networks that they block, then by cases, then by calls per training step; the
    largest numbers come first.

    Args:
        needs: The obstacles of each network.

    Returns:
        The stages. If some networks work already, the first stage contains these networks and no obstacles.
    """
    planned = {entry.obstacle: entry for entry in _describe_obstacles(needs)}
    left = {network: set(obstacles) for network, obstacles in needs.items()}
    stages = []
    while left:
        target = min(left, key=lambda network: _network_sort_key(network, left[network], planned))
        removed = frozenset(left[target])
        unlocked = tuple(sorted(network for network, obstacles in left.items() if obstacles <= removed))
        obstacles = sorted((planned[obstacle] for obstacle in removed), key=_obstacle_sort_key)
        stages.append(Stage(obstacles=tuple(obstacles), networks=unlocked))
        left = {network: obstacles - removed for network, obstacles in left.items() if network not in unlocked}
    return stages


def _describe_obstacles(needs: Needs) -> Iterable[PlannedObstacle]:
    """Yield each obstacle with the networks, cases and calls per training step that the obstacle blocks."""
    blocked: dict[Obstacle, list[tuple[str, BlockedCalls]]] = defaultdict(list)
    for network in sorted(needs):
        for obstacle, calls in needs[network].items():
            blocked[obstacle].append((network, calls))
    for obstacle, entries in blocked.items():
        yield PlannedObstacle(
            obstacle=obstacle,
            networks=tuple(network for network, _ in entries),
            cases=sum(calls.cases for _, calls in entries),
            calls_per_step=sum(calls.calls_per_step for _, calls in entries),
        )


def _network_sort_key(
    network: str, obstacles: set[Obstacle], planned: Mapping[Obstacle, PlannedObstacle]
) -> tuple[int, int, int, str]:
    """Return the sort key of a network. A network with fewer remaining obstacles comes first."""
    entries = [planned[obstacle] for obstacle in obstacles]
    return len(entries), -sum(len(e.networks) for e in entries), -sum(e.cases for e in entries), network


def _obstacle_sort_key(entry: PlannedObstacle) -> tuple[int, int, int, Obstacle]:
    """Return the sort key of an obstacle. An obstacle that blocks more networks comes first."""
    return -len(entry.networks), -entry.cases, -entry.calls_per_step, entry.obstacle
