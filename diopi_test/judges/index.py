"""Writing by index: of several values for one place, any may stay."""

from __future__ import annotations

import numpy as np

from diopi_test.judges import Answer, Problems, judges
from diopi_test.judges.kinds import one_of_those_written
from diopi_test.reference.index import along_axis, numbers_of, selection, used_part


@judges("diopiIndexPut")
def index_put(answer: Answer) -> Problems:
    given = answer.arguments
    places = numbers_of(given["input"].shape, selection(given["indices"]))
    values = np.broadcast_to(given["values"], places.shape)
    yield from one_of_those_written("the result", answer.result, given["input"], places, values)


@judges("diopiScatter")
def scatter(answer: Answer) -> Problems:
    given = answer.arguments
    places = numbers_of(given["input"].shape, along_axis(given["index"], given["dim"]))
    values = used_part(given["src"], given["index"])
    yield from one_of_those_written("the result", answer.result, given["input"], places, values)
