"""Prepare a folder with the files that commands of the documentation assume: vendors, baselines, logs, keys.

tests/docs/test_shown_commands.py runs the commands in this folder. The constants are the contents of these files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import h5py

from diopi_test.baseline.location import package_folder
from diopi_test.baseline.manifest_writer import ManifestWriter
from diopi_test.execution.listing import list_cases

ROOT = Path(__file__).parents[2]

FUNCTIONS = (
    *("diopiAdd", "diopiIm2Col", "diopiNeg", "diopiPool2dBackward", "diopiSoftmax", "diopiSoftmaxBackward"),
    *("diopiSqrt", "diopiSqrtInp"),
)
"""The functions of the baseline in the folder. Commands run only these."""

MORE_OPERATORS = """

@vendor.implements("diopiAdd")
def add(input, other, alpha):
    from diopi_impl import UnsupportedDtypeError

    if {input.dtype, np.asarray(other).dtype} != {np.dtype(np.float32)}:
        raise UnsupportedDtypeError("only float32 is supported")
    return input + np.float32(alpha) * other


@vendor.implements("diopiNeg")
def neg(input):
    from diopi_impl import UnsupportedDtypeError

    if input.dtype != np.float32:
        raise UnsupportedDtypeError("only float32 is supported")
    return -input
"""
"""Operators that are appended to the example's vendor, so that the module `my_vendor` has those that pages name."""

WRONG_OPERATOR = """

@vendor.implements("diopiNeg")
def neg(input):
    return input
"""
"""A defect for the vendor `earlier`, so that comparisons with its report show a difference."""

NETWORK = """
import argparse
import torch

batch = argparse.ArgumentParser()
batch.add_argument("--batch", type=int, default=2)
print(torch.nn.functional.softmax(torch.ones(batch.parse_known_args()[0].batch, 3), 1))
"""
"""The program `net.py`, whose calls `diopi-test trace` records."""

BROKEN_PROGRAM = """
import my_kernels
import torch

my_kernels.enable()
x = torch.linspace(-1e-3, 1e-3, 7, requires_grad=True)
loss = torch.tanh(x).sum()
loss.backward()
"""
"""The program `broken.py`, whose wrong `tanh` a watch finds."""

CONFIGURATION = """
import numpy as np

diopi_configs = {
    "sigmoid": dict(
        name=["sigmoid"],
        interface=["torch"],
        tensor_para=dict(args=[dict(ins=["input"], shape=((3, 4),), dtype=[np.float32, np.float64])]),
    )
}
"""
"""A configuration of cases of the original suite, for `diopi-test import-config`."""

DEVICE_CONFIGURATION = """
import numpy as np
from skip import Skip

device_configs = {
    "sigmoid": dict(name=["sigmoid"], tensor_para=dict(args=[dict(ins=["input"], dtype=[Skip(np.float64)])])),
}
"""
"""A list of the cases that a vendor skips in the original suite."""

PLAN = """
[[run]]
name = "all"
vendor = "my_vendor"
waivers = ["waivers.toml"]
"""
"""A plan for `diopi-test run --plan`: the runs and their options."""

NUMERICS = """
name = "my_chip"
float32_products = "tf32"
"""
"""A declaration of an arithmetic."""

WAIVERS = """
[[waiver]]
pattern = "diopiAdd[float16-*]"
reason = "the sums of half precision are being rewritten"
verdict = "failed"
"""
"""The waivers of the plan."""

ENTRY_POINTS = "[diopi.vendors]\nmy_vendor = my_vendor:vendor\n"
METADATA = "Metadata-Version: 2.1\nName: my-vendor\nVersion: 0.1\n"
"""With `ENTRY_POINTS`, the metadata of an installed package that registers `my_vendor`."""


def prepare(folder: Path) -> None:
    """Write the files of the documentation's commands into `folder`, which is empty."""
    _write_vendors(folder)
    texts = {
        "net.py": NETWORK,
        "broken.py": BROKEN_PROGRAM,
        "train.py": (ROOT / "tests" / "helpers" / "small_language_model.py").read_text("utf-8"),
        "plan.toml": PLAN,
        "waivers.toml": WAIVERS,
        "my_chip.toml": NUMERICS,
        "trusted_keys": "",
        **dict.fromkeys(("configs.py", "diopi_configs.py"), CONFIGURATION),
        "device_configs.py": DEVICE_CONFIGURATION,
        "diopi_test/cases/smoke_selection.json": "{}\n",
        "docs/mutation_testing.md": "",
    }
    for name, text in texts.items():
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_text(text, "utf-8")
    _make_baselines(folder)
    execute("diopi-test export --vendor my_vendor --output build", folder)
    _run_vendors(folder)
    _sign(folder)


def _write_vendors(folder: Path) -> None:
    """Write `my_vendor` as if it were installed, `my_package.module`, and a vendor with a defect."""
    example = (ROOT / "examples" / "numpy_vendor" / "numpy_vendor.py").read_text("utf-8")
    texts = {
        "my_vendor.py": example + MORE_OPERATORS,
        "my_kernels.py": (ROOT / "tests" / "helpers" / "my_kernels.py").read_text("utf-8"),
        "my_package/__init__.py": "",
        "my_package/module.py": "from diopi_impl.jax_cpu import vendor\n",
        "my_package/train.py": NETWORK,
        "earlier.py": example + WRONG_OPERATOR,
        "my_vendor-0.1.dist-info/entry_points.txt": ENTRY_POINTS,
        "my_vendor-0.1.dist-info/METADATA": METADATA,
        "baseline_data/__init__.py": "",
    }
    for name, text in texts.items():
        folder.joinpath(name).parent.mkdir(exist_ok=True)
        folder.joinpath(name).write_text(text, "utf-8")


def _make_baselines(folder: Path) -> None:
    """Write the levels smoke, which hides the installed one, and full, to two folders each.

    Both have the data of a few functions from the installed level smoke.
    """
    levels = {
        **{folder / name: "smoke" for name in ("baseline_data", "fuzz-3")},
        **{data: "full" for data in (folder / "build" / "data", _cache(folder))},
    }
    for data, level in levels.items():
        data.joinpath(level).mkdir(parents=True)
        manifest = ManifestWriter(data / level, level, list_cases)
        for name in FUNCTIONS:
            copy = shutil.copy(package_folder() / "smoke" / f"{name}.h5", data / level)
            with h5py.File(copy, "r+") as file:
                file.attrs["level"] = level
            manifest.add_file(name)
        manifest.save()


def _cache(folder: Path) -> Path:
    """Return the folder in which commands find earlier baselines."""
    return folder / "cache" / "diopi" / version("diopi") / "baseline"


def _run_vendors(folder: Path) -> None:
    """Write the reports, logs and findings of runs."""
    run = "diopi-test run --vendor my_vendor -n 1"
    execute(f"{run} --log run.log.jsonl --json after.json", folder)
    execute(f"{run} -k diopiSqrt --log LOG --json AFTER", folder)
    execute("diopi-test history add run.log.jsonl && diopi-test history add run.log.jsonl --db history.sqlite", folder)
    execute("diopi-test run --vendor earlier:vendor -n 1 --json report.json", folder, status=None)
    for name in ("before.json", "BEFORE"):
        shutil.copy(folder / "report.json", folder / name)
    execute("python -m diopi_torch.watch --cases wrong_calls -- broken.py", folder, status=1)
    execute("diopi-test import-config configs.py device_configs.py --output imported", folder)


def _sign(folder: Path) -> None:
    """Make a key pair, lists of trusted keys, and two archives of evidence, one of them signed."""
    folder.joinpath(".ssh").mkdir(mode=0o700)
    execute("ssh-keygen -q -t ed25519 -N '' -f key && cp key key.pub .ssh && mv .ssh/key .ssh/id_ed25519", folder)
    public = folder.joinpath("key.pub").read_text()
    folder.joinpath("signers").write_text(f"lab@example.org {public}")
    folder.joinpath("trusted_keys").write_text(f"me@chips.example {public}")
    for archive in ("run.diopi.zip", "result.diopi.zip"):
        execute(f"diopi-test submit run.log.jsonl {archive} --sign key", folder)


def environment_of(folder: Path) -> Mapping[str, str]:
    """Return the environment of a command: a home and caches in `folder`, where Python looks for modules first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    python_path = os.pathsep.join([str(folder), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    settings = {"HOME": folder, "XDG_CACHE_HOME": folder / "cache", "XDG_STATE_HOME": folder / "state"}
    variables = {"PATH": path, "PYTHONPATH": python_path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**inherited, **{name: str(value) for name, value in settings.items()}, **variables}


def execute(command: str, folder: Path, status: int | None = 0) -> str:
    """Run a command with a shell, and return what it prints.

    Args:
        command: the command.
        folder: the working directory, which `prepare` filled.
        status: the expected exit status; any other raises AssertionError. None accepts every status.

    Returns:
        The standard output, then the standard error.
    """
    words: Sequence[str] = ["bash", "-o", "pipefail", "-c", command]
    process = subprocess.run(
        words, cwd=folder, env=environment_of(folder), capture_output=True, text=True, timeout=1800, check=False
    )
    output = process.stdout + process.stderr
    assert status is None or process.returncode == status, f"{command}: status {process.returncode}\n{output}"
    return output
