"""The engines of `pipeline.c`, and the same computation in Python.

    python pipeline.py FOLDER

writes `detector.engine`, `classifier.engine` and some `pictures`. The engines are a group that shares one core. Their
weights are random: what is found means nothing, and the program does all that one with trained weights would.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import diopi_engine
from diopi_engine import Engine, Input

SIZE, CELL, CROP, CLASSES, PICTURES, MAX_BATCH = 32, 8, 16, 5, 6, 8

OVERLAP = np.float32(0.3)
"""Of two boxes, relative to what both cover, from which they are one object."""

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Found:
    """An object: its picture, its corners in parts of that, how sure the detector is, and its class."""

    picture: int
    box: Array
    score: float
    label: int


def backbone(kernels: Sequence[Any], x: Any) -> Any:
    """Convolutions that halve the size, with ReLU."""
    for kernel in kernels:
        x = jax.nn.relu(jax.lax.conv(x, kernel, (2, 2), "SAME"))
    return x


def detector(weights: Any, pictures: Any) -> tuple[Any, Any]:
    """Boxes and scores in the cells of a grid; a box reaches up to a cell from the middle of its own."""
    features = backbone(weights["kernels"], pictures)
    flat = features.reshape(*features.shape[:2], -1).swapaxes(1, 2)
    reach = jax.nn.sigmoid(flat @ weights["boxes"]) * (CELL / SIZE)
    middles = (np.arange(SIZE // CELL, dtype=np.float32) + 0.5) * (CELL / SIZE)
    centres = np.stack(np.meshgrid(middles, middles), -1).reshape(-1, 2)
    boxes = jnp.concatenate([centres - reach[..., :2], centres + reach[..., 2:]], -1)
    return boxes, jax.nn.sigmoid(flat @ weights["scores"])[..., 0]


def classifier(weights: Any, crops: Any) -> Any:
    """Logits of the classes."""
    return backbone(weights["kernels"], crops).mean((2, 3)) @ weights["classes"]


def engines() -> list[Engine]:
    """The detector and the classifier, linked."""
    rng = np.random.default_rng(0)

    def random_weights(*shape: int) -> Array:
        return (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:] or shape))).astype(np.float32)

    kernels = [random_weights(8, 3, 3, 3), random_weights(16, 8, 3, 3), random_weights(32, 16, 3, 3)]
    of_detector = {
        "kernels": kernels,
        "boxes": random_weights(32, 4),
        "scores": np.float32(0.3) * random_weights(32, 1),
    }
    of_classifier = {
        "kernels": [random_weights(8, 3, 3, 3), random_weights(16, 8, 3, 3)],
        "classes": random_weights(16, CLASSES),
    }
    options: dict[str, Any] = {"max_batch": MAX_BATCH, "patch": 4, "platforms": ["cpu"]}

    def compile_part(function: Callable[..., Any], size: int, weights: Any, outputs: list[str]) -> Engine:
        inputs = [Input("pictures", ("b", 3, size, size), layout="NCHW")]
        return diopi_engine.compile(
            function, inputs, weights=weights, outputs=outputs, name=function.__name__, **options
        )

    pair = [
        compile_part(detector, SIZE, of_detector, ["boxes", "scores"]),
        compile_part(classifier, CROP, of_classifier, ["logits"]),
    ]
    return diopi_engine.link(pair, cores=1)


def pictures() -> Array:
    """Random pictures."""
    return np.random.default_rng(1).standard_normal((PICTURES, 3, SIZE, SIZE)).astype(np.float32)


def is_same(actual: Array, expected: Array) -> bool:
    """Whether two boxes are one object."""
    width, height = np.minimum(actual[2:], expected[2:]) - np.maximum(actual[:2], expected[:2])
    common = max(width, np.float32(0)) * max(height, np.float32(0))
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (actual, expected))
    return bool(common > OVERLAP * (areas - common))


def chosen(boxes: Array, scores: Array, threshold: float) -> Iterator[tuple[Array, float]]:
    """Boxes and scores of the objects in a picture, the surest first."""
    candidates: list[Array] = []
    for cell in np.argsort(-scores, kind="stable"):
        if scores[cell] > threshold and not any(is_same(boxes[cell], candidate) for candidate in candidates):
            candidates.append(boxes[cell])
            yield boxes[cell], float(scores[cell])


def crop(picture: Array, box: Array) -> Array:
    """What is in a box, at the classifier's size."""
    steps = (np.arange(CROP, dtype=np.float32) + np.float32(0.5)) / np.float32(CROP)
    columns, rows = (
        np.clip(((start + (end - start) * steps) * np.float32(SIZE)).astype(int), 0, SIZE - 1)
        for start, end in zip(box[:2], box[2:], strict=True)
    )
    return picture[:, rows][:, :, columns]


def found(group: Sequence[Engine], boxes_given: Array, threshold: float) -> list[Found]:
    """What `pipeline.c` prints."""
    detector_engine, classifier_engine = group
    pairs = zip(*detector_engine(boxes_given), strict=True)
    objects = [(n, *box) for n, pair in enumerate(pairs) for box in chosen(*pair, threshold)]
    if not objects:
        return []
    (logits,) = classifier_engine(np.stack([crop(boxes_given[n], box) for n, box, _ in objects]))
    return [Found(*box, int(label)) for box, label in zip(objects, logits.argmax(-1), strict=True)]


def main(folder: Path) -> None:
    """Write the files."""
    for engine in engines():
        engine.save(folder / f"{engine.manifest.name}.engine")
    pictures().tofile(folder / "pictures")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
