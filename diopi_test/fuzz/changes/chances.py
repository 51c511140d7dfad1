"""The probabilities of changes."""

from hypothesis import strategies as st

SOMETIMES = st.sampled_from([False, False, True])
"""True with probability 1/3."""

SELDOM = st.sampled_from([False] * 6 + [True])
"""True with probability 1/7."""

RARELY = st.sampled_from([False] * 9 + [True])
"""True with probability 1/10."""

VERY_RARELY = st.sampled_from([False] * 59 + [True])
"""True with probability 1/60."""
