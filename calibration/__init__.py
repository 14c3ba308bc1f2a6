"""Numbers about raters: agreement, bias, correction, comparison. Knows only (item, rater, label)."""

from __future__ import annotations

from calibration.errors import CalibrationError

__all__ = ["CalibrationError"]
