"""The fuzzer: random valid calls, which the reference evaluates, a vendor runs, and Hypothesis shrinks if they fail.

`known` collects what the cases of a function show about its valid calls. `changes` modifies a case as the prototype's
facts allow, and `calls` draws such calls. `legal` computes the expected results of a call, or states why the call is
invalid; it uses the `relations` that hold in all cases. `trial` runs calls in workers, `search` lets Hypothesis search
for failures and shrink them, and `findings` writes the results as cases.
"""
