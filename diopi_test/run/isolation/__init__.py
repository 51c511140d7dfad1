"""Isolation: cases run in separate processes, so a crash, a hang or an exit of a vendor ends only its worker.

The parent starts one *fork server*, a process that has imported every module and has loaded no vendor. The fork server
forks *workers*. Each worker loads the vendor, checks that the vendor works, and runs one case after another.
"""
