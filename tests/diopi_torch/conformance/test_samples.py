"""The samples of PyTorch's databases, in each form."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")
pytest.importorskip("expecttest", reason="pip install 'diopi[test]'")

from diopi_torch.conformance.samples import (  # noqa: E402  # behind the checks
    CHANGES,
    DTYPES,
    SampleGroup,
    sample_groups,
    samples_of,
)
from diopi_torch.conformance.trees import TensorCopies, tensors_of  # noqa: E402  # behind the checks, too


def test_every_database_form_and_type_has_groups() -> None:
    groups = list(sample_groups(DTYPES))
    assert len({*groups}) == len(groups) > 4000
    assert {(group.database, group.form) for group in groups} == {
        *(("op", form) for form in ("plain", "noncontiguous", "conjugated", "error")),
        *(("module", form) for form in ("plain", "noncontiguous", "error")),
        *(("optim", form) for form in ("plain", "error")),
    }
    assert {group.dtype for group in groups} == {*DTYPES}


def test_forms_change_tensors_but_not_values() -> None:
    real, numbers = torch.arange(6.0).reshape(2, 3), torch.tensor([1 + 2j, 3 - 1j])
    noncontiguous = CHANGES["noncontiguous"](real)
    assert torch.equal(noncontiguous, real) and not noncontiguous.is_contiguous()
    conjugated = CHANGES["conjugated"](numbers)
    assert torch.equal(conjugated, numbers) and conjugated.is_conj()
    assert CHANGES["conjugated"](real) is real


@pytest.mark.parametrize(
    ("database", "entry", "form"),
    [("op", "mul", "plain"), ("op", "gather", "error"), ("module", "nn.Linear", "plain"), ("optim", "Adam", "plain")],
)
def test_samples_compute_something_on_the_cpu(database: str, entry: str, form: str) -> None:
    samples = samples_of(SampleGroup(database=database, entry=entry, form=form, dtype="float32"))
    assert samples
    for sample in samples:
        if sample.error:
            with pytest.raises(Exception, match=sample.error):
                sample.call("cpu", 0)
        else:
            assert list(tensors_of(sample.call("cpu", 0)))
            assert sample.exact_call is not None
            assert any(tensor.dtype is torch.float64 for tensor in tensors_of(sample.exact_call("cpu", 0)))


def test_copies_share_memory_like_the_tensors() -> None:
    whole = torch.arange(6.0)
    copies = TensorCopies("cpu")
    row, repeated = copies.copy(whole[1:3]), copies.copy(whole[2].expand(4))
    row += 10
    assert whole.tolist() == [0, 1, 2, 3, 4, 5]
    assert row.tolist() == [11, 12] and repeated.tolist() == [12] * 4 and repeated.stride() == (0,)
    leaf = copies.copy(torch.ones(2, requires_grad=True))
    assert copies.leaves == [leaf] and leaf.is_leaf
