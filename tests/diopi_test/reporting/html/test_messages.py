"""Messages of the suite are translated, phrase by phrase, with the same numbers."""

from __future__ import annotations

import pytest

from diopi_test.reporting.html.messages import translate_message

MESSAGES = {
    "values: out: 2 of 6 elements are wrong, the worst at (1, 2): 1.5, expected 1.25 ± 0.12 (exactly [1, 1:])": (
        "values: out: 6 个元素中有 2 个错误，最差的在 (1, 2)：1.5，应为 1.25 ± 0.12 (恰为 [1, 1:])"
    ),
    "written: 3 of 15 elements of out were not written, the first at (0, 2)": (
        "written: out 的 15 个元素中有 3 个未写入，第一个在 (0, 2)"
    ),
    "inputs: 4 bytes of input changed, the first at 12": "inputs: input 的 4 个字节被改动，第一个在 12",
    "repeat: out: 1 of 2 elements have other bits, the first at (1,): 1.25, 1.5 before": (
        "repeat: out: 2 个元素中有 1 个的比特不同，第一个在 (1,)：1.25，之前为 1.5"
    ),
    "form: out is float32, expected float16": "form: out 为 float32，应为 float16",
    "small does not implement diopiAdd": "small 未实现 diopiAdd",
    "the vendor was ended by SIGSEGV (segmentation fault)": "厂商进程被 SIGSEGV 终止（段错误）",
    "not run: 5 cases of diopiErf have crashed, hung or run out of memory": (
        "未运行：diopiErf 已有 5 个用例崩溃、挂起或耗尽内存"
    ),
    "the first 50 calls failed in the same way (error: no engine); --stop-after-identical 0 runs all cases": (
        "前 50 次调用以相同方式失败（error: no engine）；--stop-after-identical 0 会运行所有用例"
    ),
    "7 calls in a row failed in the same way (error: no engine); --stop-after-identical 0 runs all cases": (
        "连续 7 次调用以相同方式失败（error: no engine）；--stop-after-identical 0 会运行所有用例"
    ),
    "interrupted by SIGINT": "被 SIGINT 中断",
}


@pytest.mark.parametrize(("english", "chinese"), MESSAGES.items())
def test_messages_of_checks_are_translated(english: str, chinese: str) -> None:
    assert translate_message(english, "zh") == chinese
    assert translate_message(english, "en") == english


def test_texts_of_vendors_are_not_changed() -> None:
    assert translate_message("cannot allocate 12 bytes", "zh") == "cannot allocate 12 bytes"
