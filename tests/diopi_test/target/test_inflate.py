"""The runner decompresses the format DEFLATE as zlib does, and rejects what zlib rejects."""

import os
import random
import struct
import subprocess
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import sanitizers
from runners import ROOT
from sampling import SEED
from toolchain import build

PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "inflate.h"

int main(void) {
    uint64_t sizes[2];
    while (fread(sizes, sizeof *sizes, 2, stdin) == 2) {
        unsigned char *bytes = malloc(sizes[0] + 1), *result = calloc(sizes[1] + 1, 1);
        if (fread(bytes, 1, sizes[0], stdin) != sizes[0]) return 1;
        putchar(inflate_bytes(bytes, sizes[0], result, sizes[1]));
        fwrite(result, 1, sizes[1], stdout);
        free(bytes);
        free(result);
    }
    return 0;
}
"""
"""A program that decompresses the contents on standard input, and writes for each whether it is correct."""

STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED)


def build_program(folder: Path, *flags: str) -> Path:
    """Build the program."""
    (folder / "program.c").write_text(PROGRAM)
    sources = [folder / "program.c", ROOT / "runner" / "inflate.c"]
    return build(folder / "program", "c", sources, f"-I{ROOT / 'runner'}", *flags)


def draw_contents(chooser: random.Random, count: int) -> list[bytes]:
    """Return contents of several kinds: words with small numbers, random bytes, repeated bytes, nothing."""
    words = [struct.pack("<500q", *(chooser.randrange(-2, 40) for _ in range(500))) for _ in range(count)]
    mixed = [chooser.randbytes(chooser.randrange(3000)) + word for word in words[: count // 2]]
    return [*words, *mixed, chooser.randbytes(70000), bytes(100_000), b"abc" * 30000, b"a", b""]


def compress(content: bytes, level: int, strategy: int) -> bytes:
    """Return the compressed content."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, 9, strategy)
    return compressor.compress(content) + compressor.flush()


def decompress(program: Path, streams: Iterable[tuple[bytes, int]]) -> bytes:
    """Return what the program writes for compressed contents and their sizes."""
    content = b"".join(struct.pack("<QQ", len(stream), size) + stream for stream, size in streams)
    environment = {**os.environ, **sanitizers.OPTIONS}
    done = subprocess.run([program], input=content, capture_output=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def damage(chooser: random.Random, stream: bytes) -> bytes:
    """Return a compressed content with a flipped bit, or without its end."""
    changed = bytearray(stream[: chooser.randrange(len(stream))] if chooser.random() < 0.3 else stream)
    for _ in range(chooser.randrange(1, 3) if changed else 0):
        changed[chooser.randrange(min(len(changed), 80))] ^= 1 << chooser.randrange(8)
    return bytes(changed)


def is_correct(stream: bytes, size: int) -> bool:
    """Return whether zlib decompresses a content to this size."""
    decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        return len(decompressor.decompress(stream)) == size and decompressor.eof
    except zlib.error:
        return False


def check_damaged(program: Path, contents: Sequence[bytes], chooser: random.Random) -> None:
    """Fail if the program accepts damaged contents that zlib rejects, or the reverse."""
    chosen = [chooser.choice(contents) for _ in range(500)]
    streams = [
        (damage(chooser, compress(content, chooser.choice((1, 6)), chooser.choice(STRATEGIES))), len(content))
        for content in chosen
    ]
    written, position = decompress(program, streams), 0
    for stream, size in streams:
        assert written[position] == is_correct(stream, size)
        position += 1 + size


def test_contents_are_decompressed(tmp_path: Path) -> None:
    contents = draw_contents(random.Random(os.environ[SEED]), 20)
    variants = [(content, level, strategy) for content in contents for level in (0, 1, 6, 9) for strategy in STRATEGIES]
    streams = [(compress(*variant), len(variant[0])) for variant in variants]
    expected = b"".join(b"\1" + content for content, *_ in variants)
    assert decompress(build_program(tmp_path, "-O1"), streams) == expected


def test_damaged_contents_are_rejected(tmp_path: Path) -> None:
    chooser = random.Random(os.environ[SEED])
    check_damaged(build_program(tmp_path, "-O1"), draw_contents(chooser, 20), chooser)


@pytest.mark.sanitizers
def test_damaged_contents_cause_no_memory_errors(tmp_path: Path) -> None:
    sanitizers.require(sanitizers.ADDRESS)
    chooser = random.Random(os.environ[SEED])
    check_damaged(build_program(tmp_path, *sanitizers.ADDRESS), draw_contents(chooser, 20), chooser)
