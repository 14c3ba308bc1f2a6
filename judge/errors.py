"""Errors sorted by what the reader can do about them.

JudgeError
├── UsageError        fix the command or the file; exit 2
│   └── InputError    bad rows in an input file, all listed; exit 2
└── ProviderStop      the provider refuses every call (key, model, parameters); exit 2
"""

from __future__ import annotations

from collections.abc import Sequence


class JudgeError(Exception):
    """Base of all errors meant for people: the message has the name, the value, the rule and the next step."""


class UsageError(JudgeError):
    """The command or a setting cannot work as given."""


class InputError(UsageError):
    """One or more rows of an input are unusable; nothing was spent.

    `rows` holds one line per problem ("file:line field: value, rule"); the message shows the first 20.
    """

    shown = 20

    def __init__(self, message: str, rows: Sequence[str] = ()) -> None:
        self.rows = list(rows)
        lines = [message, *(f"  {row}" for row in self.rows[: self.shown])]
        if len(self.rows) > self.shown:
            lines.append(f"  ... and {len(self.rows) - self.shown} more")
        super().__init__("\n".join(lines))


class ProviderStop(JudgeError):
    """The provider will refuse every further call: wrong key, unknown model, unsupported parameter."""
