"""Entries of case configurations become cases; what can't be says why."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from diopi_proto.types import Dtype, Reduction
from diopi_test.baseline.records import BaselineCase, Expected
from diopi_test.cases.model import CaseClass
from diopi_test.original.folder import Imported, import_files

RANDN = "gen_fn='Genfunc.randn'"
INPUT = f"tensor_para=dict({RANDN}, args=[dict(ins=['input'], shape=((2, 3),))])"


def imported(folder: Path, *entries: str) -> Imported:
    path = folder / "configs.py"
    path.write_text(
        "import numpy as np\nconfigs = {\n" + ",\n".join(f"'{i}': {e}" for i, e in enumerate(entries)) + "}"
    )
    return import_files([path], lambda name: None)


def cases(folder: Path, *entries: str) -> dict[str, BaselineCase]:
    """The cases of entries all of which can be translated, by id."""
    found = imported(folder, *entries)
    assert found.lacking == []
    return {case.id: case for cases in found.cases.values() for case in cases}


def shapes(case: BaselineCase) -> dict[str, tuple[int, ...]]:
    return {name: value.values.shape for name, value in case.arguments.items() if hasattr(value, "values")}


def result(case: BaselineCase, name: str = "out") -> Expected:
    found = case.expected[name]
    assert isinstance(found, Expected)
    return found


def test_a_convolution_with_its_gradient(tmp_path: Path) -> None:
    made = cases(
        tmp_path,
        "dict(name=['conv2d'], interface=['torch'], atol=1e-3, rtol=1e-3, saved_args=dict(input=0),"
        "dtype=[np.float16, np.float32], para=dict(stride=[2, (2, 1)], padding=[0, 1]),"
        "tensor_para=dict(gen_fn='Genfunc.randn', gen_policy='default', args=["
        "dict(ins=['input'], requires_grad=[True], shape=((2, 3, 8, 8), (1, 3, 7, 9))),"
        "dict(ins=['weight'], requires_grad=[True], shape=((4, 3, 3, 3), (6, 3, 3, 3))),"
        "dict(ins=['bias'], requires_grad=[True], shape=((4,), None))]))",
    )
    labels = [f"{dtype}-0-{number}" for dtype in ("float16", "float32") for number in (0, 1)]
    assert set(made) == {f"diopiConvolution2d{end}[{label}]" for end in ("", "Backward") for label in labels}
    first, second = (made[f"diopiConvolution2d[float16-0-{number}]"] for number in (0, 1))
    assert first.arguments["stride"] == (2, 2) and second.arguments["stride"] == (2, 1)
    assert (first.arguments["padding"], first.arguments["dilation"], first.arguments["groups"]) == ((0, 0), (1, 1), 1)
    assert shapes(first) == {"input": (2, 3, 8, 8), "weight": (4, 3, 3, 3), "bias": (4,)}
    assert second.arguments["bias"] is None and second.dtype is Dtype.float16
    gradient = made["diopiConvolution2dBackward[float16-0-0]"]
    assert shapes(gradient)["grad_output"] == result(first).values.shape == (2, 4, 3, 3)
    assert gradient.arguments["bias_sizes"] == (4,)


def test_what_a_gradient_needs_is_the_forward_calls_result(tmp_path: Path) -> None:
    args = "dict(ins=['input'], shape=((1, 2, 4, 4),), requires_grad=[True], gen_fn='Genfunc.randn')"
    made = cases(
        tmp_path,
        f"dict(name=['softmax'], para=dict(dim=[1]), tensor_para=dict(args=[{args}]))",
        f"dict(name=['max_pool2d'], para=dict(kernel_size=[2]), tensor_para=dict(args=[{args}]))",
    )
    output = made["diopiSoftmaxBackward[float32-0-0]"].arguments["output"].values
    np.testing.assert_allclose(output.sum(axis=1), 1, rtol=1e-6)
    pooled = made["diopiMaxPool2dBackward[float32-1-0]"]
    assert pooled.arguments["stride"] == (2, 2)
    indices = pooled.arguments["indices"]
    found = pooled.arguments["input"].values.reshape(1, 2, 16).max(axis=2)
    taken = np.take_along_axis(pooled.arguments["input"].values.reshape(1, 2, 16), indices.values.reshape(1, 2, 4), 2)
    assert indices.dtype is Dtype.int64 and np.array_equal(taken.max(axis=2), found)


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
def test_the_function_that_takes_the_arguments(tmp_path: Path, entry: str, ids: Sequence[str]) -> None:
    dtype = "int64" if "randperm" in entry else "float32"
    assert list(cases(tmp_path, entry)) == [f"{function}[{dtype}-0-0]" for function in ids]


def test_a_loss_with_a_target_of_another_type(tmp_path: Path) -> None:
    made = cases(
        tmp_path,
        "dict(name=['cross_entropy'], para=dict(reduction=['sum']), tensor_para=dict(args=["
        "dict(ins=['input'], shape=((40, 5),), dtype=[np.float32, np.float64], gen_fn='Genfunc.randn'),"
        "dict(ins=['target'], shape=((40,),), dtype=[np.int64], gen_fn=dict(fn='Genfunc.randint', low=1, high=4))]))",
    )
    assert set(made) == {"diopiCrossEntropyLoss[float32-0-0]", "diopiCrossEntropyLoss[float64-0-0]"}
    arguments = made["diopiCrossEntropyLoss[float32-0-0]"].arguments
    assert arguments["reduction"] is Reduction.sum and arguments["ignore_index"] == -100
    assert set(np.unique(arguments["target"].values)) == {1, 2, 3}


def test_values_strides_and_the_callers_result(tmp_path: Path) -> None:
    made = cases(
        tmp_path,
        "dict(name=['nonzero'], tensor_para=dict(args=[dict(ins=['input'], value=([1, 0, 2],), dtype=[np.int64])]))",
        f"dict(name=['neg'], tensor_para=dict({RANDN}, args=[dict(ins=['input'], shape=((2, 3),), stride=((1, 2),))]))",
        f"dict(name=['sum'], para=dict(dim=[1], keepdim=[True], dtype=[np.float64]), {INPUT})",
        f"dict(name=['mean'], para=dict(keepdim=[True]), {INPUT})",
        "dict(name=['expand'], para=dict(size=[(4, 3)]), tensor_para=dict(args=[dict(ins='input', shape=((1, 3),))]))",
    )
    assert made["diopiNonzero[int64-0-0]"].arguments["input"].values.tolist() == [1, 0, 2]
    assert made["diopiNeg[float32-1-0]"].arguments["input"].layout == "strides(1,2)"
    total = result(made["diopiSum[float32-2-0]"])
    assert total.values.shape == (2, 1) and total.dtype is Dtype.float64
    assert result(made["diopiMean[float32-3-0]"]).values.shape == (1, 1)
    assert result(made["diopiExpand[float32-4-0]"]).values.shape == (4, 3)


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
        ("'Genfunc.positive'", 0, 3),
        ("'Genfunc.nobody_knows'", -1000, 1000),
    ],
)
def test_generators(tmp_path: Path, generator: str, low: float, high: float) -> None:
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
def test_arguments_that_are_called_or_said_otherwise(tmp_path: Path, entry: str, arguments: dict[str, object]) -> None:
    begin, _, tensors = entry.partition("|")
    generator = "gen_fn=dict(fn='Genfunc.randint', low=0, high=3)"
    args = [
        f"dict(ins=['{name}'], {generator}, dtype=[np.{dtype}], shape=(({shape},),))"
        for name, dtype, shape in re.findall(r"(\w+)=(\w+)\(([\d,]+)\)", tensors)
    ]
    (case,) = cases(tmp_path, f"dict({begin}, tensor_para=dict(args=[{', '.join(args)}]))").values()
    assert {name: case.arguments[name] for name in arguments} == arguments


def test_a_gradient_s_attributes_that_the_call_has_not(tmp_path: Path) -> None:
    args = "dict(ins=['input'], shape=((1, 2, 4, 4),), requires_grad=[True], gen_fn='Genfunc.randn')"
    made = cases(
        tmp_path,
        f"dict(name=['leaky_relu'], tensor_para=dict(args=[{args}]))",
        f"dict(name=['adaptive_max_pool2d'], para=dict(output_size=[2]), tensor_para=dict(args=[{args}]))",
    )
    assert made["diopiLeakyReluBackward[float32-0-0]"].arguments["input_is_result"] is False
    assert shapes(made["diopiAdaptiveMaxPool2dBackward[float32-1-0]"])["indices"] == (1, 2, 2, 2)


def test_what_is_saved_is_of_the_call_itself(tmp_path: Path) -> None:
    def tensor(name: str, shape: str) -> str:
        return f"dict(ins=['{name}'], shape=({shape},), requires_grad=[True], gen_fn='Genfunc.randn')"

    made = cases(
        tmp_path,
        f"dict(name=['tanh'], tensor_para=dict(args=[{tensor('input', '(3, 4)')}]))",
        f"dict(name=['layer_norm'], para=dict(normalized_shape=[(4,)], eps=[0.5]), tensor_para=dict(args=["
        f"{tensor('input', '(3, 4)')}, {tensor('weight', '(4,)')}, {tensor('bias', '(4,)')}]))",
        "dict(name=['index_select'], para=dict(dim=[0]), tensor_para=dict(args=["
        f"{tensor('input', '(3, 4)')}, dict(ins=['index'], dtype=[np.int64], value=([2, 0],))]))",
    )
    output = made["diopiTanhBackward[float32-0-0]"].arguments["output"].values
    assert 0 < np.abs(output).max() < 1
    arguments = made["diopiLayerNormBackward[float32-1-0]"].arguments
    expected = 1 / np.sqrt(arguments["input"].values.var(axis=1) + 0.5)
    np.testing.assert_allclose(arguments["rstd"].values.ravel(), expected, rtol=1e-5)
    assert made["diopiIndexSelectBackward[float32-2-0]"].arguments["input_sizes"] == (3, 4)


def test_labels_are_unique_and_calls_that_pytorch_leaves_open_are_of_their_class(tmp_path: Path) -> None:
    one = f"dict(name=['neg', 'neg'], {INPUT})"
    made = cases(tmp_path, one)
    assert list(made) == ["diopiNeg[float32-0-0]", "diopiNeg[float32-0-0-2]"]
    truths = (
        "dict(name=['sub'], tensor_para=dict(args=[dict(ins=['input', 'other'], shape=((3,),), dtype=[np.bool_])]))"
    )
    (case,) = cases(tmp_path, truths).values()
    assert case.case_class is CaseClass.open


def of(name: str = "['neg']", args: str = "shape=((2, 3),)", *, ins: str = "input", **given: str) -> str:
    """An entry with one tensor."""
    more = "".join(f"{key}={value}, " for key, value in given.items())
    return f"dict(name={name}, {more}tensor_para=dict(args=[dict(ins=['{ins}'], {args})]))"


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (of("['softplus']"), "no standard function has this name"),
        (of("['silux']"), "like it are diopiSilu"),
        (of("[]"), "it names no function"),
        (of("[3]"), "name: expected names"),
        (of("['softmax']"), "needs dim, which is not given"),
        (of("['mse_loss']"), "needs a tensor for target"),
        (of(colour="1"), "'colour' is not known; known are atol, dtype"),
        (of(para="dict(speed=[1])"), "diopiNeg has no argument 'speed'"),
        (of(para="3"), "para: expected a dict"),
        (of(para="dict(a=3)"), "para: a: expected a list"),
        (of(para="dict(x=[f(1)])"), "a call that is not read: f(1)"),
        (of(dtype="['float']"), "expected element types such as np.float32"),
        (of(dtype="[np.bool_]"), "diopiNeg takes no bool for input"),
        (of("['softmax']", para="dict(dim=[0, 1])"), "lists have different lengths"),
        (of("['softmax']", para="dict(dim=[5])"), "diopiSoftmax refuses it"),
        (of("['softmax']", para="dict(dim=['x'])"), "dim: expected int, found 'x'"),
        (of("['sum']", para="dict(dim=['x'])"), "dim: expected whole numbers"),
        (of("['sort']", para="dict(descending=[2])"), "descending: expected bool"),
        (of("['gelu']", para="dict(approximate=[2])"), "approximate: expected str"),
        (of("['max_pool2d']", para="dict(return_indices=[True])"), "no argument 'return_indices'"),
        (of(para="dict(keepdim=[True])"), "has no argument 'keepdim'"),
        (of(para="dict(size=[(2, 3)])"), "no argument for the size of its result"),
        (of(args="shape=((2, -3),)"), "expected whole numbers, found (2, -3)"),
        (of(args="shape=((10**9,),)"), "more than 16,777,216 elements"),
        (of(args="shape=()"), "its lists are empty"),
        (of(args=""), "its lists are empty"),
        (of(args="shape=3"), "args: shape: expected a list"),
        (of("['cat']", ins="tensors", args="shape=(2,)"), "an array of tensors"),
        (of(args="shape=((2, 3),), stride=((-1, 1),)"), "stride: expected numbers"),
        (of(args="shape=((2, 3),), stride=((1,),)"), "is for 1 axes, not for shape (2, 3)"),
        (of(args="shape=((2, 3),), stride=((10**9, 1),)"), "its storage has more than"),
        (of(args="value=(['a'],)"), "value: expected numbers"),
        (of(args="value=([[1], [1, 2]],)"), "expected an array"),
        (of(args="shape=((2,),), gen_fn=3"), "gen_fn: expected 'Genfunc.NAME'"),
        (of(args="shape=((2,),), gen_fn=dict(fn='randint', low=5, high=2)"), "an empty range, 5 to 2"),
        (of(args="shape=((2,),), gen_fn=dict(fn='uniform', low='a')"), "low: expected a number"),
        (of("['exp']", args="shape=((2,),), requires_grad=[True]"), "gradient of diopiExp: the standard has no"),
        (
            of("['mse_loss']", args="shape=((2,),)", ins="input', 'target", para="dict(reduction=['most'])"),
            "one of none",
        ),
        (of("['softmax']", para="dict(dim=[0] * 10001)", args="shape=((1,),) * 10001"), "more than 10,000 cases"),
        (of("['softmax']", ins="dim", args="shape=((1,),)"), "takes no tensor for dim"),
        (of("['neg']", ins="other", args="shape=((1,),)"), "has no argument 'other'"),
        (of("['bmm']", para="dict(mat2=[2.0])", args="shape=((1, 2, 2),)"), "takes no number for mat2"),
        ("dict(name=['arange'], para=dict(start=[1], end=[2], step=[0]))", "expected another number than 0"),
        ("dict(name=['neg'], tensor_para=3)", "tensor_para: expected a dict"),
        ("dict(name=['neg'], tensor_para=dict(args=3))", "args: expected a list of dicts"),
        ("dict(name=['neg'], tensor_para=dict(gen_policy='x'))", "gen_policy 'x' is not known"),
    ],
)
def test_what_cannot_be_translated_says_why(tmp_path: Path, entry: str, why: str) -> None:
    (line, *more) = imported(tmp_path, entry).lacking
    assert line.startswith(f"{tmp_path / 'configs.py'}:3: ") and why in line, line
    assert not more
