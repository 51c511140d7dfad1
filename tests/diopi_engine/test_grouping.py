"""The cores that the engines of a group get, and the engines that share memory."""

import pytest

import diopi_engine
from diopi_engine import Engine, Input, LinkError, link
from diopi_engine.grouping import LOCAL_MEMORY


@pytest.fixture(scope="module")
def split_engine() -> Engine:
    """Compile an engine that computes a batch on two cores together."""
    return diopi_engine.compile(lambda x: x * 2, [Input("x", ("b", 4))], name="wide", mode="weight_split", cores=2)


def devices_and_core_masks(engines: list[Engine]) -> list[tuple[int, int]]:
    """Return the virtual device and the core mask of each engine of the group."""
    return [(control.virtual_device, control.core_mask) for control in engines[0].manifest.scheme]


def test_each_engine_knows_the_scheme_and_its_number(engine: Engine) -> None:
    group = link([engine, engine, engine], cores=4)
    assert [entry.manifest.engine for entry in group] == [0, 1, 2]
    assert len({entry.manifest.group for entry in group}) == 1
    assert len({entry.manifest.scheme for entry in group}) == 1
    assert devices_and_core_masks(group) == [(0, 1), (0, 2), (0, 4)]
    assert [entry.memory_group for entry in group[0].manifest.scheme] == [0, 1, 2]


def test_engines_share_cores_if_there_are_too_few(engine: Engine) -> None:
    group = link([engine, engine, engine], cores=2)
    assert devices_and_core_masks(group) == [(0, 1), (0, 2), (0, 1)]
    assert [control.memory_group for control in group[0].manifest.scheme] == [0, 1, 0]


def test_devices_are_filled_evenly(engine: Engine) -> None:
    assert devices_and_core_masks(link([engine] * 4, devices=2, cores=2)) == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_one_mode_runs_on_a_device(engine: Engine, split_engine: Engine) -> None:
    assert devices_and_core_masks(link([engine, split_engine], devices=2, cores=4)) == [(1, 1), (0, 3)]
    with pytest.raises(LinkError, match="'layer' needs 1"):
        link([engine, split_engine], cores=4)


def test_link_rejects_engines_that_do_not_fit(engine: Engine, split_engine: Engine) -> None:
    with pytest.raises(LinkError, match="'wide' needs 2"):
        link([split_engine], cores=1)
    needed = engine.manifest.control.memory
    assert devices_and_core_masks(link([engine], local_memory=needed)) == [(0, 1)]
    with pytest.raises(LinkError, match="memory"):
        link([engine], local_memory=needed - 1)
    with pytest.raises(LinkError, match="0 engines"):
        link([])


def test_weights_add_up_and_patches_do_not(engine: Engine) -> None:
    weights = sum(array.nbytes for array in engine.weights)
    required = engine.manifest.control.memory + weights
    assert link([engine] * 2, cores=1, local_memory=required)
    with pytest.raises(LinkError, match="device"):
        link([engine] * 2, cores=1, local_memory=required - 1)


def test_a_linked_engine_is_a_file_like_any_other(engine: Engine) -> None:
    linked = link([engine, engine], cores=2, local_memory=LOCAL_MEMORY)[1]
    assert Engine.from_bytes(linked.to_bytes()).manifest.control.core_mask == 2
