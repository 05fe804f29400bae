"""Certificates: check that the machine code of a saved executable computes the formulas that its file claims. This
package may import `runtime`, but nothing of the compiler."""

from __future__ import annotations

from relay.validation.certificate import certify
from relay.validation.report import Finding, Part, Report

__all__ = ["Finding", "Part", "Report", "certify"]
