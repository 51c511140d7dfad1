"""The audit: faults put into a correct vendor one at a time, to show which ones each function's cases catch."""

from diopi_test.quality.audit.matrix import AuditError, FunctionAudit, audit_function

__all__ = ["AuditError", "FunctionAudit", "audit_function"]
