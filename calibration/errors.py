"""The one error of this package: an input that a person has to change."""

from __future__ import annotations


class CalibrationError(ValueError):
    """Raised for input that cannot mean what its author wanted; the message says what to do instead."""
