"""A program for CUDA as users write it: it names "cuda" and `torch.cuda` only. Its output does not depend on chance."""

import io
import sys
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

assert torch.cuda.is_available() and torch.cuda.device_count() == 1
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.cuda.set_device(0)
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
torch.backends.cudnn.benchmark = True

network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=False)
inputs = torch.arange(64.0).reshape(16, 4) / 64
loader = DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0.5).long()), batch_size=4, pin_memory=True)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
stream = torch.cuda.Stream()
start.record()
for batch, targets in loader:
    with torch.cuda.stream(stream), torch.autocast("cuda", dtype=torch.bfloat16):
        logits = network(batch.cuda(non_blocking=True))
        loss = nn.functional.cross_entropy(logits.float(), targets.to(device, non_blocking=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) >= 0
assert logits.dtype is torch.bfloat16 and loss.is_cuda and not inputs.is_cuda
assert torch.cuda.memory_allocated() > 0 and torch.cuda.max_memory_allocated(device) > 0

generator = torch.Generator(device="cuda").manual_seed(3)
noise = torch.randn(2, 3, device="cuda", generator=generator)
assert isinstance(generator, torch.Generator) and noise.device in (generator.device, torch.device("cuda:0"))
assert torch.equal(noise, torch.randn(2, 3, device=device, generator=generator.manual_seed(3)))
with torch.device("cuda"):
    assert torch.ones(2).is_cuda and nn.Linear(2, 2).weight.is_cuda
torch.set_default_device("cuda")
assert torch.zeros(3).is_cuda
torch.set_default_device(None)
assert torch.empty_like(noise, device="cuda:0").is_cuda and noise.new_zeros(2, device="cuda").is_cuda
assert noise.cuda(0) is noise and not noise.cpu().is_cuda
with torch.cuda.device("cuda:0"):
    assert isinstance(torch.cuda.Stream(device="cuda"), torch.cuda.Stream)

file = io.BytesIO()
torch.save(network.state_dict(), file)
for location in ("cuda", torch.device("cuda:0"), {"diopi:0": "cuda:0"}, "cpu"):
    file.seek(0)
    weight = torch.load(file, map_location=location)["0.weight"]
    assert weight.is_cuda is (location != "cpu") and torch.equal(weight.cpu(), network[0].weight.cpu())
with torch.cuda.amp.autocast(), torch.no_grad():
    assert torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") is torch.float16
    assert network(inputs.to("cuda")).dtype is torch.float16
torch.cuda.empty_cache()


def compute_in_thread() -> None:
    """Create a tensor in another thread."""
    sys.modules["diopi_torch"].as_cuda()
    assert torch.ones(2, device="cuda").is_cuda


thread = threading.Thread(target=compute_in_thread)
thread.start()
thread.join()
print("done on", torch.cuda.get_device_name(), noise.device, repr(noise[0]).split("device=")[1])
