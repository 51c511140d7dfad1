"""Entries of case configurations become cases; for other entries, the reason is stated."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from diopi_proto.types import Dtype, Reduction
from diopi_test.baseline.descriptions import described_functions
from diopi_test.baseline.on_demand import ComputationOutcome, compute_described
from diopi_test.baseline.store import BaselineFile
from diopi_test.cases.case import CaseClass
from diopi_test.execution.listing import list_stored_cases
from diopi_test.oracle.records import BaselineCase, Expected
from diopi_test.original.folder import ImportSummary, import_files

Item = TypeVar("Item")
Result = TypeVar("Result")

RANDN = "gen_fn='Genfunc.randn'"
INPUT = f"tensor_para=dict({RANDN}, args=[dict(ins=['input'], shape=((2, 3),))])"


def import_entries(folder: Path, *entries: str) -> ImportSummary:
    """Import these entries of a configuration."""
    path = folder / "configs.py"
    path.write_text(
        "import numpy as np\nconfigs = {\n" + ",\n".join(f"'{i}': {e}" for i, e in enumerate(entries)) + "}"
    )
    return import_files([path], folder / "imported", lambda *done: None)


def cases(folder: Path, *entries: str) -> dict[str, BaselineCase]:
    """Return the cases of entries that can be translated completely, with their results, by ID."""
    found = import_entries(folder, *entries)
    assert found.not_translated == []
    return {case.id: case for case in compute_cases(folder / "imported")}


def compute_cases(data: Path) -> list[BaselineCase]:
    """Return all cases of a folder, none of which the reference rejects, with their results."""
    functions = described_functions(data)
    translated: list[ComputationOutcome] = []
    compute_described(
        data, "smoke", functions, in_turn, list_stored_cases, lambda name, outcome: translated.append(outcome)
    )
    assert not [line for outcome in translated for line in (*outcome.rejected, *outcome.errors)]
    return [case for function in functions for case in BaselineFile(data / "smoke" / f"{function}.h5")]


def in_turn(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[Item, Result]]:
    """Do the work in this process, as `parallel.process_map` does in several processes."""
    return ((item, work(item)) for item in items)


def shapes(case: BaselineCase) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensor arguments of a case, by name."""
    return {name: value.values.shape for name, value in case.arguments.items() if hasattr(value, "values")}


def result(case: BaselineCase, name: str = "out") -> Expected:
    """Return an expected result of a case, which must be a single tensor."""
    found = case.expected[name]
    assert isinstance(found, Expected)
    return found


def test_a_convolution_is_translated_with_its_gradient(tmp_path: Path) -> None:
    translated = cases(
        tmp_path,
        "dict(name=['conv2d'], interface=['torch'], atol=1e-3, rtol=1e-3, saved_args=dict(input=0),"
        "dtype=[np.float16, np.float32], para=dict(stride=[2, (2, 1)], padding=[0, 1]),"
        "tensor_para=dict(gen_fn='Genfunc.randn', gen_policy='default', args=["
        "dict(ins=['input'], requires_grad=[True], shape=((2, 3, 8, 8), (1, 3, 7, 9))),"
        "dict(ins=['weight'], requires_grad=[True], shape=((4, 3, 3, 3), (6, 3, 3, 3))),"
        "dict(ins=['bias'], requires_grad=[True], shape=((4,), None))]))",
    )
    labels = [f"{dtype}-0-{number}" for dtype in ("float16", "float32") for number in (0, 1)]
    assert set(translated) == {f"diopiConvolution2d{end}[{label}]" for end in ("", "Backward") for label in labels}
    first, second = (translated[f"diopiConvolution2d[float16-0-{number}]"] for number in (0, 1))
    assert first.arguments["stride"] == (2, 2) and second.arguments["stride"] == (2, 1)
    assert (first.arguments["padding"], first.arguments["dilation"], first.arguments["groups"]) == ((0, 0), (1, 1), 1)
    assert shapes(first) == {"input": (2, 3, 8, 8), "weight": (4, 3, 3, 3), "bias": (4,)}
    assert second.arguments["bias"] is None and second.dtype is Dtype.float16
    gradient = translated["diopiConvolution2dBackward[float16-0-0]"]
    assert shapes(gradient)["grad_output"] == result(first).values.shape == (2, 4, 3, 3)
    assert gradient.arguments["bias_sizes"] == (4,)


def test_a_gradient_takes_results_of_the_forward_call(tmp_path: Path) -> None:
    args = "dict(ins=['input'], shape=((1, 2, 4, 4),), requires_grad=[True], gen_fn='Genfunc.randn')"
    translated = cases(
        tmp_path,
        f"dict(name=['softmax'], para=dict(dim=[1]), tensor_para=dict(args=[{args}]))",
        f"dict(name=['max_pool2d'], para=dict(kernel_size=[2]), tensor_para=dict(args=[{args}]))",
    )
    output = translated["diopiSoftmaxBackward[float32-0-0]"].arguments["output"].values
    np.testing.assert_allclose(output.sum(axis=1), 1, rtol=1e-6)
    pooled = translated["diopiMaxPool2dBackward[float32-1-0]"]
    assert pooled.arguments["stride"] == (2, 2)
    indices = pooled.arguments["indices"]
    found = pooled.arguments["input"].values.reshape(1, 2, 16).max(axis=2)
    arguments_of_gradient = np.take_along_axis(
        pooled.arguments["input"].values.reshape(1, 2, 16), indices.values.reshape(1, 2, 4), 2
    )
    assert indices.dtype is Dtype.int64 and np.array_equal(arguments_of_gradient.max(axis=2), found)


def test_group_normalization_is_translated_with_its_gradient(tmp_path: Path) -> None:
    """When the class of the case is determined, the gradient of the result has no layout yet."""
    tensors = [
        "dict(ins=['input'], requires_grad=[True], shape=((2, 4, 3),))",
        "dict(ins=['weight', 'bias'], requires_grad=[True], shape=((4,),))",
    ]
    para = "para=dict(num_groups=[2], eps=[1e-5])"
    found = cases(tmp_path, f"dict(name=['group_norm'], {para}, tensor_para=dict(args=[{', '.join(tensors)}]))")
    assert list(found) == ["diopiGroupNorm[float32-0-0]", "diopiGroupNormBackward[float32-0-0]"]


@pytest.mark.parametrize(
    ("entry", "ids"),
    [
        (f"dict(name=['add', 'mul'], para=dict(other=[2.5]), {INPUT})", ["diopiAddScalar", "diopiMulScalar"]),
        (f"dict(name=['max', 'sum'], {INPUT})", ["diopiMaxAll", "diopiSum"]),
        (f"dict(name=['max', 'sum'], para=dict(dim=[1]), {INPUT})", ["diopiMax", "diopiSum"]),
        (f"dict(name=['exp'], is_inplace=True, {INPUT})", ["diopiExp", "diopiExpInp"]),
        (f"dict(name='log_softmax', interface='torch', para=dict(dim=[0]), {INPUT})", ["diopiLogSoftmax"]),
        (
            "dict(name=['cat'], tensor_para=dict(args=[dict(ins=['tensors'], shape=(((2, 3), (1, 3)),))]))",
            ["diopiCat"],
        ),
        ("dict(name=['randperm'], para=dict(n=[7]), dtype=[np.int64])", ["diopiRandperm"]),
    ],
)
def test_the_first_function_that_accepts_the_arguments_is_used(tmp_path: Path, entry: str, ids: Sequence[str]) -> None:
    dtype = "int64" if "randperm" in entry else "float32"
    assert list(cases(tmp_path, entry)) == [f"{function}[{dtype}-0-0]" for function in ids]


def test_a_loss_may_have_a_target_of_another_type(tmp_path: Path) -> None:
    translated = cases(
        tmp_path,
        "dict(name=['cross_entropy'], para=dict(reduction=['sum']), tensor_para=dict(args=["
        "dict(ins=['input'], shape=((40, 5),), dtype=[np.float32, np.float64], gen_fn='Genfunc.randn'),"
        "dict(ins=['target'], shape=((40,),), dtype=[np.int64], gen_fn=dict(fn='Genfunc.randint', low=1, high=4))]))",
    )
    assert set(translated) == {"diopiCrossEntropyLoss[float32-0-0]", "diopiCrossEntropyLoss[float64-0-0]"}
    arguments = translated["diopiCrossEntropyLoss[float32-0-0]"].arguments
    assert arguments["reduction"] is Reduction.sum and arguments["ignore_index"] == -100
    assert set(np.unique(arguments["target"].values)) == {1, 2, 3}


def test_values_strides_and_the_callers_result(tmp_path: Path) -> None:
    translated = cases(
        tmp_path,
        "dict(name=['nonzero'], tensor_para=dict(args=[dict(ins=['input'], value=([1, 0, 2],), dtype=[np.int64])]))",
        f"dict(name=['neg'], tensor_para=dict({RANDN}, args=[dict(ins=['input'], shape=((2, 3),), stride=((1, 2),))]))",
        f"dict(name=['sum'], para=dict(dim=[1], keepdim=[True], dtype=[np.float64]), {INPUT})",
        f"dict(name=['mean'], para=dict(keepdim=[True]), {INPUT})",
        "dict(name=['expand'], para=dict(size=[(4, 3)]), tensor_para=dict(args=[dict(ins='input', shape=((1, 3),))]))",
    )
    assert translated["diopiNonzero[int64-0-0]"].arguments["input"].values.tolist() == [1, 0, 2]
    assert translated["diopiNeg[float32-1-0]"].arguments["input"].layout == "strides(1,2)"
    total = result(translated["diopiSum[float32-2-0]"])
    assert total.values.shape == (2, 1) and total.dtype is Dtype.float64
    assert result(translated["diopiMean[float32-3-0]"]).values.shape == (1, 1)
    assert result(translated["diopiExpand[float32-4-0]"]).values.shape == (4, 3)


@pytest.mark.parametrize(
    ("generator", "low", "high"),
    [
        ("'Genfunc.rand'", 0, 1),
        ("Genfunc.ones", 1, 1),
        ("'Genfunc.zeros'", 0, 0),
        ("dict(fn='Genfunc.uniform', low=2, high=3)", 2, 3),
        ("Genfunc.uniform(4, 5)", 4, 5),
        ("dict(fn=Genfunc.randint, high=1)", 0, 0),
        ("dict(fn='Genfunc.full', fill_value=7)", 7, 7),
        ("'Genfunc.positive'", 0, 10),
        ("'Genfunc.uniform'", 0, 10),
        ("'Genfunc.nobody_knows'", -1000, 1000),
    ],
)
def test_generators_become_domains(tmp_path: Path, generator: str, low: float, high: float) -> None:
    entry = f"dict(name=['neg'], tensor_para=dict(gen_fn={generator}, args=[dict(ins=['input'], shape=((50,),))]))"
    values = cases(tmp_path, entry)["diopiNeg[float32-0-0]"].arguments["input"].values
    assert values.min() >= low and values.max() <= high


@pytest.mark.parametrize(
    ("entry", "arguments"),
    [
        ("name=['embedding'], para=dict(padding_idx=[None])|input=int64(3) weight=float32(5,2)", {"padding_idx": -1}),
        ("name=['arange'], para=dict(start=[1], end=[6], step=[2]), dtype=[np.int64]|", {"step": 2}),
        (
            "name=['split'], para=dict(split_size_or_sections=[[1, 2]], dim=[0])|tensor=float32(3,2)",
            {"splitSizes": (1, 2)},
        ),
        (
            "name=['interpolate'], para=dict(size=[(4, 4)], mode=['bilinear'])|input=float32(1,2,3,3)",
            {"mode": "bilinear"},
        ),
        ("name=['interpolate'], para=dict(size=[(4, 4)], mode=['nearest'])|input=float32(1,2,3,3)", {"size": (4, 4)}),
        ("name=['cdist']|x1=float32(3,2) x2=float32(4,2)", {"p": 2.0}),
        ("name=['std'], para=dict(dim=[0], unbiased=[True])|input=float32(3,2)", {"correction": None}),
        ("name=['clamp'], para=dict(min=[-1.0], max=[None])|input=float32(3)", {"max": None}),
        ("name=['div'], para=dict(rounding_mode=[None])|input=float32(3) other=float32(3)", {"rounding_mode": 0}),
    ],
)
def test_renamed_and_implied_arguments_are_translated(tmp_path: Path, entry: str, arguments: dict[str, object]) -> None:
    begin, _, tensors = entry.partition("|")
    generator = "gen_fn=dict(fn='Genfunc.randint', low=0, high=3)"
    args = [
        f"dict(ins=['{name}'], {generator}, dtype=[np.{dtype}], shape=(({shape},),))"
        for name, dtype, shape in re.findall(r"(\w+)=(\w+)\(([\d,]+)\)", tensors)
    ]
    (case,) = cases(tmp_path, f"dict({begin}, tensor_para=dict(args=[{', '.join(args)}]))").values()
    assert {name: case.arguments[name] for name in arguments} == arguments


@pytest.mark.parametrize(
    ("entry", "function", "arguments"),
    [
        ("name=['copy_']|input=float32(2,3) other=float64(3)", "diopiCopyInp", {}),
        (
            "name=['index_put'], para=dict(accumulate=[bool(3)])"
            "|input=float32(5,2) values=float32(4,2) indices1=int64(4)",
            "diopiIndexPut",
            {"accumulate": True},
        ),
        ("name=['index']|input=float32(5,4) idx1=int64(3) idx2=int64(3)", "diopiIndex", {}),
        (
            "name=['pool1d'], para=dict(mode=['max'], kernel_size=[3])|input=float32(1,2,9)",
            "diopiPool1d",
            {"mode": "max", "ksize": (3,), "stride": (3,), "adaptive": False},
        ),
        (
            "name=['pool2d'], para=dict(mode=['avg'], kernel_size=[3], stride=[2], padding=[(1, 0)],"
            "count_include_pad=[False])|input=float32(1,2,8,8)",
            "diopiPool2d",
            {"ksize": (3, 3), "stride": (2, 2), "padding": (1, 0), "exclusive": True, "adaptive": False},
        ),
        (
            "name=['pool3d'], para=dict(mode=['avg'], output_size=[(2, 2, 2)])|input=float32(1,2,4,4,4)",
            "diopiPool3d",
            {"adaptive": True, "output_size": (2, 2, 2)},
        ),
        ("name=['cast_dtype']|input=float32(2,3) out=int64(2,3)", "diopiCastDtype", {}),
        ("name=['cast_dtype'], para=dict(dtype=[np.int64])|input=float32(2,3)", "diopiCastDtype", {}),
        ("name=['zero_']|input=float32(2,3)", "diopiZeroInp", {}),
        ("name=['fill_'], para=dict(value=[2])|input=float32(2,3)", "diopiFill", {"value": 2}),
        (
            "name=['uniform'], para=dict(start=[1], end=[3])|input=float32(2,3)",
            "diopiUniformInp",
            {"from_": 1, "to": 3},
        ),
        (
            "name=['unfold'], para=dict(dim=[1], size=[2], step=[1])|input=float32(2,5)",
            "diopiUnfold",
            {"dim": 1, "size": 2, "step": 1},
        ),
        (
            "name=['unique'], para=dict(sorted=[True], return_inverse=[True], return_counts=[True], dim=[None])"
            "|input=int64(7)",
            "diopiUnique",
            {"return_counts": True, "dim": None},
        ),
        (
            "name=['rotary_emb'], para=dict(conj=[False], interleaved=[True])"
            "|input=float32(2,3,4) cos=float32(3,2) sin=float32(3,2)",
            "diopiRotaryEmbedding",
            {"conj": False, "interleaved": True},
        ),
        (
            "name=['slice_op'], para=dict(dim=[1], index=[slice(0, None, 2)])|input=float32(2,5)",
            "diopiSlice",
            {"dim": 1, "start": 0, "end": 5, "step": 2},
        ),
        (
            "name=['slice_scatter'], para=dict(dim=[0], start=[1], end=[None], step=[1])"
            "|input=float32(4,2) src=float32(3,2)",
            "diopiSliceScatter",
            {"start": 1, "end": 4},
        ),
        (
            "name=['cdist'], para=dict(compute_mode=['use_mm_for_euclid_dist'])|x1=float32(3,2) x2=float32(4,2)",
            "diopiCdist",
            {"compute_mode": 1},
        ),
        ("name=['gelu'], para=dict(approximate=['tanh'])|input=float32(3)", "diopiGelu", {"approximate": "tanh"}),
        ("name=['gelu'], para=dict(approximate=[None])|input=float32(3)", "diopiGelu", {"approximate": "none"}),
    ],
)
def test_original_forms_of_calls_are_adapted(
    tmp_path: Path, entry: str, function: str, arguments: dict[str, object]
) -> None:
    begin, _, tensors = entry.partition("|")
    args = [
        f"dict(ins=['{name}'], gen_fn=dict(fn='Genfunc.randint', low=0, high=3), dtype=[np.{dtype}],"
        f"shape=(({shape},),))"
        for name, dtype, shape in re.findall(r"(\w+)=(\w+)\(([\d,]+)\)", tensors)
    ]
    (case,) = cases(tmp_path, f"dict({begin}, tensor_para=dict(args=[{', '.join(args)}]))").values()
    assert case.function == function
    assert {name: case.arguments[name] for name in arguments} == arguments


def test_a_tensor_of_the_entry_becomes_the_callers_result(tmp_path: Path) -> None:
    translated = cases(
        tmp_path,
        "dict(name=['copy_'], tensor_para=dict(args=[dict(shape=((2, 3),), dtype=[np.float16]),"
        "dict(ins=['other'], shape=((3,),), dtype=[np.float32])]))",
        "dict(name=['cast_dtype'], tensor_para=dict(args=[dict(shape=((2, 3),)),"
        "dict(ins=['out'], shape=((2, 3),), dtype=[np.int64])]))",
        "dict(name=['zero_'], tensor_para=dict(args=[dict(shape=((2, 3),), dtype=[np.int32])]))",
        "dict(name=['expand'], para=dict(size=[(4, -1, 2)]), tensor_para=dict(args=[dict(shape=((3, 1),))]))",
        "dict(name=['unique'], para=dict(return_inverse=[True, False]),"
        "tensor_para=dict(args=[dict(shape=((5,), (5,)), gen_fn='Genfunc.randint')]))",
    )
    copied = result(translated["diopiCopyInp[float32-0-0]"], "dest")
    assert (copied.values.shape, copied.dtype) == ((2, 3), Dtype.float16)
    assert result(translated["diopiCastDtype[float32-1-0]"]).dtype is Dtype.int64
    assert result(translated["diopiZeroInp[int32-2-0]"], "self").values.tolist() == [[0, 0, 0]] * 2
    assert result(translated["diopiExpand[float32-3-0]"]).values.shape == (4, 3, 2)
    assert translated["diopiUnique[float32-4-0]"].expected["indices"] is not None
    assert translated["diopiUnique[float32-4-1]"].expected["indices"] is None


def test_element_types_are_read_side_by_side(tmp_path: Path) -> None:
    translated = cases(
        tmp_path,
        "dict(name=['add'], tensor_para=dict(args=[dict(shape=((3,), (4,)), dtype=[np.float64, np.int32, np.float16]),"
        "dict(ins=['other'], shape=((3,), (4,)), dtype=[np.int32, np.int64, np.float16])]))",
        "dict(name=['where'], dtype=[np.float32, np.float64], tensor_para=dict(args=["
        "dict(ins=['condition'], shape=((3,),), dtype=[np.bool_]), dict(shape=((3,),)),"
        "dict(ins=['other'], shape=((3,),))]))",
        "dict(name=['mul'], tensor_para=dict(args=[dict(shape=((3,),), dtype=[np.float32, np.float64, np.float16]),"
        "dict(ins=['other'], shape=((3,),), dtype=[np.float32, np.float64])]))",
    )
    pairs = [
        (case.id, *(case.arguments[name].dtype.name for name in ("input", "other"))) for case in translated.values()
    ]
    assert sorted(pairs) == [
        ("diopiAdd[float16-0-0]", "float16", "float16"),
        ("diopiAdd[float16-0-1]", "float16", "float16"),
        ("diopiAdd[float64-0-0]", "float64", "int32"),
        ("diopiAdd[float64-0-1]", "float64", "int32"),
        ("diopiAdd[int32-0-0]", "int32", "int64"),
        ("diopiAdd[int32-0-1]", "int32", "int64"),
        ("diopiMul[float32-2-0]", "float32", "float32"),
        ("diopiMul[float64-2-0]", "float64", "float64"),
        ("diopiWhere[float32-1-0]", "float32", "float32"),
        ("diopiWhere[float64-1-0]", "float64", "float64"),
    ]


def test_positive_values_are_magnitudes_of_normal_ones(tmp_path: Path) -> None:
    entry = "dict(name=['neg'], tensor_para=dict(gen_fn='Genfunc.positive', args=[dict(shape=((1000,),))]))"
    values = cases(tmp_path, entry)["diopiNeg[float32-0-0]"].arguments["input"].values
    assert values.min() >= 0 and abs(values.mean() - np.sqrt(2 / np.pi)) < 0.1 and values.max() > 2


def test_uniform_values_reach_ten(tmp_path: Path) -> None:
    entry = "dict(name=['neg'], tensor_para=dict(gen_fn='Genfunc.uniform', args=[dict(shape=((1000,),))]))"
    values = cases(tmp_path, entry)["diopiNeg[float32-0-0]"].arguments["input"].values
    assert values.min() >= 0 and abs(values.mean() - 5) < 0.5 and values.max() > 9


def test_ignored_keys_have_no_effect(tmp_path: Path) -> None:
    translated = cases(
        tmp_path,
        "dict(name=['neg'], atol_half=1e-1, rtol_half=1e-1, mismatch_ratio_threshold=1e-3, tag=[unknown(1)],"
        "no_output_ref=True, requires_backward=[0], saved_args=dict(out=0), gen_policy='default', tensor_para=dict("
        "gen_policy='odd', dtype=[np.float64], gen_fn='Genfunc.randn',"
        "args=[dict(shape=((2, 3),), gen_policy='gen_tensor_by_value', no_contiguous=True)]))",
    )
    assert list(translated) == ["diopiNeg[float32-0-0]"]


def test_missing_outer_strides_are_dense(tmp_path: Path) -> None:
    translated = cases(
        tmp_path,
        "dict(name=['neg'], tensor_para=dict(args=[dict(shape=((2, 3), (2, 3), (2, 3)), stride=((1, 2), (2,)))]))",
    )
    layouts = [case.arguments["input"].layout for case in translated.values()]
    assert layouts == ["strides(1,2)", "strides(5,2)", "contiguous"]


def test_an_array_of_tensors_may_share_a_shape(tmp_path: Path) -> None:
    translated = cases(
        tmp_path,
        "dict(name=['cat'], para=dict(dim=[0, 0, 0]), tensor_para=dict(args=[dict(ins=['tensors'],"
        "gen_policy='gen_tensor_list', gen_num_range=[2, 4], shape=((2, 3),) * 3)]))",
    )
    assert [len(case.arguments["tensors"]) for case in translated.values()] == [2, 3, 2]


def test_symmetric_matrices_are_positive_definite(tmp_path: Path) -> None:
    entry = entry_with(
        "['cholesky']", "shape=((2, 4, 4),), gen_fn='Genfunc.sym_mat'", ins="mat", para="dict(upper=[False])"
    )
    (case,) = cases(tmp_path, entry).values()
    assert np.linalg.eigvalsh(case.arguments["mat"].values).min() > 0


def test_a_gradient_uses_default_values_of_missing_attributes(tmp_path: Path) -> None:
    args = "dict(ins=['input'], shape=((1, 2, 4, 4),), requires_grad=[True], gen_fn='Genfunc.randn')"
    translated = cases(
        tmp_path,
        f"dict(name=['leaky_relu'], tensor_para=dict(args=[{args}]))",
        f"dict(name=['adaptive_max_pool2d'], para=dict(output_size=[2]), tensor_para=dict(args=[{args}]))",
    )
    assert translated["diopiLeakyReluBackward[float32-0-0]"].arguments["input_is_result"] is False
    assert shapes(translated["diopiAdaptiveMaxPool2dBackward[float32-1-0]"])["indices"] == (1, 2, 2, 2)


def test_a_gradient_takes_saved_results_of_the_same_call(tmp_path: Path) -> None:
    def tensor(name: str, shape: str) -> str:
        return f"dict(ins=['{name}'], shape=({shape},), requires_grad=[True], gen_fn='Genfunc.randn')"

    translated = cases(
        tmp_path,
        f"dict(name=['tanh'], tensor_para=dict(args=[{tensor('input', '(3, 4)')}]))",
        f"dict(name=['layer_norm'], para=dict(normalized_shape=[(4,)], eps=[0.5]), tensor_para=dict(args=["
        f"{tensor('input', '(3, 4)')}, {tensor('weight', '(4,)')}, {tensor('bias', '(4,)')}]))",
        "dict(name=['index_select'], para=dict(dim=[0]), tensor_para=dict(args=["
        f"{tensor('input', '(3, 4)')}, dict(ins=['index'], dtype=[np.int64], value=([2, 0],))]))",
    )
    output = translated["diopiTanhBackward[float32-0-0]"].arguments["output"].values
    assert 0 < np.abs(output).max() < 1
    arguments = translated["diopiLayerNormBackward[float32-1-0]"].arguments
    expected = 1 / np.sqrt(arguments["input"].values.var(axis=1) + 0.5)
    np.testing.assert_allclose(arguments["rstd"].values.ravel(), expected, rtol=1e-5)
    assert translated["diopiIndexSelectBackward[float32-2-0]"].arguments["input_sizes"] == (3, 4)


def test_labels_are_unique_and_calls_that_pytorch_leaves_open_are_of_their_class(tmp_path: Path) -> None:
    outcome = f"dict(name=['neg', 'neg'], {INPUT})"
    translated = cases(tmp_path, outcome)
    assert list(translated) == ["diopiNeg[float32-0-0]", "diopiNeg[float32-0-0-2]"]
    truths = (
        "dict(name=['sub'], tensor_para=dict(args=[dict(ins=['input', 'other'], shape=((3,),), dtype=[np.bool_])]))"
    )
    (case,) = cases(tmp_path, truths).values()
    assert case.case_class is CaseClass.open


def entry_with(name: str = "['neg']", args: str = "shape=((2, 3),)", *, ins: str = "input", **options: str) -> str:
    """Return an entry with one tensor."""
    more = "".join(f"{key}={value}, " for key, value in options.items())
    return f"dict(name={name}, {more}tensor_para=dict(args=[dict(ins=['{ins}'], {args})]))"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (entry_with("['softplus']"), "no standard function has this name"),
        (entry_with("['silux']"), "Did you mean 'diopiSilu'"),
        (entry_with("[]"), "the entry names no function"),
        (entry_with("[3]"), "name: expected names"),
        (entry_with("['softmax']"), "needs dim, which the entry does not have"),
        (entry_with("['mse_loss']"), "needs a tensor for target"),
        (entry_with(color="1"), "the key 'color' is unknown"),
        (entry_with(para="dict(speed=[1])"), "diopiNeg has no argument 'speed'"),
        (entry_with(para="3"), "para: expected a dict"),
        (entry_with(para="dict(a=3)"), "para: a: expected a list"),
        (entry_with(para="dict(x=[f(1)])"), "a call that is not read: f(1)"),
        (entry_with(dtype="['float']"), "expected element types such as np.float32"),
        (entry_with(dtype="[np.bool_]"), "diopiNeg does not accept bool for input"),
        (entry_with("['softmax']", para="dict(dim=[0, 1])"), "have different lengths"),
        (entry_with("['softmax']", para="dict(dim=[5])"), "diopiSoftmax rejects it"),
        (entry_with("['softmax']", para="dict(dim=['x'])"), "dim: expected int, found 'x'"),
        (entry_with("['sum']", para="dict(dim=['x'])"), "dim: expected integers"),
        (entry_with("['sort']", para="dict(descending=[2])"), "descending: expected bool"),
        (entry_with("['gelu']", para="dict(approximate=[2])"), "approximate: expected str"),
        (entry_with("['max_pool2d']", para="dict(return_indices=[True])"), "no argument 'return_indices'"),
        (entry_with(para="dict(keepdim=[True])"), "has no argument 'keepdim'"),
        (entry_with(para="dict(size=[(2, 3)])"), "no argument for the size of its result"),
        (entry_with(args="shape=((2, -3),)"), "expected integers, found (2, -3)"),
        (entry_with(args="shape=((10**9,),)"), "more than 16,777,216 elements"),
        (entry_with(args="shape=()"), "the entry has no cases"),
        (entry_with(args=""), "the entry has no cases"),
        (entry_with(args="shape=3"), "args: shape: expected a list"),
        (entry_with("['cat']", ins="tensors", args="shape=(2,)"), "an array of tensors"),
        (entry_with(args="shape=((2, 3),), stride=((-1, 1),)"), "stride: expected numbers"),
        (entry_with(args="shape=((2, 3),), stride=((1, 1, 1),)"), "the shape (2, 3) has 2 axes, expected 3"),
        (entry_with(args="shape=((2, 3),), stride=((10**9, 1),)"), "the storage has more than"),
        (entry_with("['expand']", para="dict(size=[(-1, 2, 3)])"), "-1 is not at an axis of the input"),
        (entry_with("['slice_op']", para="dict(dim=[0], index=[3])"), "index: expected slice(…), found 3"),
        (
            entry_with("['cdist']", para="dict(compute_mode=['x'])", ins="x1', 'x2"),
            "expected one of use_mm_for_euclid_dist_if",
        ),
        (entry_with("['cat']", ins="tensors", args="shape=((2, 3),), gen_num_range=3"), "expected two integers"),
        (entry_with("['pool2d']", para="dict(mode=['x'], kernel_size=[1])"), "mode is 'x', expected one of"),
        (entry_with(args="value=(['a'],)"), "value: expected numbers"),
        (entry_with(args="value=([[1], [1, 2]],)"), "expected an array"),
        (entry_with(args="shape=((2,),), gen_fn=3"), "gen_fn: expected 'Genfunc.NAME'"),
        (entry_with(args="shape=((2,),), gen_fn=dict(fn='randint', low=5, high=2)"), "an empty range, 5 to 2"),
        (entry_with(args="shape=((2,),), gen_fn=dict(fn='uniform', low='a')"), "low: expected a number"),
        (
            entry_with("['exp']", args="shape=((2,),), requires_grad=[True]"),
            "gradient of diopiExp: the standard has no",
        ),
        (
            entry_with("['mse_loss']", args="shape=((2,),)", ins="input', 'target", para="dict(reduction=['most'])"),
            "one of none",
        ),
        (
            entry_with("['softmax']", para="dict(dim=[0] * 10001)", args="shape=((1,),) * 10001"),
            "more than 10,000 cases",
        ),
        (entry_with("['softmax']", ins="dim", args="shape=((1,),)"), "takes no tensor for dim"),
        (entry_with("['neg']", ins="other", args="shape=((1,),)"), "has no argument 'other'"),
        (
            entry_with("['bmm']", para="dict(mat2=[2.0])", args="shape=((1, 2, 2),)"),
            "does not accept a number for mat2",
        ),
        ("dict(name=['arange'], para=dict(start=[1], end=[2], step=[0]))", "expected a number other than 0"),
        ("dict(name=['neg'], tensor_para=3)", "tensor_para: expected a dict"),
        ("dict(name=['neg'], tensor_para=dict(args=3))", "args: expected a list of dicts"),
    ],
)
def test_an_entry_that_cannot_be_translated_is_reported_with_the_reason(
    tmp_path: Path, entry: str, reason: str
) -> None:
    (line, *more) = import_entries(tmp_path, entry).not_translated
    assert line.startswith(f"{tmp_path / 'configs.py'}:3: ") and reason in line, line
    assert not more
