"""The lines of the table of operators are parsed as documented."""

from diopi_proto.aten.table import FILE, ArgumentOf, Constant, find_form, find_row, rows


def test_the_table_is_sorted_and_names_each_operator_once() -> None:
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert lines == sorted(lines)
    assert len(lines) == len(rows())


def test_sources_are_arguments_and_constants() -> None:
    row = rows()["rsub.Scalar"]
    names = ("self", "other", "alpha")
    assert row.source("input", names) == ArgumentOf("other", as_tensor=True)
    assert row.source("alpha", names) == ArgumentOf("alpha")
    assert rows()["div.Tensor"].source("rounding_mode", names) == Constant("none")
    assert rows()["mm"].source("input", names) == ArgumentOf("self")
    assert rows()["convolution"].source("input", ("input",)) == ArgumentOf("input")


def test_an_in_place_operator_uses_the_line_of_the_plain_operator() -> None:
    assert find_row("mul_.Tensor") is rows()["mul.Tensor"]
    assert find_row("copy_") is rows()["copy_"]
    assert find_row("no_such_") is None


def test_forms_are_found_by_their_properties() -> None:
    forms = [find_form("diopiAdd", inplace=i, scalar=s) for i in (False, True) for s in (False, True)]
    assert [form and form.name for form in forms] == ["diopiAdd", "diopiAddScalar", "diopiAddInp", "diopiAddInpScalar"]
    assert find_form("diopiMm", inplace=True, scalar=False) is None
