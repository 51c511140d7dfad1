"""Network configurations of the original suite, and the networks of level `models` that replace them.

The original has one file per network, `model_config/*/NAME_config.py`. Its dictionary `NAME_config` holds calls that
were recorded while the network was trained. The level `models` has such calls, too, so the files are not translated.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from diopi_proto.interface import prototypes
from diopi_test.original.names import meanings
from diopi_test.original.source import RawEntry, Source
from diopi_test.traces.files import load_shipped_trace, model_names

MAX_NETWORKS = 3
"""Maximum number of networks that are suggested for a network that `REPLACEMENTS` does not list."""

REPLACEMENTS: Mapping[str, Sequence[str]] = {
    "atss": ("retinanet",),
    "cascade_rcnn": ("retinanet", "resnet50"),
    "crnn": ("lstm", "deep_speech"),
    "dbnet": ("resnet18", "fcn"),
    "deeplabv3": ("deeplab",),
    "deeplabv3plus": ("deeplab",),
    "deeppose": ("resnet50",),
    "dyhead": ("retinanet", "deformable_detr"),
    "faster_rcnn_r50": ("retinanet", "resnet50"),
    "fcos": ("retinanet",),
    "hrnet": ("resnet50", "unet"),
    "inceptionv3": ("inception",),
    "mask_rcnn": ("retinanet", "fcn"),
    "pointpillars": ("pointnet", "ssd"),
    "repvgg": ("vgg16", "resnet18"),
    "resnet101": ("resnet50",),
    "sar": ("resnet18", "lstm"),
    "seresnet50": ("resnet50", "efficientnet"),
    "shufflenet_v2": ("shufflenet",),
    "slowfast": ("c3d", "unet3d"),
    "solo": ("retinanet", "fcn"),
    "ssd300": ("ssd",),
    "stgcn": ("resnet18", "pointnet"),
    "swin_transformer": ("swin",),
    "tsn": ("resnet50",),
    "upernet": ("pspnet", "resnet50"),
    "yolov3": ("yolo",),
    "yolov5": ("yolo",),
}
"""For original networks without a namesake in level `models`: the networks of this level with similar calls."""


def network_name(source: Source) -> str | None:
    """Return the name of the network that a source configures, or None if it is not a network configuration.

    A network configuration is recognized by the name of its dictionary: `NAME_config`, in the singular.
    """
    names = {match[1] for entry in source.entries if (match := re.fullmatch(r"(\w+)_config", entry.dictionary))}
    return names.pop() if len(names) == 1 else None


def advice(name: str, entries: Sequence[RawEntry]) -> str:
    """Return what to run instead of the network configuration `name`.

    Args:
        name: The network's name in the original suite.
        entries: The entries of its configuration.

    Returns:
        A sentence with the commands that run networks of level `models`, and the functions that these do not call.
    """
    called = {base for entry in entries for base in _bases(entry.content)}
    networks = replacements(name, called)
    commands = [f"diopi-test run --level models --model {network}" for network in networks]
    if uncovered := sorted(called - _bases_called_by(networks)):
        functions = " ".join(f"--function {function}" for function in uncovered)
        commands.append(f"diopi-test run --level full {functions}")
    commands_of_networks = " && ".join(commands) or "diopi-test run --level models"
    return f"network configurations are not translated; instead, run: {commands_of_networks}"


def replacements(name: str, called: Collection[str]) -> Sequence[str]:
    """Return the networks of level `models` that replace the original network `name`.

    Args:
        name: The network's name in the original suite.
        called: The functions that it calls, which decide if the name is unknown.

    Returns:
        The names of the networks.
    """
    if name in model_names():
        return (name,)
    return REPLACEMENTS.get(name) or tuple(_networks_that_cover(called))


def _networks_that_cover(called: Collection[str]) -> Iterator[str]:
    """Yield networks that together call these functions, as far as any network calls them; at most `MAX_NETWORKS`."""
    uncovered = set(called)
    for _ in range(MAX_NETWORKS):
        best = max(model_names(), key=lambda name: len(uncovered & _bases_called_by([name])))
        if not uncovered & _bases_called_by([best]):
            return
        yield best
        uncovered -= _bases_called_by([best])


def _bases(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the functions that an entry calls, in their plain form."""
    names = content.get("name")
    for name in names if isinstance(names, list | tuple) else [names]:
        if isinstance(name, str) and (candidates := meanings(name)):
            yield candidates[0].prototype.base


def _bases_called_by(networks: Collection[str]) -> set[str]:
    """Return the functions that networks call, in their plain form."""
    return {base for network in networks for base in _bases_of_network(network)}


@cache
def _bases_of_network(network: str) -> frozenset[str]:
    """Return the base functions that the shipped trace of a network calls."""
    return frozenset(prototypes()[call.function].base for call in load_shipped_trace(network).calls)
