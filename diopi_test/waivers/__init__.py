"""Waivers and known flakes: the files that list them, their application to the records of a run, and drafts of them.

A waiver states that cases of a vendor may fail, and why. A known flake states that cases sometimes fail. Only this
package turns the verdict of a failed case into `waived`.
"""
