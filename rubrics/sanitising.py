"""Make hidden and structural characters of untrusted text visible, with a log, so that they can be undone exactly.

Every change has one shape: a single character becomes its code point in double brackets, `⟦U+200B⟧`. Letters, layout
and meaning of honest text stay as they are. Touched are:

* C0 controls but tab and line feed (a carriage return before a line feed stays), DEL, C1, line and paragraph
  separators, lone surrogates, non-characters;
* zero-width characters and fillers; bidi controls; tag characters. Joiners and direction marks beside a non-ASCII
  letter or symbol stay: Persian, Indic scripts, Hebrew and emoji need them;
* variation selectors in runs, or where they select nothing;
* chat-template tokens (their first character): anything with `<|` or `[|`, `[INST]`, `<<SYS>>`, `<s>`,
  `<start_of_turn>`, `<tool_call>`, `<think>`, `<bos>`, `<fim_...>`, `<function_calls>`, `[TOOL_CALLS]`, `[gMASK]`,
  `### Human:` and its kin, `Human:`, `Assistant:`, `USER:`, `ASSISTANT:` at a line's start;
* for quick prompts also headings in square brackets at a line's start, and the headings in use anywhere;
* the bracket `⟦` itself, so that `restore` is exact.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_JOINERS = "\u200c\u200d\u200e\u200f\u061c"
_RANGES = (
    (0x00, 0x08), (0x0B, 0x0D), (0x0E, 0x1F), (0x7F, 0x9F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x27E6, 0x27E6), (0x3164, 0x3164),
    (0xD800, 0xDFFF), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0xFFFE, 0xFFFF),
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_HIDDEN_CHARS = frozenset(chr(code) for low, high in _RANGES for code in range(low, high + 1))
_HIDDEN = re.compile("[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in _RANGES) + "]")
_ANGLE = re.compile(
    r"<(?=[|｜]|</?SYS>>|/?(?:s|bos|eos|pad|unk|mask|sep|sop|eop|eoh|eoa|bot|human|think|tools?|tool_call|tool_response|"
    r"tool_output|function_calls|endoftext|file_sep|repo_name)>|(?:BOS|EOS|EOP|PAD)_TOKEN>|(?:start|end)_of_|/?fim_|"
    r"unused\d|extra_id_|function[=_])",
    re.IGNORECASE,
)
_SQUARE = re.compile(
    r"\[(?=\||/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|gMASK|sMASK|CLS|SEP|"
    r"MASK)\])",
    re.IGNORECASE,
)
_HASH = re.compile(
    r"#(?<![^\n]#)(?=#{1,4}[ \t]*(?:Human|Assistant|User|System|Instruction|Response|Input)[ \t]*:)", re.IGNORECASE
)
_ROLE = re.compile(r"^(?:H(?=uman:)|A(?=ssistant:|SSISTANT:)|U(?=SER:))", re.MULTILINE)
_HEADING = re.compile(
    r"(?<![^\n])([ \t>*#]*)\[(?=[ \t]*[^\W\d_](?:[^\W\d_]|[ \t:_-])+\])"
    r"|()\[(?=(?:CHECK|PASSAGES?|SENTENCE|QUESTION|ANSWER|REFERENCE|FIRST ANSWER: ?A|SECOND ANSWER: ?B)\])",
)
_VISIBLE = re.compile(r"⟦U\+([0-9A-F]{4,6})⟧")


def visible(text: str, *, headings: bool = False) -> tuple[str, tuple[str, ...]]:
    """The text with hidden characters and chat tokens made visible, and a log such as ("U+200B x2", "chat token x1").

    `headings` also breaks headings in square brackets (the structure of quick prompts).
    `restore` undoes it exactly. Plain text is returned as it is, with an empty log.
    """
    plain = text.isascii() and text.replace("\n", " ").replace("\t", " ").isprintable()
    if plain and not ("<" in text or "[" in text or "#" in text or ":" in text):
        return text, ()
    log: Counter[str] = Counter()
    if not plain and (text.isascii() or not _HIDDEN_CHARS.isdisjoint(set(text))):
        text = _HIDDEN.sub(lambda found: _hidden(found, log), text)
    for opener, pattern in (("<", _ANGLE), ("[", _SQUARE), ("##", _HASH)):
        if opener in text:
            text = pattern.sub(lambda found: _counted(found[0], "chat token", log), text)
    if "uman:" in text or "ssistant:" in text or "SER:" in text or "SSISTANT:" in text:
        text = _ROLE.sub(lambda found: _counted(found[0], "chat token", log), text)
    if headings and "[" in text:
        text = _HEADING.sub(lambda found: (found[1] or "") + _counted("[", "heading", log), text)
    return text, tuple(f"{name} x{count}" for name, count in sorted(log.items()))


def one_line(text: str) -> str:
    """Line breaks of already sanitised text made visible too, for a row of a table."""
    return text.replace("\r", "⟦U+000D⟧").replace("\n", "⟦U+000A⟧")


def restore(text: str) -> str:
    """Undo `visible` and `one_line`: every visible code point becomes its character again.

    Use it on quotes that a judge copied from a prompt before they are looked up in the raw text.
    """
    return _VISIBLE.sub(lambda found: chr(int(found[1], 16)) if int(found[1], 16) < 0x110000 else found[0], text)


def _counted(char: str, name: str, log: Counter[str]) -> str:
    log[name] += 1
    return f"⟦U+{ord(char):04X}⟧"


def _hidden(found: re.Match[str], log: Counter[str]) -> str:
    char, text, at = found[0], found.string, found.start()
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in _JOINERS:
        innocent = (_foreign(before) or _foreign(after)) and not (_ignorable(before) or _ignorable(after))
    elif _selector(char):
        innocent = bool(before) and not _selector(after) and _selectable(before, char)
    elif char == "\r":
        innocent = after == "\n"
    else:
        innocent = False
    return char if innocent else _counted(char, f"U+{ord(char):04X}", log)


def _foreign(char: str) -> bool:
    return char > "\x7f" and (unicodedata.category(char)[0] in "LM" or unicodedata.category(char) in ("So", "Sk"))


def _ignorable(char: str) -> bool:
    return bool(char) and unicodedata.category(char) == "Cf"


def _selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _selectable(base: str, selector: str) -> bool:
    """Whether a variation selector has something to select: ideographs for the supplement, symbols for the others."""
    if _selector(base):
        return False
    if selector > "\uffff":
        return base >= "\u3400" and unicodedata.category(base) == "Lo"
    return base in "#*0123456789" or (base > "\x7f" and not unicodedata.category(base).startswith("C"))
