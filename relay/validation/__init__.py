"""Certificates: what an artifact claims of its machine code, checked on the machine code. May import `runtime`, and
nothing of the compiler."""

from __future__ import annotations

from relay.validation.certificate import certify
from relay.validation.report import Finding, Part, Report

__all__ = ["Finding", "Part", "Report", "certify"]
