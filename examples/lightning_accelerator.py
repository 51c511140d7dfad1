"""Train with Lightning on the device `diopi`, which Lightning's list of accelerators does not contain."""

from __future__ import annotations

from typing import Any

import lightning
import torch
from lightning.pytorch.accelerators import Accelerator
from lightning.pytorch.plugins.precision import MixedPrecision
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch.utils.data import DataLoader

import diopi_torch  # noqa: F401  # registers the device


class DiopiAccelerator(Accelerator):
    """The device as an accelerator of Lightning."""

    def setup_device(self, device: torch.device) -> None:
        """Do nothing: the device needs no preparation."""

    def teardown(self) -> None:
        """Do nothing: the device frees its memory itself."""

    @staticmethod
    def parse_devices(devices: Any) -> list[int]:
        """Return the number of the only device."""
        return [0]

    @staticmethod
    def get_parallel_devices(devices: Any) -> list[torch.device]:
        """Return the only device."""
        return [torch.device("diopi", 0)]

    @staticmethod
    def auto_device_count() -> int:
        """Return the number of devices."""
        return 1

    @staticmethod
    def is_available() -> bool:
        """Return whether the device is available."""
        return True

    @staticmethod
    def name() -> str:
        """Return the name of the accelerator."""
        return "diopi"


class Regression(lightning.LightningModule):
    """A linear layer, which records the devices of its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.devices: set[str] = set()

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        """Return the loss of a batch."""
        self.devices |= {batch.device.type, self.layer.weight.device.type}
        return self.layer(batch).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.AdamW(self.parameters())


model = Regression()
trainer = lightning.Trainer(
    accelerator=DiopiAccelerator(),
    strategy=SingleDeviceStrategy(device="diopi"),
    plugins=[MixedPrecision("bf16-mixed", "diopi")],
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(model, DataLoader(torch.ones(8, 4), batch_size=4))
print(model.devices)
