"""The functions of LMDeploy decode a LLaMA model to exactly the tokens that NumPy computes.

`diopiMm` computes the output projection of attention and the head, which the engine does not contain.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import jax
import llama
import numpy as np
import pytest
from sampling import sampled
from toolchain import VENDORS, build, require_shared_python

from diopi_impl import BaseVendor, Box, find_vendor
from diopi_impl.jax_cpu.random import derive_key
from diopi_impl.native import NativeVendor
from diopi_proto.interface import lookup
from diopi_proto.parameters import InOutSize, Role, Workspace
from diopi_proto.types import Dtype, Error
from diopi_test.cases.lmdeploy.words import word_table
from lib_rt import Context, Generator, Tensor

Array = np.ndarray[Any, Any]

WAYS = ("top-k", "top-p")


def drawn_by_jax_cpu(times: int) -> Array:
    """Return the number from (0, 1] that each generator yields after a number of draws."""
    with jax.enable_x64(True):
        return np.array(
            [1 - jax.random.uniform(derive_key(np.array([s, times], np.uint64)), (), np.float64) for s in llama.SEEDS]
        )


@pytest.fixture(scope="module", params=sampled(WAYS, 1))
def way(request: pytest.FixtureRequest) -> str:
    """Return the way of decoding under test, see `WAYS`."""
    return str(request.param)


@pytest.fixture(scope="module")
def expected(way: str) -> Array:
    """Return the tokens that the reference implementation decodes."""
    return llama.decode(drawn_by_jax_cpu, way)


class Engine:
    """An inference engine on the functions of a vendor, with tensors of one context."""

    def __init__(self, vendor: BaseVendor, context: Context, way: str) -> None:
        self.vendor, self.context, self.way = vendor, context, way
        self.layers = [
            {role: self.tensor(weight) for role, weight in llama.layer_weights(n).items()} for n in range(llama.LAYERS)
        ]
        self.embedding, self.head = self.tensor(llama.embedding()), self.tensor(llama.head())
        self.last_norm = self.tensor(llama.last_norm())
        caches = np.full((llama.LAYERS, llama.BATCH, llama.KEYS, llama.TIMES, llama.SIZE), np.nan, np.float32)
        self.keys, self.values = self.tensor(caches), self.tensor(caches)
        self.output_ids = self.tensor(np.concatenate([llama.PROMPTS, np.full((9, llama.BATCH), -1)]))
        self.finished, self.should_stop = self.tensor(np.zeros(llama.BATCH, bool)), self.tensor(np.zeros(1, bool))
        self.padding, self.count = self.tensor(np.zeros(llama.BATCH, np.int64)), self.tensor(np.zeros(1, np.int64))
        self.lengths = self.tensor(np.full(llama.BATCH, llama.PROMPT))
        self.generators = [Generator(context, seed) for seed in llama.SEEDS]

    def tensor(self, array: Any) -> Tensor:
        """Return a contiguous tensor with a copy of the array."""
        return Tensor.from_numpy(self.context, np.ascontiguousarray(array))

    def call(self, name: str, *values: Any) -> None:
        """Call a function of the vendor, which must succeed."""
        assert self.vendor.call(name, self.context, *values) is Error.Success, self.vendor.last_error()

    def call_with_workspaces(self, name: str, **arguments: Any) -> None:
        """Query the sizes of the workspaces without tensors, and call the function with such workspaces."""
        parameters = lookup(name).parameters[1:]
        boxes = {p.name: Box(-1) for p in parameters if p.annotation is InOutSize}
        is_plain = {p.name: p.role is Role.attribute for p in parameters}
        self.call(name, *(boxes.get(p.name) or (arguments[p.name] if is_plain[p.name] else None) for p in parameters))
        assert all(box.value >= 0 for box in boxes.values())
        for p in parameters:
            if p.annotation is Workspace and p.name not in arguments:
                arguments[p.name] = Tensor.empty(self.context, (boxes[f"{p.name}_size"].value + 1,), Dtype.float32)
        self.call(name, *(boxes.get(p.name) or arguments[p.name] for p in parameters))

    def run_layer(self, number: int, x: Tensor, residual: Tensor, attend: Any) -> Tensor:
        """Run a layer on the normalized input x and the residual; return the summand of the next layer."""
        weights = self.layers[number]
        attend(number, x, weights)
        projected = self.tensor(np.zeros(x.shape, np.float32))
        self.call("diopiMm", projected, x, weights[llama.OUTPUT])
        norm = weights[llama.SECOND_NORM]
        self.call("diopiFusedAddRootMeanSquareNormInp", projected, residual, None, norm, llama.EPS)
        ffn = {"weight1": weights[llama.GATE], "weight2": weights[llama.DOWN], "weight3": weights[llama.UP]}
        self.call_with_workspaces("diopiFusedSiluFfnInp", inoutput=projected, **ffn, fusion_level=0)
        return projected

    def run_layers(self, x: Tensor, residual: Tensor, attend: Any) -> Tensor:
        """Run all layers and the last norm on the embeddings x and a copy of them."""
        self.call("diopiRootMeanSquareNormInp", x, self.layers[0][llama.NORM], llama.EPS)
        for number in range(llama.LAYERS):
            x = self.run_layer(number, x, residual, attend)
            last = number + 1 == llama.LAYERS
            norm = self.last_norm if last else self.layers[number + 1][llama.NORM]
            self.call("diopiFusedAddRootMeanSquareNormInp", x, residual, None, norm, llama.EPS)
        return x

    def shared_arguments(self, number: int, x: Tensor, weights: Any) -> dict[str, Any]:
        """Return the arguments that the attention functions of the prompt and of a step have in common, for a layer."""
        return {
            **{"inoutput": x, "qkv_weight": weights[llama.QKV], "qkv_bias": weights[llama.BIAS], "fusion_level": 1},
            **{"key_cache": self.keys, "value_cache": self.values, "layer_id": number},
            **{"local_head_num": llama.HEADS, "local_kv_head_num": llama.KEYS, "size_per_head": llama.SIZE},
            **{"max_seq_len": llama.TIMES, "rotary_embedding": llama.SIZE, "rope_theta": llama.THETA},
        }

    def prefill(self) -> Tensor:
        """Return the hidden state of the last token of each prompt."""
        tokens, width = llama.PROMPTS.size, llama.WIDTH
        ids = self.tensor(llama.PROMPTS.T.reshape(-1))
        x, residual = (self.tensor(np.zeros((tokens, width), np.float32)) for _ in range(2))
        for target in (x, residual):
            self.call("diopiInputIdsEmbeddingLookupPosEncoding", target, ids, self.embedding, tokens, width)

        def attend(number: int, x: Tensor, weights: Any) -> None:
            lengths = {"is_prepared": False, "max_q_len": llama.PROMPT, "max_kv_len": llama.PROMPT}
            self.call_with_workspaces(
                "diopiFusedContextAttentionInp", **self.shared_arguments(number, x, weights), **lengths
            )

        rows = self.run_layers(x, residual, attend).numpy().reshape(llama.BATCH, llama.PROMPT, width)
        by_time = self.tensor(np.zeros((llama.PROMPT, llama.BATCH, width), np.float32))
        self.call("diopiTransposeAxis01", by_time, self.tensor(rows), llama.BATCH, llama.PROMPT, width)
        return self.tensor(by_time.numpy()[-1])

    def decode(self, step: int) -> Tensor:
        """Return the hidden state of the latest token of each sequence."""
        x, residual = (self.tensor(np.zeros((llama.BATCH, llama.WIDTH), np.float32)) for _ in range(2))
        for target in (x, residual):
            place = llama.BATCH, llama.WIDTH, step - 1
            self.call("diopiEmbeddingLookupPosEncoding", target, self.embedding, self.output_ids, *place)

        def attend(number: int, x: Tensor, weights: Any) -> None:
            state = {"finished": self.finished, "total_padding_tokens": self.padding, "sequence_lengths": self.lengths}
            self.call_with_workspaces(
                "diopiFusedDecoderAttentionInp", **self.shared_arguments(number, x, weights), **state, step=step
            )

        return self.run_layers(x, residual, attend)

    def sample(self, hidden: Tensor, step: int) -> None:
        """Write a token of each sequence to `output_ids`, and update the finished sequences."""
        batch, words = llama.BATCH, llama.BANNED
        logits = self.tensor(np.zeros((batch, llama.PADDED), np.float32))
        self.call("diopiMm", logits, hidden, self.head)
        temperatures = self.tensor(np.full(batch, llama.TEMPERATURE, np.float32))
        sizes = batch, llama.VOCABULARY, llama.PADDED
        self.call("diopiBatchApplyTemperaturePenaltyInp", logits, None, temperatures, *sizes)
        penalties = self.tensor(np.full(batch, llama.PENALTY, np.float32))
        token_arguments = self.output_ids, batch, llama.PADDED, None, llama.PROMPT, step, 2
        self.call("diopiBatchApplyRepetitionPenaltyInp", logits, penalties, *token_arguments)
        banned = self.tensor(np.array(word_table(6, *words)))
        self.call("diopiBanBadWordsInp", logits, self.output_ids, banned, 0, 6, True, batch, llama.PADDED, step)
        self.draw(logits, step)
        stops = self.tensor(np.array([word_table(6, *llama.STOP)] * batch))
        self.call("diopiStopWordsCriterion", self.output_ids, stops, self.finished, 0, 6, batch, step)
        limits = self.tensor(np.array(llama.LIMITS))
        self.call("diopiLengthCriterion", self.finished, self.should_stop, self.count, limits, batch, step)

    def draw(self, logits: Tensor, step: int) -> None:
        """Draw the next token of each sequence by the way of sampling of this engine, and update the state."""
        batch, is_top_k = llama.BATCH, self.way == "top-k"
        ks, ps = self.tensor(np.zeros(batch, np.int64)), self.tensor(np.zeros(batch, np.float32))
        skip = self.tensor(np.zeros(batch, bool))
        chosen = batch, llama.TOP_K if is_top_k else 0, 0, llama.TOP_P, 0
        if is_top_k:
            self.call("diopiSetupTopkRuntimeArgsInp", ks, ps, skip, *chosen)
        else:
            buffers = [self.tensor(np.zeros(batch, np.float32)) for _ in range(3)]
            ids = self.tensor(np.zeros(batch, np.int64))
            buffer1, buffer2, buffer3 = buffers
            self.call(
                "diopiSetupToppRuntimeArgsInp", ks, ps, skip, *chosen, buffer1, buffer2, 1.0, buffer3, 0.5, ids, -1
            )
        self.call_with_workspaces(
            "diopiTopKSampling" if is_top_k else "diopiTopPSampling",
            **{"output_ids": self.output_ids, "logits": logits, "fusion_level": 0},
            **{"end_ids": self.tensor(np.full(batch, llama.END)), "finished": self.finished},
            **{"sequence_lengths": self.lengths, "step": step, "batch_size": batch, "vocab_size_padded": llama.PADDED},
            **({"runtime_top_k": ks} if is_top_k else {}),
            **{"runtime_top_p": ps, "skip_decode": skip, "cum_log_probs": None, "output_log_probs": None},
            generators=self.generators,
        )

    def run(self) -> Array:
        """Return all tokens by time and sequence."""
        batch, prompts = llama.BATCH, self.tensor(np.full(llama.BATCH, llama.PROMPT))
        self.call("diopiUpdatePaddingCount", self.padding, prompts, llama.PROMPT, batch)
        self.call("diopiPlusScalarInp", self.lengths, -1, batch)  # what is drawn counts before it is cached
        step = llama.PROMPT
        self.sample(self.prefill(), step)
        while not self.should_stop.numpy()[0]:
            step += 1
            self.sample(self.decode(step), step)
        room = llama.TIMES
        gathered = self.tensor(np.full((batch, room), -1))
        self.call("diopiGatherOutput", gathered, self.output_ids, prompts, llama.PROMPT, step + 1, room, batch)
        return gathered.numpy().T[: step + 1]


def decode_tokens(vendor: BaseVendor, way: str) -> Array:
    """Return the tokens that a vendor decodes."""
    with vendor.open_device() as device, Context(device) as context:
        engine = Engine(vendor, context, way)
        tokens = engine.run()
        for generator in engine.generators:
            generator.close()
        return tokens


def test_expected_tokens_are_not_trivial(expected: Array) -> None:
    generated = expected[llama.PROMPT :]
    assert len(generated) >= 6
    assert len(np.unique(generated)) > 6


def test_vendor_generates_the_expected_tokens(way: str, expected: Array) -> None:
    np.testing.assert_array_equal(decode_tokens(find_vendor("jax_cpu"), way), expected)


def test_exported_library_generates_the_expected_tokens(way: str, expected: Array, exported: Path) -> None:
    np.testing.assert_array_equal(decode_tokens(NativeVendor(exported), way), expected)


def test_c_framework_generates_the_expected_tokens(way: str, expected: Array, exported: Path, tmp_path: Path) -> None:
    require_shared_python()
    linked = (f"-L{exported.parent}", "-ldiopi_impl", f"-Wl,-rpath,{exported.parent}")
    program = build(tmp_path / "llama", "c", [VENDORS / "framework" / "llama.c"], *linked)
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([program, way], capture_output=True, text=True, timeout=300, env=bare)
    assert done.returncode == 0, done.stderr
    tokens = [[int(token) for token in line.split()] for line in done.stdout.splitlines()]
    np.testing.assert_array_equal(tokens, expected)
