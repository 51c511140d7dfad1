"""The probabilities of changes."""

from hypothesis import strategies as st

SOMETIMES = st.sampled_from([False, False, True])
SELDOM = st.sampled_from([False] * 6 + [True])
RARELY = st.sampled_from([False] * 9 + [True])
VERY_RARELY = st.sampled_from([False] * 59 + [True])
