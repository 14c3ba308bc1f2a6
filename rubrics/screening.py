"""Cheap looks at texts before and beside the judge: orders to the rater, degenerate answers, refusals, language.

The screen is a flag for a person, never a verdict: by construction it misses many attacks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

from rubrics.evidence import sentences

# --- orders to the rater ---------------------------------------------------------------------------------------------

_RATER = r"(?:grader|rater|evaluator|assessor|reviewer|examiner|judge|scorer|autorater)s?"
_RULES = r"(?:rubric|criteria|criterion|instructions?|guidelines?|rules|scale|policy|prompt)"
_SHUN = r"(?:ignore|disregard|skip|forget|override|bypass|set aside|neglect)"
_GRANT = r"(?:give|assign|award|record|return|output|print|reply with|respond with|choose|grant|rate|put)"
_TOP = r"(?:top|max(?:imum)?|full|highest|best(?: possible)?|perfect)"
_MARK = r"(?:marks?|scores?|ratings?|grades?|points|stars|outcome)"
_IGNORE_CASE = re.IGNORECASE
_FLAGS: dict[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    # flag: (words of which one must occur, so that clean texts cost nothing; the pattern itself)
    "judge_address": (
        ("grader", "rater", "judge", "evaluator", "assessor", "reviewer", "examiner", "scorer", "assessing", "grading",
         "evaluador", "calificador", "bewerter", "évaluateur", "评审", "评分"),
        re.compile(
            rf"\b(?:note|message|memo|reminder|dear|attention|instructions?)s?,? (?:(?:to|for) )?(?:the |all |any )?{_RATER}\b"
            rf"|(?:^|[.!?>\n]|--)\s*{_RATER}\s*[,:]|\b(?:the|any|every) {_RATER} (?:must|should|has to|needs? to|is required)\b"
            r"|\b(?:anyone|whoever|those) (?:assessing|grading|rating|evaluating|judging)\b|\bbefore grading\b"
            r"|\b(?:evaluador|calificador|bewerter|évaluateur)(?:es|s|in|a)?\s*[,:]|评审请注意|评分员",
            _IGNORE_CASE,
        ),
    ),
    "override": (
        ("rubric", "criteri", "instruction", "guideline", "scale", "policy", "rules", "prompt", "new task", "rúbrica",
         "instruccion", "anweisung", "consignes", "标准", "指令"),
        re.compile(
            rf"\b{_SHUN}\b[^.!?\n]{{0,40}}\b{_RULES}\b|\bnew (?:task|instructions?|policy)\s*[:;]|\breplacement instruction"
            r"|\b(?:omite|ignora|olvida)\b[^.\n]{0,30}\b(?:rúbrica|criterios|instrucciones)|\bnew policy is\b"
            r"|\b(?:ignoriere?|missachte)\b[^.\n]{0,40}\b(?:anweisung|kriterien)|\bignorez\b[^.\n]{0,40}\b(?:consignes|critères)"
            r"|忽略[^。]{0,12}(?:标准|指令)",
            _IGNORE_CASE,
        ),
    ),
    "score_request": (
        ("mark", "score", "rating", "grade", "point", "five", " 5", "maximum", "asigna", "五分", "5分"),
        re.compile(
            rf"\b{_GRANT}\b[^.!?\n]{{0,40}}\b{_TOP}\s+{_MARK}\b|\b(?:output|return|give|print) the (?:maximum|highest|top)\b"
            rf"|\b(?:{_GRANT}|reply with score|permitted score is|score of)\b[^.!?\n]{{0,30}}\b(?:five|5)(?=\s*(?:[.!;,<\"\n]|$|points?\b|marks?\b|stars?\b|out of\b|only\b|/\s*5))"
            r"|\basigna(?:r|le)? (?:un|el) 5\b|给(?:五|5)分",
            _IGNORE_CASE,
        ),
    ),
    "role_spoof": (
        ("system", "assistant", "developer", "evaluator", "user:", "human:"),
        re.compile(
            r"(?:^|\n|[.!?]\s)\s*(?:#+\s*)?(?:system|assistant|developer|evaluator|human|user)(?: message| prompt| note)?\s*:",
            _IGNORE_CASE,
        ),
    ),
    "fake_json": (
        ("score", "verdict", "rating", "grade"),
        re.compile(
            r"[\"'](?:score|verdict|rating|grade|holistic_score|level)[\"']\s*:\s*[\"'\d\[{]"
            r"|(?:^|\n|[.!?m]\s?)\s*(?:score|rating|grade)\s*[:=]\s*(?:\d|$|five\b|pass\b)",
            _IGNORE_CASE,
        ),
    ),
    "chat_token": (
        ("<|", "[inst", "[/inst", "_of_turn", "</s>", "<<sys"),
        re.compile(r"<\|[\w ]+\|>|\[/?INST\]|<(?:start|end)_of_turn>|</?s>|<</?SYS>>", _IGNORE_CASE),
    ),
    "tag_like": (
        ("</",),
        re.compile(r"</(?:answer|context|contexts|question|reference|rubric|item|data|answer_[ab]|passage)s?>", _IGNORE_CASE),
    ),
    "hidden_markup": (
        ("<!--", "font-size", "display:", "visibility:", "color:"),
        re.compile(
            r"<!--.*?-->|style\s*=\s*[\"'][^\"']*(?:font-size:\s*0|display:\s*none|visibility:\s*hidden|color:\s*(?:white|transparent|#fff))",
            _IGNORE_CASE | re.DOTALL,
        ),
    ),
    "encoded": (
        ("decode", "base64", "rot13", "hex"),
        re.compile(r"\b(?:decode|base64|rot13|hex)\b[^.\n]{0,60}(?:[A-Za-z0-9+/]{24,}={0,2}|\bobey\b|\bfollow it\b)", _IGNORE_CASE),
    ),
    "template": (
        ("{{", "{%", "{0", "__", "%(", "${"),
        re.compile(r"\{\{.*?\}\}|\{%.*?%\}|__(?:class|globals|mro|init|import)__|%\(\w+\)s|\$\{\w+\}", re.DOTALL),
    ),
}  # fmt: skip
_INVISIBLE = re.compile("[\u200b\u2060\ufeff\u00ad\U000e0000-\U000e0fff]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһԛԝАВЕКМНОРСТХІЈЅ", "aeopcyxijsdhqwABEKMHOPCTXIJS")
ORDERS = frozenset(_FLAGS) - {"template"} | {"invisible", "bidi"}


def screen(text: str) -> list[str]:
    """Flags for text that may address the rater or break the frame, sorted; usually none.

    Vocabulary: judge_address, override, score_request, role_spoof, fake_json, chat_token, tag_like, hidden_markup,
    encoded, template, invisible, bidi, control. Hidden characters and Cyrillic look-alikes are undone before reading.
    """
    found: list[str] = []
    if not text.isascii():
        if _BIDI.search(text):
            found.append("bidi")
        if _INVISIBLE.search(text):
            found.append("invisible")
            text = _INVISIBLE.sub("", text)
        if any("\u0400" <= character <= "\u052f" for character in text) and re.search(r"[A-Za-z]", text):
            text = text.translate(_LOOKALIKES)
        text = unicodedata.normalize("NFKC", text)
    if not text.isprintable() and _CONTROL.search(text):
        found.append("control")
        text = _CONTROL.sub(" ", text)
    lowered = text.casefold()
    for flag, (words, pattern) in _FLAGS.items():
        if any(word in lowered for word in words) and pattern.search(text):
            found.append(flag)
    return sorted(found)


def screen_all(texts: Iterable[str]) -> list[str]:
    """Flags of several texts together, sorted and once each."""
    return sorted({flag for text in texts for flag in screen(text)})


# --- degenerate answers ----------------------------------------------------------------------------------------------

_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufe00-\ufe0f\U000e0000-\U000e0fff\x00-\x1f\x7f]")
_OPENER = re.compile(
    r"(?:(?:my |the )?(?:thought process|thoughts?|reasoning(?: process)?|solution|answer|final answer|response|analysis"
    r"|explanation|output|result|step 1|step one|respuesta|solución|antwort|lösung|réponse|solution|risposta|soluzione"
    r"|resposta|solução|antwoord|oplossing|答案|解答|解|回答|思考过程|الحل|الإجابة|解决方案)"
    r"|(?:let(?:'|’)?s|let us|i will|i'll|we will|we'll|we should) (?:work|think|solve|go|walk|reason|start|begin|break)\b[^.!?\n]{0,60}"
    r"|(?:to (?:solve|answer) (?:this|the) (?:problem|question)\b[^.!?\n]{0,40})"
    r"|(?:sure|certainly|of course|okay|ok|great question|here(?: is|'s) (?:the|my|an?) answer))",
    re.IGNORECASE,
)


def degenerate(answer: str | None) -> Literal["empty", "punctuation", "opener"] | None:
    """Why an answer says nothing at all, or None: empty, only signs (":", "."), or a bare opener ("Thought process:").

    "No", "5" and "42." are answers.
    """
    text = (answer or "").strip()
    if text and len(text) <= 120:
        text = _HIDDEN.sub("", text).strip()
    elif text:
        return None if any(character.isalnum() for character in text) else "punctuation"
    if not text:
        return "empty"
    if not any(character.isalnum() for character in text):
        return "punctuation"
    return "opener" if _OPENER.fullmatch(text.strip(" *#_:.!-—…\n")) else None


# --- refusals --------------------------------------------------------------------------------------------------------

_MATERIAL = r"(?:documents?|passages?|context|sources?|text|material|information provided|excerpts?|articles?)"
_KNOWN = r"(?:mention|say|state|specif|give|contain|include|provide|cover|answer|address|list|indicate|describe|report|discuss|reveal|disclos|name)"
_GIVEN = r"(?:mentioned|stated|given|specified|provided|available|disclosed|covered|found|included|reported|described|listed|named|answered|addressed|known)"
_REFUSALS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (words, re.compile(pattern, _IGNORE_CASE | re.MULTILINE))
    for words, pattern in (
        (("sorry", "apolog", "afraid", "not", "n't", "n’t", "no ", "none", "unable", "outside", "beyond", "unknown", "n/a", "insufficient"),  # en
         r"\bi(?:'m| am)? ?(?:sorry|apologi[sz]e|afraid)\b|\bunable to (?:answer|find|determine|provide)\b"
         r"|\b(?:i|we) (?:could not|couldn['’]t|can(?:no|['’])t|can not|(?:am|was|were) (?:not able|unable) to|do not|don['’]t|did not|didn['’]t) "
         r"(?:find|answer|determine|tell|know|have (?:any |enough |sufficient |the )?(?:information|data|context|details)|see|locate|provide|help|say|confirm|assist|verify|identify)\b"
         rf"|\b{_MATERIAL}\b[^.!?\n]{{0,60}}\b(?:do(?:es)?|did) ?(?:not|n['’]t) (?:\w+ )?{_KNOWN}"
         rf"|\b(?:there (?:is|are|was|were)|there['’]s|i have|i see|i found) (?:no|not enough|insufficient) (?:(?:\w+ ){{0,2}}(?:information|mention|data|details|answer|evidence|indication)\b|[^.!?\n]{{1,60}}\bin the (?:\w+ )?{_MATERIAL})"
         rf"|\b(?:no|insufficient|not enough) (?:information|mention|data|details|answer)\b[^.!?\n]{{0,60}}\b(?:{_MATERIAL}|available|found|given)\b"
         rf"|^no [^.!?\n]{{1,60}} (?:appears?|(?:is|are|was|were) {_GIVEN}) in the (?:\w+ )?{_MATERIAL}"
         rf"|\b(?:is|are|was|were) (?:not|never) (?:\w+ )?{_GIVEN}\b|\b(?:is|are|was|were)n['’]t (?:\w+ )?{_GIVEN}\b"
         rf"|\bnone of the {_MATERIAL}\b|\b(?:outside|beyond) (?:the scope of )?(?:the )?(?:provided |given |supplied )?{_MATERIAL}\b"
         r"|^(?:not (?:stated|mentioned|specified|given|available|known)|unknown|n/?a|no answer|insufficient information)\b"),
        (("lo siento", "no "),  # es
         r"\blo siento\b|\bno (?:(?:se|lo) (?:menciona|indica|especifica|dice|encuentra|sé)|encontré|encuentro|puedo (?:responder|encontrar|determinar)"
         r"|tengo (?:suficiente )?información|hay información|pude encontrar|mencionan?|indican?|especifican?|contienen?|dicen?)\b"),
        (("desculp", "lamento", "não"),  # pt
         r"\b(?:desculpe|lamento)\b|\bnão (?:encontrei|consegui|posso responder|sei|há informaç(?:ão|ões)|é mencionad[oa]|mencionam?|indicam?|consta|tenho informações)\b"),
        (("dispiace", "non "),  # it
         r"\bmi dispiace\b|\bnon (?:ho trovato|posso rispondere|lo so|è (?:menzionat[oa]|indicat[oa]|specificat[oa])|ci sono informazioni|riesco a trovare|contengono|menzionano|dispongo)\b"),
        (("désol", " pas", "aucune information"),  # fr
         r"\bdésolée?s?\b|\baucune information\b|\bje (?:ne |n['’])[^.!?\n]{0,40}\bpas\b[^.!?\n]{0,40}|\bn(?:e |['’])(?:mentionne|précise|indique|contien|est|figure|donne)\w* pas\b"),
        (("leid", "nicht", "kein"),  # de
         r"\bes tut mir leid\b|\bleider (?:kann|konnte|enth|habe|liegen|geht|finde)|\b(?:dokumente?n?|texte?n?|quellen?|unterlagen|passagen?|kontext)\b[^.!?\n]{0,60}\b(?:nicht|keine?n?)\b"
         r"|\bgeht\b[^.!?\n]{0,40}\bnicht hervor|\bnicht (?:angegeben|erwähnt|genannt|bekannt|enthalten|beantwort)|\bkeine (?:information|angabe)|\bweiß (?:ich )?(?:es )?nicht"),
        (("spijt", "helaas", "niet", "geen"),  # nl
         r"\bhet spijt me\b|\bhelaas (?:kan|kon|staat|vind)|\b(?:documenten?|teksten?|bronnen?|passages?|context)\b[^.!?\n]{0,60}\b(?:niet|geen)\b|\b(?:niet|geen) (?:vermeld|genoemd|gevonden|informatie|bekend)|\bweet (?:ik )?(?:het )?niet\b"),
        (("przykro", "nie "),  # pl
         r"\bprzykro mi\b|\bniestety nie\b|\bnie (?:znalazłem|znalazłam|mogę odpowiedzieć|wiem|podano|ma informacji)\b"),
        (("сожалению", "не ", "нет "), r"к сожалению|\bне (?:указан|упомина|могу|нашел|нашёл|знаю|содерж|найден)|нет информации"),  # ru
        (("üzgün", "maalesef", "bilgi ", "belirtil"), r"\b(?:üzgünüm|maalesef)\b|\bbilgi (?:yok|bulunmuyor|bulamadım)|belirtilmemiş"),  # tr
        (("抱歉", "对不起", "無法", "无法", "没有", "沒有", "未", "不知道"),  # zh
         r"抱歉|对不起|無法回答|无法(?:回答|确定|找到|提供)|(?:没有|沒有|未|并未)(?:提到|提及|说明|找到|相关|给出|提供|記載|包含)|不知道"),
        (("申し訳", "ません", "ない", "なし"),  # ja
         r"申し訳|[分わ]かりません|記載(?:されて|が|は)?(?:い)?(?:ません|ない|なし|ありません)|見つかりません|(?:情報|言及)(?:が|は)?(?:ありません|ない)|お答えできません"),
        (("죄송", "없"), r"죄송|알 수 없|찾을 수 없|정보가 없|언급(?:되지|이 없)"),  # ko
        (("عذر", "آسف", "لا ", "لم ", "غير "),  # ar
         r"عذر[اً]|آسف|لا (?:أعرف|أعلم|يمكنني|أستطيع|تذكر|يذكر|تحتوي|توجد معلومات|يوجد)|لم (?:أجد|أتمكن|يُذكر|يذكر|تذكر|يرد)|غير (?:مذكور|متوفر|محدد)"),
        (("माफ़", "क्षमा", "नहीं"), r"माफ़|क्षमा|नहीं (?:मिला|मिली|बताया|दिया|पता)|जानकारी नहीं"),  # hi
    )
)  # fmt: skip


def _refuses(part: str) -> bool:
    lowered = part.casefold()
    return any(any(word in lowered for word in words) and pattern.search(part) for words, pattern in _REFUSALS)


_COURTESY = re.compile(
    r"\b(?:please|feel free|let me know|happy to help|if you (?:can|could|have|share|provide|would)|could you|would you|contact|try|you may want|you (?:can|could|might) (?:check|consult|ask)|check (?:with|the)|i recommend|hope)\b"
    r"|\b(?:por favor|si puede|bitte|s'il vous|veuillez|per favore|alstublieft)\b|请|ください|من فضلك",
    re.IGNORECASE,
)  # fmt: skip
_TURN = re.compile(
    r"(?:[,;]|\s[-–—])\s*(?:but|however|although|though|yet|still|pero|aunque|aber|jedoch|mais|cependant|ma|però|mas|maar|но|但是?|しかし|لكن)\b\s*",
    re.IGNORECASE,
)


def _carries_content(part: str) -> bool:
    """Whether a part of an answer that is no refusal itself says something to be judged."""
    if _refuses(part) or _COURTESY.search(part):
        return False
    words = re.findall(r"\w+", part)
    return any(character.isdigit() for character in part) or len(words) > 3 or any(c >= "\u2e80" for c in part[:1])


def refusal_hint(answer: str) -> Literal["refused", "caveated"] | None:
    """What refusal phrases suggest (en es fr de it pt nl pl ru tr zh ja ko ar hi): a cross-check, never a verdict.

    refused: a refusal phrase, and no part of the answer says anything else but courtesies; caveated: a refusal phrase
    beside content ("the documents do not say, but it is probably 15 days"); None: no such phrase.
    """
    if not _refuses(answer):
        return None
    parts = (part for sentence in sentences(answer) for part in _TURN.split(sentence) if part.strip())
    return "caveated" if any(_carries_content(part) for part in parts) else "refused"


def declines(answer: str) -> bool:
    """Whether phrases alone show that the answer only declines (quick refusal_correctness asks them first)."""
    return refusal_hint(answer) == "refused"


# --- language --------------------------------------------------------------------------------------------------------

_SCRIPTS = (
    ("han", "\u4e00", "\u9fff"), ("kana", "\u3040", "\u30ff"), ("hangul", "\uac00", "\ud7af"), ("cyrillic", "\u0400", "\u052f"),
    ("arabic", "\u0600", "\u06ff"), ("hebrew", "\u0590", "\u05ff"), ("devanagari", "\u0900", "\u097f"), ("greek", "\u0370", "\u03ff"),
    ("thai", "\u0e00", "\u0e7f"),
)  # fmt: skip
_COMMON = {
    "en": "the of and to in is that it for was are with on as by be this have from which what how who when where does did",
    "es": "el la los las de que y en un una es por con para del se su cuál cuántos qué cómo dónde está son fue",
    "fr": "le la les des de et est dans une un que qui pour sur avec au du pas il elle quel quelle comment où sont été",
    "de": "der die das und ist in den von zu mit auf für ein eine nicht wie was wer wo wann dem im des sich wird wurde",
    "it": "il lo la gli le di che e è in un una per con del della non si sono come quanto quale dove quando nel",
    "pt": "o a os as de que e em um uma é para com do da não se são como qual quando onde foi no na",
    "nl": "de het een en van is in op te dat voor met zijn niet aan wordt hoe wat wie waar wanneer er ook bij",
}
_COMMON_SETS = {language: frozenset(words.split()) for language, words in _COMMON.items()}


def language(text: str) -> str | None:
    """The script, or for Latin letters the language, of a text when it is beyond doubt; else None.

    Latin: at least three of its common words, and twice as many as in any other language.
    """
    letters = [character for character in text[:2000] if character.isalpha()]
    if not text.isascii() and letters:
        for name, low, high in _SCRIPTS:
            if sum(low <= character <= high for character in letters) > 0.5 * len(letters):
                return "han" if name == "kana" else name
    words = re.findall(r"[^\W\d_]+", text[:2000].casefold())
    counts = sorted(((sum(w in known for w in words), name) for name, known in _COMMON_SETS.items()), reverse=True)
    (best, name), (second, _) = counts[0], counts[1]
    return name if best >= 3 and best >= 2 * max(second, 1) else None


def language_mismatch(question: str, answer: str) -> bool:
    """Whether question and answer are beyond doubt in different languages or scripts."""
    asked = language(question)
    return asked is not None and (given := language(answer)) is not None and given != asked
