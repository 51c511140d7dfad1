"""`torch.Generator(device="diopi")`, and generators of other devices."""

import copy
import pickle
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch.generators  # noqa: E402  # behind the check for PyTorch


@pytest.mark.parametrize("device", ["diopi", "diopi:0", torch.device("diopi", 0)])
def test_a_generator_of_the_device_determines_samples(vendor: AlteredVendor, device: Any) -> None:
    generator = torch.Generator(device=device).manual_seed(3)
    assert isinstance(generator, torch.Generator)
    assert (generator.device, generator.initial_seed()) == (torch.device("diopi", 0), 3)
    first, second = (torch.rand(4, device="diopi", generator=generator) for _ in range(2))
    assert not torch.equal(first, second)
    generator.manual_seed(3)
    assert torch.equal(torch.rand(4, device="diopi", generator=generator), first)


def test_a_state_can_be_restored_copied_and_pickled(vendor: AlteredVendor) -> None:
    generator = torch.Generator("diopi").manual_seed(5)
    torch.rand(4, device="diopi", generator=generator)
    state = generator.get_state()
    copies = [generator.clone_state(), pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator)]
    expected = torch.rand(4, device="diopi", generator=generator)
    generator.set_state(state)
    for restored in [generator, *copies]:
        assert restored.device.type == "diopi"
        assert torch.equal(torch.rand(4, device="diopi", generator=restored), expected)


def test_generators_of_the_cpu_are_those_of_pytorch() -> None:
    generator = torch.Generator()
    assert type(generator) is diopi_torch.generators.ORIGINAL
    assert isinstance(generator, torch.Generator) and not isinstance(3, torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)
    assert type(pickle.loads(pickle.dumps(generator))) is type(generator)
    with pytest.raises(RuntimeError, match="nowhere"):
        torch.Generator("nowhere")
