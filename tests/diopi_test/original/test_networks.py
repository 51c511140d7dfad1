"""For configurations of networks, the import names networks of level `models` and translates nothing."""

from pathlib import Path

import pytest

from diopi_test.original.folder import ImportSummary, import_files
from diopi_test.original.networks import REPLACEMENTS, replacements
from diopi_test.traces.files import model_names

ENTRIES = """
import numpy as np
{name} = {{
    'conv2d': dict(name=['conv2d'], interface=['torch.nn.functional'], para=dict(stride=[1]), tensor_para=dict(args=[
        dict(ins=['input'], shape=((2, 3, 9, 9),), dtype=[np.float32]),
        dict(ins=['weight'], shape=((8, 3, 3, 3),), dtype=[np.float32]),
    ])),
    'second': dict(name=['{function}'], tensor_para=dict(args=[dict(ins=['input'], shape=((2, 3),))])),
}}
"""

ORIGINAL_NETWORKS = (
    "atss cascade_rcnn centernet convnext crnn dbnet deeplabv3 deeplabv3plus deeppose densenet detr dyhead "
    "efficientnet faster_rcnn_r50 fcn fcos hrnet inceptionv3 llama mask_rcnn mobilenet_v2 mobilenet_v3 "
    "pointpillars pspnet repvgg resnet50 resnet101 retinanet sar seresnet50 shufflenet_v2 slowfast solo ssd300 "
    "stgcn swin_transformer tsn unet upernet vgg16 vit yolov3 yolov5"
)
"""Names of networks for which the original suite has configurations."""


def import_networks(folder: Path, dictionary: str, function: str = "relu") -> ImportSummary:
    """Import a dictionary of networks of the original suite."""
    path = folder / f"{dictionary}.py"
    path.write_text(ENTRIES.format(name=dictionary, function=function))
    return import_files([path], folder / "out", lambda *done: None)


@pytest.mark.parametrize("name", ORIGINAL_NETWORKS.split())
def test_every_network_of_the_original_suite_has_a_replacement(name: str) -> None:
    networks = replacements(name, ())
    assert networks and set(networks) <= set(model_names())


def test_no_replacement_is_listed_for_a_network_that_has_a_namesake() -> None:
    assert not set(REPLACEMENTS) & set(model_names())


def test_a_network_configuration_is_not_translated_but_has_a_replacement(tmp_path: Path) -> None:
    found = import_networks(tmp_path, "resnet50_config")
    assert not found.cases and not found.not_translated
    (note,) = found.notes
    assert note.startswith(f"{tmp_path}/resnet50_config.py: network configurations are not translated; ")
    assert note.endswith("instead, run: diopi-test run --level models --model resnet50")


def test_functions_that_the_networks_do_not_call_are_named(tmp_path: Path) -> None:
    (note,) = import_networks(tmp_path, "mask_rcnn_config", "roi_align").notes
    assert "--model retinanet && diopi-test run --level models --model fcn && " in note
    assert note.endswith(" && diopi-test run --level full --function diopiRoiAlign")


def test_an_unknown_network_is_replaced_by_networks_that_call_its_functions(tmp_path: Path) -> None:
    (note,) = import_networks(tmp_path, "novel_config", "erfinv").notes
    assert "--level models --model " in note and note.endswith("--function diopiErfinv")
    (note,) = import_networks(tmp_path, "novel_config", "sigmoid").notes
    assert "--level full" not in note


def test_a_case_configuration_is_translated(tmp_path: Path) -> None:
    found = import_networks(tmp_path, "diopi_configs")
    assert (not found.notes and sorted(found.cases) == ["diopiConvolution2d", "diopiRelu"]) or found.not_translated
