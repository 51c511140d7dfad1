"""If a stored case has no text, the vendor receives an empty text."""

from diopi_proto.interface import lookup
from diopi_test.execution.call_arguments import convert_attribute


def test_a_missing_text_is_empty() -> None:
    reduce, value = lookup("diopiScatter").parameter("reduce"), lookup("diopiPad").parameter("value")
    assert convert_attribute(reduce, None) == ""
    assert convert_attribute(reduce, "add") == "add"
    assert convert_attribute(value, None) is None
