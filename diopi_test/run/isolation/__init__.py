"""Isolation: cases run in separate processes, so a crash, a hang or an exit of a vendor ends only its worker.

The parent, which is the process of the run, starts one *fork server*. This process has imported every module and has
loaded no vendor. It forks *workers*, each with an *evaluator*. A worker loads the vendor, checks that the vendor works,
and makes the calls that its evaluator requests. The evaluator runs one case after another, and sends the outcomes to
the parent.
"""
