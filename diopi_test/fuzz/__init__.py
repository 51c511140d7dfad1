"""The fuzzer: it draws random valid calls, runs them on a vendor, and shrinks calls that fail.

`knowledge` collects what the cases of a function show about valid calls. `changes` modifies a case as the prototype's
facts allow, and `calls` draws such calls. `legal` computes the expected results of a call with the reference, or states
why the call is invalid; it uses the `relations` that hold in all cases. `trial` runs calls in workers, `search` lets
Hypothesis search for failures and shrink them, and `findings` writes the failures as cases.
"""
