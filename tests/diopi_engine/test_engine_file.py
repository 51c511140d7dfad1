"""An engine file contains the compiled network, and any other bytes are rejected."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import diopi_engine
from diopi_engine import (
    Engine,
    EngineFileError,
    EngineVersionError,
    Input,
    container,
    verification,
    verification_process,
)
from diopi_engine.engine import MANIFEST, NETWORK

Members = dict[str, bytes]


def test_an_engine_survives_a_round_trip_through_its_file(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "layer.engine")
    loaded_engine = Engine.load(tmp_path / "layer.engine")
    assert loaded_engine.manifest == engine.manifest
    assert loaded_engine.to_bytes() == engine.to_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["layer.engine"]
    x = np.linspace(-2, 2, 20, dtype=np.float32).reshape(5, 4)
    for found, expected in zip(loaded_engine(x), engine(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_members_are_neither_compressed_nor_executable(engine: Engine) -> None:
    with zipfile.ZipFile(io.BytesIO(engine.to_bytes())) as archive:
        assert archive.namelist() == [MANIFEST, NETWORK, "weights/0.npy", "weights/1.npy"]
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        np.load(io.BytesIO(archive.read("weights/0.npy")), allow_pickle=False)


def test_a_network_does_not_contain_names_of_folders_or_calling_functions(engine: Engine) -> None:
    assert Path(__file__).parent.name.encode() not in engine.network
    assert b"pytest" not in engine.network


@pytest.mark.parametrize(("mask", "permissions"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_file_has_ordinary_permissions(engine: Engine, mask: int, permissions: int, tmp_path: Path) -> None:
    former = os.umask(mask)
    try:
        engine.save(tmp_path / "layer.engine")
    finally:
        os.umask(former)
    assert (tmp_path / "layer.engine").stat().st_mode & 0o777 == permissions


def test_the_archive_has_the_same_bytes_as_one_written_by_zipfile(engine: Engine) -> None:
    members = container.unpack(engine.to_bytes())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
        archive.comment = b"diopi engine, sha256 of the first member: " + container.sha256(members[MANIFEST]).encode()
    assert container.pack(members) == buffer.getvalue()


def test_too_many_members_do_not_fit_in_a_file() -> None:
    with pytest.raises(EngineFileError, match=r"65536 members of together .* at most 65535 members"):
        container.pack({str(number): b"" for number in range(1 << 16)})


def test_every_flipped_bit_is_detected(engine: Engine) -> None:
    data = engine.to_bytes()
    for bit in range(0, len(data) * 8, 31):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(EngineFileError):
            Engine.from_bytes(bytes(changed))


@pytest.mark.parametrize("length", [0, 1, 21, 22, 100, -1, -22, -100])
def test_truncation_is_detected(engine: Engine, length: int) -> None:
    with pytest.raises(EngineFileError):
        Engine.from_bytes(engine.to_bytes()[:length])


@pytest.mark.parametrize("before", [True, False])
def test_additional_bytes_are_detected(engine: Engine, before: bool) -> None:
    data = engine.to_bytes()
    with pytest.raises(EngineFileError):
        Engine.from_bytes(b"#!/bin/sh\n" + data if before else data + b"more")


def remove_member(name: str) -> Callable[[Members], Members]:
    """Return a function that removes a member of an engine file."""
    return lambda members: {key: data for key, data in members.items() if key != name}


def change_manifest(**changes: object) -> Callable[[Members], Members]:
    """Return a function that changes entries of the manifest."""

    def change(members: Members) -> Members:
        value = json.loads(members[MANIFEST]) | changes
        return {**members, MANIFEST: (json.dumps(value, indent=1) + "\n").encode()}

    return change


def replace_weight_with_larger_array(members: Members) -> Members:
    """Return the members with a weight that is larger than the manifest says."""
    weight = io.BytesIO()
    np.save(weight, np.zeros((400, 3), np.float32))
    return update_digests({**members, "weights/0.npy": weight.getvalue()})


def replace_weight_with_pickled_object(members: Members) -> Members:
    """Return the members with a pickled object instead of a weight."""
    weight = io.BytesIO()
    np.save(weight, np.array([{"a": 1}], object), allow_pickle=True)
    return update_digests({**members, "weights/0.npy": weight.getvalue()})


def change_binding(**changes: object) -> Callable[[Members], Members]:
    """Return a function that changes entries of the manifest's first binding."""

    def change(members: Members) -> Members:
        first, *remaining = json.loads(members[MANIFEST])["bindings"]
        return change_manifest(bindings=[first | changes, *remaining])(members)

    return change


def change_control(**changes: object) -> Callable[[Members], Members]:
    """Return a function that changes entries of the manifest's scheme, which controls the execution of one engine."""

    def change(members: Members) -> Members:
        (control,) = json.loads(members[MANIFEST])["scheme"]
        return change_manifest(scheme=[control | changes])(members)

    return change


def change_scheme_modes(members: Members) -> Members:
    """Return the members with a scheme of two engines in different modes."""
    (control,) = json.loads(members[MANIFEST])["scheme"]
    return change_manifest(scheme=[control, control | {"mode": "weight_split"}])(members)


def replace_member(members: Members, name: str, change: Callable[[bytes], bytes]) -> Members:
    """Return the members with the content of one member changed, and with correct digests."""
    return update_digests({**members, name: change(members[name])})


def change_weight_header(members: Members) -> Members:
    """Return the members with an invalid header of a weight."""
    return replace_member(members, "weights/0.npy", lambda data: data.replace(b"'shape': (4", b"'shape': ((", 1))


def update_digests(members: Members) -> Members:
    """Return the members with a manifest that contains their correct digests."""
    digests = {name: container.sha256(data) for name, data in members.items() if name != MANIFEST}
    return change_manifest(members=digests)(members)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove_member(NETWORK), "the members are .* expected .*network"),
        (remove_member("weights/1.npy"), "the members are .* expected .*weights/1"),
        (remove_member(MANIFEST), "network"),
        (lambda members: {**members, "extra.py": b"import os"}, "the members are .*extra.py"),
        (lambda members: {**members, "../../etc/passwd": b""}, r"called '../../etc/passwd'"),
        (lambda members: {**members, "/etc/passwd": b""}, r"called '/etc/passwd'"),
        (lambda members: {**members, NETWORK: members[NETWORK][:-1]}, "digest"),
        (lambda members: update_digests({**members, NETWORK: b"none"}), "stablehlo can't be read"),
        (replace_weight_with_larger_array, r"weight a is float32\[400, 3\], the manifest says float32\[4, 3\]"),
        (replace_weight_with_pickled_object, "weight a"),
        (change_manifest(patch=99), "patches of 99"),
        (change_manifest(is_divisible=False), "patches of 4 divide batches, which must be computed as a whole"),
        (change_manifest(engine=1), "number 1"),
        (change_manifest(max_batch="16"), 'manifest.max_batch is "16", expected int'),
        (change_manifest(max_batch=1 << 40), "do not suit batches of up to 1099511627776"),
        (change_manifest(name="a\0b"), r"a name is 'a\\x00b', expected 1 to 1024 bytes of printable characters"),
        (change_manifest(name="\ud800"), r"a name is '\\ud800'"),
        (change_manifest(platforms=[]), "for no platform"),
        (change_manifest(platforms=["cpu", "cpu"]), "platforms have the same name: cpu, cpu"),
        (change_manifest(platforms=["cpu"]), "the network is for cpu, cuda, rocm, tpu, the manifest says cpu"),
        (change_binding(shape=[None, 1 << 47]), "binding x has more than 281474976710656 bytes for 16 samples"),
        (change_binding(shape=[4, 4]), "some bindings have the batch as first size"),
        (change_binding(name="y"), "bindings have the same name: y, y, z"),
        (change_binding(is_input=False), "an output precedes an input|the network has the arguments"),
        (change_binding(layout="NHWC"), "binding x has layout NHWC and 2 axes"),
        (change_control(memory=-1), "the scheme has invalid values for engine 'layer'"),
        (change_control(memory=1 << 70), "the scheme has invalid values"),
        (change_control(virtual_device=1 << 31), "the scheme has invalid values"),
        (change_control(memory_group=-1), "the scheme has invalid values"),
        (change_control(cores_per_batch=2), "the scheme has invalid values"),
        (change_scheme_modes, "engines of one device that run in different modes"),
        (lambda members: {**members, MANIFEST: b"[" * 100_000}, "JSON"),
        (change_weight_header, "weight a is not a valid npy array"),
        (lambda members: replace_member(members, "weights/0.npy", lambda data: data + b"0"), "has 49 bytes, expected"),
        (change_manifest(weights=[]), "the members are"),
        (change_manifest(more=1), "manifest is .* expected an object with format"),
        (lambda members: {**members, MANIFEST: members[MANIFEST] + b" "}, "compiler"),
        (lambda members: {**members, MANIFEST: b"\xff"}, "JSON"),
    ],
)
def test_incomplete_or_false_contents_are_rejected(
    engine: Engine, change: Callable[[Members], Members], message: str
) -> None:
    members = container.unpack(engine.to_bytes())
    with pytest.raises(EngineFileError, match=message):
        Engine.from_bytes(container.pack(change(members)))


@pytest.mark.parametrize("changes", [{"compiler": "0.9"}, {"format": 3}, {"format": 1, "is_divisible": None}])
def test_an_engine_of_another_version_is_rejected(engine: Engine, changes: dict[str, object]) -> None:
    members = change_manifest(**changes)(container.unpack(engine.to_bytes()))
    with pytest.raises(EngineVersionError, match="expected format 2"):
        Engine.from_bytes(container.pack(members))


def test_the_manifest_must_match_the_network(engine: Engine) -> None:
    x, *remaining = engine.manifest.bindings
    wider = replace(engine, manifest=replace(engine.manifest, bindings=(replace(x, shape=(None, 5)), *remaining)))
    with pytest.raises(EngineFileError, match=r"\[None, 4\].*\[None, 5\]"):
        Engine.from_bytes(wider.to_bytes())


def test_duplicate_members_are_rejected(engine: Engine) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        for name, data in container.unpack(engine.to_bytes()).items():
            archive.writestr(name, data)
        archive.writestr(NETWORK, b"another")
    with pytest.raises(EngineFileError, match="network"):
        Engine.from_bytes(buffer.getvalue())


def test_compressed_members_are_rejected(engine: Engine) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in container.unpack(engine.to_bytes()).items():
            archive.writestr(name, data)
    with pytest.raises(EngineFileError, match="compressed"):
        Engine.from_bytes(buffer.getvalue())


def test_a_network_with_callbacks_is_rejected() -> None:
    def network_with_callback(x: jax.Array) -> jax.Array:
        return jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct((4,), np.float32), x)

    with pytest.raises(diopi_engine.CompileError):
        diopi_engine.compile(network_with_callback, [Input("x", (4,))])


def test_a_failed_save_leaves_nothing(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_because_disk_is_full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail_because_disk_is_full)
    with pytest.raises(OSError, match="no space"):
        engine.save(tmp_path / "layer.engine")
    assert list(tmp_path.iterdir()) == []


def test_a_verified_network_is_recorded(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPI_ENGINE_CACHE", str(tmp_path / "records"))
    monkeypatch.setattr(verification, "_verified", set())
    Engine.from_bytes(engine.to_bytes())
    assert len([*(tmp_path / "records").iterdir()]) == 1
    monkeypatch.setattr(verification, "_verified", set())
    monkeypatch.setattr(verification, "_run_verification", None)  # which a call would not survive
    Engine.from_bytes(engine.to_bytes())


def test_a_network_that_ends_its_process_is_rejected(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_verified", set())
    monkeypatch.setattr(verification, "_is_recorded", lambda _: False)
    monkeypatch.setattr(verification, "PROCESS", "faulthandler_of_no_package")
    with pytest.raises(EngineFileError, match="the process that tried it ended with no verdict"):
        Engine.from_bytes(engine.to_bytes())


@pytest.mark.parametrize(
    ("network", "problem"),
    [
        (b"none", "stablehlo can't be read"),
        (None, "the manifest says float32[4, 3], float32[3], float32[None, 5]"),
    ],
    ids=["no network", "another shape"],
)
def test_verification_names_the_problem(engine: Engine, network: bytes | None, problem: str) -> None:
    x, *remaining = engine.manifest.bindings
    wider = replace(engine.manifest, bindings=(replace(x, shape=(None, 5)), *remaining))
    assert problem in (verification_process.find_problem(wider, network or engine.network) or "")


def test_verification_compiles_the_network(engine: Engine) -> None:
    assert verification_process.find_problem(engine.manifest, engine.network) is None


def test_verification_reads_networks_of_other_platforms(engine_for_cuda: Engine) -> None:
    assert verification_process.find_problem(engine_for_cuda.manifest, engine_for_cuda.network) is None
