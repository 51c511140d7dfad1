"""One case on one vendor: the call, what it left behind, sequences of calls, calls to be refused, runtime cases.

Imports what is stored (`baseline`) and the case model. Nothing here decides whether a result is correct: the checks do
that.
"""
