"""Large cases of products with sparse matrices."""

from diopi_test.cases.large.attention import register_large
from diopi_test.cases.sparse import of_product, sparse

register_large(
    "diopiSpMM",
    templates=(
        sparse("rows", *(3, 0, 7, 1) * 2053, inner=4099, columns=19, order="mixed"),
        sparse("wide", *(17, 2) * 67, inner=131, columns=1031),
    ),
    derive=of_product,
)
