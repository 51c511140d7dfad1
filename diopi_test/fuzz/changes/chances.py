"""The probabilities of changes."""

from hypothesis import strategies as st

SOMETIMES = st.sampled_from([False, False, True])
RARELY = st.sampled_from([False] * 9 + [True])
