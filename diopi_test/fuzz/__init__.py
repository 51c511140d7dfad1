"""Calls nobody wrote: drawn, evaluated by the reference, run on a vendor, and shrunk where they go wrong.

A function's own cases show what a legal call of it is (`known`); `changes` changes one of them as the prototype's
facts allow, `calls` draws such calls, and `legal` computes what must come of one, or says why it is none, by the
`relations` that hold in all cases. `trial` runs them in workers, `search` has Hypothesis look for those that
go wrong and shrink them, and `findings` writes what is left as cases.
"""
