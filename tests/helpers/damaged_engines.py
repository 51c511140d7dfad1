"""Damage an engine file at random, with correct digests, and run it: `damaged_engines.py LIBRARY FILE SEED COUNT`.

For each damaged file, the program prints a line of JSON: the member that was damaged, the result of the first call that
failed or `SUCCESS`, and the text of the error.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diopi_engine import container
from diopi_engine.conformance.client import EngineClient, FailedCallError
from diopi_engine.engine import MANIFEST
from diopi_engine.network import NETWORK
from diopi_engine.proto.hgrt import BindingAttribute

VALUES: list[Any] = [
    -1,
    0,
    3,
    1 << 31,
    1 << 63,
    1 << 70,
    True,
    None,
    "",
    "\0",
    "\ud800",
    "a\nb",
    "x" * 5000,
    [],
    {},
    [1],
    0.5,
]
"""Values that replace one of the manifest."""


def damage_file(data: bytes, random_numbers: random.Random) -> tuple[str, bytes]:
    """Return the name of a member, and the file with changes in this member and correct digests."""
    members = container.unpack(data)
    name = random_numbers.choice([NETWORK, NETWORK, *members])
    change = damage_manifest if name == MANIFEST and random_numbers.random() < 0.8 else damage_bytes
    members[name] = change(members[name], random_numbers)
    if name != MANIFEST:
        manifest = json.loads(members[MANIFEST])
        manifest["members"] = {key: container.sha256(value) for key, value in members.items() if key != MANIFEST}
        members[MANIFEST] = encode(manifest)
    return name, container.pack(members)


def encode(manifest: Any) -> bytes:
    """Return a manifest as the compiler writes it."""
    return (json.dumps(manifest, indent=1) + "\n").encode()


def damage_manifest(data: bytes, random_numbers: random.Random) -> bytes:
    """Return the manifest with another value at one place."""
    manifest = json.loads(data)
    places = [*list_places(manifest)]
    random_numbers.choice(places)(random_numbers.choice(VALUES))
    return encode(manifest)


def list_places(value: Any) -> list[Callable[[Any], None]]:
    """Return a function for each value in nested lists and objects that replaces it."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    places: list[Callable[[Any], None]] = []
    for key, item in items:
        places.append(lambda new, key=key: value.__setitem__(key, new))  # type: ignore[misc]  # the default binds the key
        places += list_places(item)
    return places


def damage_bytes(data: bytes, random_numbers: random.Random) -> bytes:
    """Return bytes in which some are changed, removed or replaced."""
    changed = bytearray(data)
    for _ in range(random_numbers.choice([1, 1, 2, 4, 16])):
        place, count = random_numbers.randrange(len(changed)), random_numbers.choice([1, 4, 8])
        match random_numbers.randrange(3):
            case 0:
                changed[place] ^= 1 << random_numbers.randrange(8)
            case 1:
                del changed[place : place + count]
            case _:
                changed[place : place + count] = random_numbers.randbytes(count)
    return bytes(changed)


def run_engine(client: EngineClient, data: bytes) -> None:
    """Create the engine, run batches of one and four samples, and destroy it; raise FailedCallError if that fails."""
    engine = client.engine(data)
    try:
        context = client.context(engine)
        try:
            count = client.get("hgEngineGetNbBindings", engine)
            sizes = [
                client.get("hgEngineGetBindingAttribute", engine, index, BindingAttribute.SAMPLE_SIZE)
                for index in range(count)
            ]
            for batch in (1, 4):
                client.execute(context, batch, [np.zeros(size * batch, np.uint8) for size in sizes])
        finally:
            client.call("hgExecutionContextDestroy", context)
    finally:
        client.call("hgEngineDestroy", engine)


def main() -> None:
    """Damage the file, and print a line per damaged file."""
    client, data = EngineClient(Path(sys.argv[1])), Path(sys.argv[2]).read_bytes()
    for number in range(int(sys.argv[4])):
        name, damaged = damage_file(data, random.Random(f"{sys.argv[3]} {number}"))
        result, text = "SUCCESS", ""
        try:
            run_engine(client, damaged)
        except FailedCallError as error:
            result, text = error.result.name if error.result else "UNKNOWN", str(error).partition(": ")[2]
        print(json.dumps([name, result, text]), flush=True)


if __name__ == "__main__":
    main()
