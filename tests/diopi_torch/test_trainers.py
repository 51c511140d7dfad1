"""Libraries that train models use the device: accelerate, Hugging Face's Trainer, Lightning and safetensors.

A test is skipped if its library is not installed. docs/torch_device.md states what to pass to each library.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_impl.torch_cpu import vendor as torch_cpu  # noqa: E402  # behind the check for PyTorch

nn = torch.nn


@pytest.fixture(autouse=True)
def fast_device(activate_vendor: Callable[[Any], Any]) -> None:
    """Use a device whose vendor compiles nothing."""
    activate_vendor(torch_cpu)


def run_program(folder: Path, program: str) -> str:
    """Run a program that trains on the device of its own process; return what it prints."""
    environment = {
        "ACCELERATE_TORCH_DEVICE": "diopi",
        "DIOPI_TORCH_VENDOR": "torch_cpu",
        "HOME": str(folder),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_accelerate_trains_on_the_device_that_the_environment_names(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="pip install accelerate")
    program = """
import torch
from accelerate import Accelerator
from torch import nn
import diopi_torch
accelerator = Accelerator(mixed_precision="bf16")
model = nn.Linear(4, 2)
loader = torch.utils.data.DataLoader([torch.ones(4)] * 8, batch_size=4)
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), loader)
for batch in loader:
    accelerator.backward(model(batch).sum())
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
accelerator.save_state("state")
accelerator.load_state("state")
print({accelerator.device.type, batch.device.type, model.weight.device.type})
"""
    assert run_program(tmp_path, program) == "{'diopi'}\n"


def test_the_trainer_of_transformers_trains_on_the_device_that_the_environment_names(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="pip install accelerate")
    pytest.importorskip("transformers", reason="pip install 'diopi[models]'")
    program = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
import diopi_torch
config = LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)}] * 8
arguments = TrainingArguments("out", max_steps=2, report_to=[], disable_tqdm=True, gradient_checkpointing=True)
trainer = Trainer(LlamaForCausalLM(config), arguments, train_dataset=data)
trainer.train()
losses = trainer.evaluate(data)["eval_loss"], trainer.state.log_history[0]["train_loss"]
assert 0 < losses[0] < losses[1], losses
print(arguments.device, next(trainer.model.parameters()).device.type)
"""
    assert run_program(tmp_path, program).splitlines()[-1] == "diopi diopi"


def test_lightning_trains_on_the_device_with_the_accelerator_of_the_example(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="pip install lightning")
    example = (Path(__file__).parents[2] / "examples" / "lightning_accelerator.py").read_text("utf-8")
    assert run_program(tmp_path, example).splitlines()[-1] == "{'diopi'}"


def test_safetensors_are_loaded_on_the_cpu_and_moved(tmp_path: Path) -> None:
    files = pytest.importorskip("safetensors.torch", reason="pip install safetensors")
    model, copy = nn.Linear(3, 2).to("diopi"), nn.Linear(3, 2).to("diopi")
    files.save_model(model, str(tmp_path / "model"))
    copy.load_state_dict(files.load_file(tmp_path / "model"))
    assert torch.equal(copy.weight, model.weight) and copy.weight.device.type == "diopi"
    files.save_file({"half": model.weight.detach().bfloat16()}, str(tmp_path / "tensors"))
    assert torch.equal(files.load_file(tmp_path / "tensors")["half"].to("diopi"), model.weight.bfloat16())


def test_dlpack_shares_memory_on_the_device() -> None:
    x = torch.arange(4.0).to("diopi")
    for shared in (torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))):
        assert shared.device.type == "diopi" and shared.data_ptr() == x.data_ptr()
    assert torch.from_dlpack(x, device="cpu", copy=True).tolist() == [0, 1, 2, 3]
    assert torch.from_dlpack(torch.ones(2).numpy(), device="diopi").device.type == "diopi"


def test_experts_are_counted_with_histograms_of_integers() -> None:
    experts = torch.tensor([0, 1, 1, 3], device="diopi")
    for counts in (experts.histc(4, 0, 3), experts.int().histc(4, 0, 3), experts.bincount(minlength=4)):
        assert counts.tolist() == [1, 2, 0, 1]


def test_deterministic_mode_changes_no_result() -> None:
    places = torch.tensor([0, 0], device="diopi")
    image = torch.ones(1, 2, 4, 4, device="diopi", requires_grad=True)
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.zeros(3, device="diopi").index_add_(0, places, torch.ones(2, device="diopi")).tolist() == [2, 0, 0]
        assert torch.zeros(3, device="diopi").scatter_add_(0, places, torch.ones(2, device="diopi"))[0] == 2
        nn.functional.interpolate(image, scale_factor=2, mode="bilinear").sum().backward()
        for dtype in (torch.float32, torch.complex64, torch.bool, torch.uint8, torch.int64):  # new memory is filled
            filled = torch.empty(2, dtype=dtype), torch.empty_strided((2,), (1,), dtype=dtype, device="diopi")
            torch.testing.assert_close(filled[1].cpu(), filled[0], equal_nan=True)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(image.grad.cpu(), torch.full((1, 2, 4, 4), 4.0))


def test_mixed_precision_is_available_for_the_device() -> None:
    assert torch.amp.is_autocast_available("diopi") and torch.diopi.is_bf16_supported()
    layer, x = nn.Linear(3, 2).to("diopi"), torch.ones(1, 3, device="diopi")
    with torch.autocast("diopi", dtype=torch.bfloat16):
        assert layer(x).dtype is torch.bfloat16
    double = torch.amp.custom_fwd(lambda x: x.double(), device_type="diopi", cast_inputs=torch.float32)
    assert double(x).dtype is torch.float64
