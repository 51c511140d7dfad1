"""The sentences of causes are translated as a whole; error messages in them are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from case_records import case_record, report_of

from diopi_test.reporting.html.cause_sentences import translate_diagnosis, translate_sentence
from diopi_test.results.causes.cause import Cause
from diopi_test.results.causes.diagnosis import Diagnosis, catalog
from diopi_test.results.causes.signature import PATTERNS, RELATIONS, STATES, SYMPTOMS, Signature
from diopi_test.results.causes.traits import TRAITS


def cause_with(signature: Signature, factor: float | None = None) -> Cause:
    """Return a cause with the sentence of a signature."""
    (cause,) = report_of([case_record("diopiAdd[float32-a]", "failed", "ErrorOccurred: x")]).causes
    return replace(cause, sentence=signature.sentence, factor=factor)


@pytest.mark.parametrize(
    ("cause", "chinese"),
    [
        (cause_with(Signature(symptom="inputs")), "输入被改动"),
        (
            cause_with(Signature(symptom="rounding", relation="narrow", trait="half", scope="diopiExp"), 12.5),
            "当元素类型为 16 位时，diopiExp 的误差与更窄类型的运算相当，最多为限值的 12.5 倍",
        ),
        (
            cause_with(Signature(symptom="wrong_value", pattern="tail", state="queued", scope="diopiAdd")),
            "diopiAdd 的数值错误（最后一个不完整的分块，只在输入仍在拷贝时）",
        ),
        (
            cause_with(Signature(symptom="error", detail="ErrorOccurred: no engine")),
            "调用返回错误：ErrorOccurred: no engine",
        ),
        (cause_with(Signature(symptom="crashed", detail="SIGSEGV in run of k.py")), "进程结束：SIGSEGV in run of k.py"),
    ],
)
def test_sentences_are_translated(cause: Cause, chinese: str) -> None:
    assert translate_sentence(cause, "zh") == chinese
    assert translate_sentence(cause, "en").startswith(cause.sentence)


def test_every_phrase_has_a_translation() -> None:
    signatures = [
        *(Signature(symptom=symptom) for symptom in SYMPTOMS),
        *(Signature(symptom="wrong_value", relation=relation) for relation in RELATIONS),
        *(Signature(symptom="wrong_value", pattern=pattern) for pattern in PATTERNS),
        *(Signature(symptom="wrong_value", state=state) for state in STATES),
        *(Signature(symptom="wrong_value", trait=trait) for trait in TRAITS),
    ]
    sentences = {signature.sentence: translate_sentence(cause_with(signature), "zh") for signature in signatures}
    assert {english: chinese for english, chinese in sentences.items() if chinese.isascii()} == {}
    assert len(set(sentences.values())) == len(sentences)


def test_an_unknown_sentence_stays_in_english() -> None:
    cause = replace(cause_with(Signature(symptom="inputs")), sentence="gremlins in diopiAdd")
    assert translate_sentence(cause, "zh") == "gremlins in diopiAdd"


def with_diagnosis(diagnosis: Diagnosis) -> Cause:
    """Return a cause with a diagnosis."""
    cause = cause_with(Signature(symptom="inputs"))
    return replace(cause, diagnosis=diagnosis.id, likely=diagnosis.likely, look_at=diagnosis.look_at)


@pytest.mark.parametrize("diagnosis", catalog(), ids=lambda diagnosis: diagnosis.id)
def test_every_diagnosis_has_a_translation(diagnosis: Diagnosis) -> None:
    cause = with_diagnosis(diagnosis)
    assert translate_diagnosis(cause, "en") == (diagnosis.likely, diagnosis.look_at)
    translated = translate_diagnosis(cause, "zh")
    assert translated is not None and not any(text.isascii() for text in translated)


def test_the_diagnosis_of_another_version_is_not_translated() -> None:
    cause = replace(with_diagnosis(catalog()[0]), likely="a kernel of another version is wrong")
    assert translate_diagnosis(cause, "zh") is None
    assert translate_diagnosis(cause_with(Signature(symptom="inputs")), "en") is None
