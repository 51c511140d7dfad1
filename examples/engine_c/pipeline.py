"""The engines of `pipeline.c`, and the same computation in Python.

    python pipeline.py FOLDER

writes `detector.engine`, `classifier.engine` and some `pictures`. The engines are linked and share one core. Their
weights are random, so the detected objects have no meaning. The program makes the same calls as with trained weights.
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
"""Two boxes are the same object if their intersection is larger than this share of their union."""

Array = NDArray[np.float32]


@dataclass(frozen=True)
class DetectedObject:
    """An object that the engines have detected.

    Attributes:
        picture: the index of the picture.
        box: the corners relative to the picture: left, top, right, bottom.
        score: the score of the detector.
        label: the index of the class.
    """

    picture: int
    box: Array
    score: float
    label: int


def backbone(kernels: Sequence[Any], x: Any) -> Any:
    """Return feature maps of pictures: convolutions with ReLU, each of which halves the height and the width."""
    for kernel in kernels:
        x = jax.nn.relu(jax.lax.conv(x, kernel, (2, 2), "SAME"))
    return x


def detector(weights: Any, pictures: Any) -> tuple[Any, Any]:
    """Return boxes and scores per cell of a grid. A box extends at most one cell from the middle of its cell."""
    features = backbone(weights["kernels"], pictures)
    flat = features.reshape(*features.shape[:2], -1).swapaxes(1, 2)
    reach = jax.nn.sigmoid(flat @ weights["boxes"]) * (CELL / SIZE)
    middles = (np.arange(SIZE // CELL, dtype=np.float32) + 0.5) * (CELL / SIZE)
    centers = np.stack(np.meshgrid(middles, middles), -1).reshape(-1, 2)
    boxes = jnp.concatenate([centers - reach[..., :2], centers + reach[..., 2:]], -1)
    return boxes, jax.nn.sigmoid(flat @ weights["scores"])[..., 0]


def classifier(weights: Any, crops: Any) -> Any:
    """Return the logits of the classes."""
    return backbone(weights["kernels"], crops).mean((2, 3)) @ weights["classes"]


def engines() -> list[Engine]:
    """Return the linked engines of the detector and the classifier."""
    rng = np.random.default_rng(0)

    def random_weights(*shape: int) -> Array:
        return (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:] or shape))).astype(np.float32)

    kernels = [random_weights(8, 3, 3, 3), random_weights(16, 8, 3, 3), random_weights(32, 16, 3, 3)]
    detector_weights = {
        "kernels": kernels,
        "boxes": random_weights(32, 4),
        "scores": np.float32(0.3) * random_weights(32, 1),
    }
    classifier_weights = {
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
        compile_part(detector, SIZE, detector_weights, ["boxes", "scores"]),
        compile_part(classifier, CROP, classifier_weights, ["logits"]),
    ]
    return diopi_engine.link(pair, cores=1)


def pictures() -> Array:
    """Return random pictures."""
    return np.random.default_rng(1).standard_normal((PICTURES, 3, SIZE, SIZE)).astype(np.float32)


def is_same_object(first: Array, second: Array) -> bool:
    """Return whether two boxes are the same object."""
    width, height = np.minimum(first[2:], second[2:]) - np.maximum(first[:2], second[:2])
    common = max(width, np.float32(0)) * max(height, np.float32(0))
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second))
    return bool(common > OVERLAP * (areas - common))


def select_objects(boxes: Array, scores: Array, threshold: float) -> Iterator[tuple[Array, float]]:
    """Yield the boxes and scores of the objects in a picture, the highest score first."""
    candidates: list[Array] = []
    for cell in np.argsort(-scores, kind="stable"):
        if scores[cell] > threshold and not any(is_same_object(boxes[cell], candidate) for candidate in candidates):
            candidates.append(boxes[cell])
            yield boxes[cell], float(scores[cell])


def crop(picture: Array, box: Array) -> Array:
    """Return the content of a box at the size that the classifier takes."""
    steps = (np.arange(CROP, dtype=np.float32) + np.float32(0.5)) / np.float32(CROP)
    columns, rows = (
        np.clip(((start + (end - start) * steps) * np.float32(SIZE)).astype(int), 0, SIZE - 1)
        for start, end in zip(box[:2], box[2:], strict=True)
    )
    return picture[:, rows][:, :, columns]


def detect_objects(group: Sequence[Engine], images: Array, threshold: float) -> list[DetectedObject]:
    """Return the objects in pictures: the detector finds them, and the classifier determines their classes."""
    detector_engine, classifier_engine = group
    pairs = zip(*detector_engine(images), strict=True)
    objects = [(n, *box) for n, pair in enumerate(pairs) for box in select_objects(*pair, threshold)]
    if not objects:
        return []
    (logits,) = classifier_engine(np.stack([crop(images[n], box) for n, box, _ in objects]))
    return [DetectedObject(*box, int(label)) for box, label in zip(objects, logits.argmax(-1), strict=True)]


def main(folder: Path) -> None:
    """Write the engines and the pictures to a folder, which is created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    for engine in engines():
        engine.save(folder / f"{engine.manifest.name}.engine")
    pictures().tofile(folder / "pictures")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
