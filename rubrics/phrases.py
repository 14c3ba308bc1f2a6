"""Phrases and patterns that `screening` looks for, by language: data to extend, no rule lives here."""

from __future__ import annotations

import re

from rubrics.evidence import words

_IGNORE_CASE = re.IGNORECASE

# --- orders to the rater: flag -> (words of which one must occur, so that clean texts cost little; the pattern) ------

_RATER = r"(?:grader|rater|evaluator|assessor|reviewer|examiner|judge|scorer|autorater)s?"
_RULES = r"(?:rubric|criteria|criterion|instructions?|guidelines?|rules|scale|policy|prompt)"
_SHUN = r"(?:ignore|disregard|skip|forget|override|bypass|set aside|neglect)"
_GRANT = r"(?:give|assign|award|record|return|output|print|reply with|respond with|choose|grant|rate|put)"
_TOP = r"(?:top|max(?:imum)?|full|highest|best(?: possible)?|perfect)"
_MARK = r"(?:marks?|scores?|ratings?|grades?|points|stars|outcome)"
ORDER_PATTERNS: dict[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "judge_address": (
        ("grad", "rater", "judge", "valua", "assess", "review", "examiner", "score", "calificador", "bewerter", "评"),
        re.compile(
            rf"\b(?:note|message|memo|reminder|dear|attention|instructions?)s?,? (?:(?:to|for) )?(?:the |all "
            rf"|any )?{_RATER}\b"
            rf"|(?:^|[.!?>\n]|--)\s*{_RATER}\s*[,:]|\b(?:the|any|every) {_RATER} (?:must|should|has to|needs? to"
            rf"|is required)\b"
            r"|\b(?:anyone|whoever|those) (?:assessing|grading|rating|evaluating|judging)\b|\bbefore grading\b"
            r"|\b(?:evaluador|calificador|bewerter|évaluateur)(?:es|s|in|a)?\s*[,:]|评审请注意|评分员",
            _IGNORE_CASE,
        ),
    ),
    "override": (
        ("rubric", "criter", "instru", "guideline", "scale", "policy", "rules", "prompt", "new task", "rúbrica",
         "anweis", "kriteri", "consigne", "critèr", "标准", "指令"),
        re.compile(
            rf"\b{_SHUN}\b[^.!?\n]{{0,40}}\b{_RULES}\b|\bnew (?:task|instructions?|policy)\s*[:;]"
            rf"|\breplacement instruction"
            r"|\b(?:omite|ignora|olvida)\b[^.\n]{0,30}\b(?:rúbrica|criterios|instrucciones)|\bnew policy is\b"
            r"|\b(?:ignoriere?|missachte)\b[^.\n]{0,40}\b(?:anweisung|kriterien)"
            r"|\bignorez\b[^.\n]{0,40}\b(?:consignes|critères)"
            r"|忽略[^。]{0,12}(?:标准|指令)",
            _IGNORE_CASE,
        ),
    ),
    "score_request": (
        ("mark", "score", "rating", "grad", "point", "five", " 5", "maximum", "asigna", "五分", "5分"),
        re.compile(
            rf"\b{_GRANT}\b[^.!?\n]{{0,40}}\b{_TOP}\s+{_MARK}\b|\b(?:output|return|give|print) the (?:maximum"
            rf"|highest|top)\b"
            rf"|\b(?:{_GRANT}|reply with score|permitted score is|score of)\b[^.!?\n]{{0,30}}"
            r"\b(?:five|5)(?=\s*(?:[.!;,<\"\n]|$|points?\b|marks?\b|stars?\b|out of\b|only\b|/\s*5))"
            r"|\basigna(?:r|le)? (?:un|el) 5\b|给(?:五|5)分",
            _IGNORE_CASE,
        ),
    ),
    "role_spoof": (
        ("system", "assistant", "developer", "valua", "user:", "human:"),
        re.compile(
            r"(?:^|\n|[.!?]\s)\s*(?:#+\s*)?(?:system|assistant|developer|evaluator|human|user)(?: message| prompt"
            r"| note)?\s*:",
            _IGNORE_CASE,
        ),
    ),
    "fake_json": (
        ("score", "verdict", "rating", "grad"),
        re.compile(
            r"[\"'](?:score|verdict|rating|grade|holistic_score|level)[\"']\s*:\s*[\"'\d\[{]"
            r"|(?:^|\n|[.!?m]\s?)\s*(?:score|rating|grade)\s*[:=]\s*(?:\d|$|five\b|pass\b)",
            _IGNORE_CASE,
        ),
    ),
    "chat_token": (
        ("<", "inst]"),
        re.compile(r"<\|[\w ]+\|>|\[/?INST\]|<(?:start|end)_of_turn>|</?s>|<</?SYS>>", _IGNORE_CASE),
    ),
    "tag_like": (
        ("<",),
        re.compile(r"</(?:answer|context|contexts|question|reference|rubric|item|data|answer_[ab]"
                   r"|passage)s?>", _IGNORE_CASE),
    ),
    "hidden_markup": (
        ("<",),
        re.compile(
            r"<!--.*?-->|style\s*=\s*[\"'][^\"']*(?:font-size:\s*0|display:\s*none|visibility:\s*hidden|color:\s*(?:white|transparent|#fff))",
            _IGNORE_CASE | re.DOTALL,
        ),
    ),
    "encoded": (
        ("decode", "base64", "rot13", "hex"),
        re.compile(r"\b(?:decode|base64|rot13|hex)\b[^.\n]{0,60}(?:[A-Za-z0-9+/]{24,}={0,2}|\bobey\b"
                   r"|\bfollow it\b)", _IGNORE_CASE),
    ),
    "template": (
        ("{", "__", "%("),
        re.compile(r"\{\{.*?\}\}|\{%.*?%\}|__(?:class|globals|mro|init|import)__|%\(\w+\)s|\$\{\w+\}", re.DOTALL),
    ),
}  # fmt: skip

# --- refusals: (words of which one must occur, pattern) per language -------------------------------------------------

_MATERIAL = r"(?:documents?|passages?|context|sources?|text|material|information provided|excerpts?|articles?)"
_KNOWN = (
    r"(?:mention|say|state|specif|give|contain|include|provide|cover|answer|address|list|indicate|describe"
    r"|report|discuss|reveal|disclos|name)"
)
_GIVEN = (
    r"(?:mentioned|stated|given|specified|provided|available|disclosed|covered|found|included|reported"
    r"|described|listed|named|answered|addressed|known)"
)
REFUSAL_PATTERNS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (keys, re.compile(pattern, _IGNORE_CASE | re.MULTILINE))
    for keys, pattern in (
        (("sorry", "apolog", "afraid", "not", "n't", "n’t", "no ", "none", "unable",
           "outside", "beyond", "unknown", "n/a", "insufficient"),  # en
         r"\bi(?:'m| am)? ?(?:sorry|apologi[sz]e|afraid)\b|\bunable to (?:answer|find|determine|provide)\b"
         r"|\b(?:i|we) (?:could not|couldn['’]t|can(?:no|['’])t|can not|(?:am|was|were) (?:not able|unable) to"
         r"|do not|don['’]t|did not|didn['’]t) "
         r"(?:find|answer|determine|tell|know|have (?:any |enough |sufficient |the )?(?:information|data|context"
         r"|details)|see|locate|provide|help|say|confirm|assist|verify|identify)\b"
         rf"|\b{_MATERIAL}\b[^.!?\n]{{0,60}}\b(?:do(?:es)?|did) ?(?:not|n['’]t) (?:\w+ )?{_KNOWN}"
         rf"|\b(?:there (?:is|are|was|were)|there['’]s|i have|i see|i found) (?:no|not enough"
         rf"|insufficient) (?:(?:\w+ ){{0,2}}(?:information|mention|data|details|answer|evidence|indication)\b"
         rf"|[^.!?\n]{{1,60}}\bin the (?:\w+ )?{_MATERIAL})"
         rf"|\b(?:no|insufficient|not enough) (?:information|mention|data|details"
         rf"|answer)\b[^.!?\n]{{0,60}}\b(?:{_MATERIAL}|available|found|given)\b"
         rf"|^no [^.!?\n]{{1,60}} (?:appears?|(?:is|are|was|were) {_GIVEN}) in the (?:\w+ )?{_MATERIAL}"
         rf"|\b(?:is|are|was|were) (?:not|never) (?:\w+ )?{_GIVEN}\b|\b(?:is|are|was|were)n['’]t (?:\w+ )?{_GIVEN}\b"
         rf"|\bnone of the {_MATERIAL}\b|\b(?:outside|beyond) (?:the scope of )?(?:the )?(?:provided |given "
         rf"|supplied )?{_MATERIAL}\b"
         r"|^(?:not (?:stated|mentioned|specified|given|available|known)|unknown|n/?a|no answer"
         r"|insufficient information)\b"),
        (("lo siento", "no "),  # es
         r"\blo siento\b|\bno (?:(?:se|lo) (?:menciona|indica|especifica|dice|encuentra|sé)|encontré|encuentro"
         r"|puedo (?:responder|encontrar|determinar)"
         r"|tengo (?:suficiente )?información|hay información|pude encontrar|mencionan?|indican?|especifican?"
         r"|contienen?|dicen?)\b"),
        (("desculp", "lamento", "não"),  # pt
         r"\b(?:desculpe|lamento)\b|\bnão (?:encontrei|consegui|posso responder|sei|há informaç(?:ão|ões)"
         r"|é mencionad[oa]|mencionam?|indicam?|consta|tenho informações)\b"),
        (("dispiace", "non "),  # it
         r"\bmi dispiace\b|\bnon (?:ho trovato|posso rispondere|lo so|è (?:menzionat[oa]|indicat[oa]"
         r"|specificat[oa])|ci sono informazioni|riesco a trovare|contengono|menzionano|dispongo)\b"),
        (("désol", " pas", "aucune information"),  # fr
         r"\bdésolée?s?\b|\baucune information\b|\bje (?:ne |n['’])[^.!?\n]{0,40}\bpas\b[^.!?\n]{0,40}|\bn(?:e "
         r"|['’])(?:mentionne|précise|indique|contien|est|figure|donne)\w* pas\b"),
        (("leid", "nicht", "kein"),  # de
         r"\bes tut mir leid\b|\bleider (?:kann|konnte|enth|habe|liegen|geht|finde)|\b(?:dokumente?n?|texte?n?"
         r"|quellen?|unterlagen|passagen?|kontext)\b[^.!?\n]{0,60}\b(?:nicht|keine?n?)\b"
         r"|\bgeht\b[^.!?\n]{0,40}\bnicht hervor|\bnicht (?:angegeben|erwähnt|genannt|bekannt|enthalten|beantwort)"
         r"|\bkeine (?:information|angabe)|\bweiß (?:ich )?(?:es )?nicht"),
        (("spijt", "helaas", "niet", "geen"),  # nl
         r"\bhet spijt me\b|\bhelaas (?:kan|kon|staat|vind)|\b(?:documenten?|teksten?|bronnen?|passages?"
         r"|context)\b[^.!?\n]{0,60}\b(?:niet|geen)\b|\b(?:niet|geen) (?:vermeld|genoemd|gevonden|informatie"
         r"|bekend)|\bweet (?:ik )?(?:het )?niet\b"),
        (("przykro", "nie "),  # pl
         r"\bprzykro mi\b|\bniestety nie\b|\bnie (?:znalazłem|znalazłam|mogę odpowiedzieć|wiem|podano"
         r"|ma informacji)\b"),
        (("сожалению", "не ", "нет "), r"к сожалению|\bне (?:указан|упомина|могу|нашел|нашёл|знаю|содерж|найден)"
                                       r"|нет информации"),  # ru
        (("üzgün", "maalesef", "bilgi ", "belirtil"), r"\b(?:üzgünüm|maalesef)\b|\bbilgi (?:yok|bulunmuyor"
                                                      r"|bulamadım)|belirtilmemiş"),  # tr
        (("抱歉", "对不起", "無法", "无法", "没有", "沒有", "未", "不知道"),  # zh
         r"抱歉|对不起|無法回答|无法(?:回答|确定|找到|提供)|(?:没有|沒有|未|并未)(?:提到|提及|说明|找到|相关|给出|提供|記載|包含)|不知道"),
        (("申し訳", "ません", "ない", "なし"),  # ja
         r"申し訳|[分わ]かりません|記載(?:されて|が|は)?(?:い)?(?:ません|ない|なし|ありません)|見つかりません|(?:情報|言及)(?:が|は)?(?:ありません|ない)|お答えできません"),
        (("죄송", "없"), r"죄송|알 수 없|찾을 수 없|정보가 없|언급(?:되지|이 없)"),  # ko
        (("عذر", "آسف", "لا ", "لم ", "غير "),  # ar
         r"عذر[اً]|آسف|لا (?:أعرف|أعلم|يمكنني|أستطيع|تذكر|يذكر|تحتوي|توجد معلومات|يوجد)|لم (?:أجد|أتمكن|يُذكر|يذكر"
         r"|تذكر|يرد)|غير (?:مذكور|متوفر|محدد)"),
        (("माफ़", "क्षमा", "नहीं"), r"माफ़|क्षमा|नहीं (?:मिला|मिली|बताया|दिया|पता)|जानकारी नहीं"),  # hi
    )
)  # fmt: skip

COURTESY = re.compile(
    r"\b(?:please|feel free|let me know|happy to help|if you (?:can|could|have|share|provide|would)|could you"
    r"|would you|contact|try|you may want|you (?:can|could|might) (?:check|consult|ask)|check (?:with|the)"
    r"|i recommend|hope)\b"
    r"|\b(?:por favor|si puede|bitte|s'il vous|veuillez|per favore|alstublieft)\b|请|ください|من فضلك",
    re.IGNORECASE,
)  # fmt: skip
TURN = re.compile(
    r"(?:[,;]|\s[-–—])\s*(?:but|however|although|though|yet|still|pero|aunque|aber|jedoch|mais|cependant|ma|però"
    r"|mas|maar|но|但是?|しかし|لكن)\b\s*",
    re.IGNORECASE,
)


# --- languages -------------------------------------------------------------------------------------------------------

SCRIPTS = (
    ("han", "\u4e00", "\u9fff"), ("kana", "\u3040", "\u30ff"), ("hangul", "\uac00", "\ud7af"),
    ("cyrillic", "\u0400", "\u052f"),
    ("arabic", "\u0600", "\u06ff"), ("hebrew", "\u0590", "\u05ff"), ("devanagari", "\u0900", "\u097f"),
    ("greek", "\u0370", "\u03ff"),
    ("thai", "\u0e00", "\u0e7f"),
)  # fmt: skip
_COMMON = {
    "en": "the of and to in is that it for was are with on as by be this have from which what how who when where does",
    "es": "el la los las de que y en un una es por con para del se su cuál cuántos qué cómo dónde está son fue",
    "fr": "le la les des de et est dans une un que qui pour sur avec au du pas il elle quel quelle comment où sont été",
    "de": "der die das und ist in den von zu mit auf für ein eine nicht wie was wer wo wann dem im des sich wird wurde",
    "it": "il lo la gli le di che e è in un una per con del della non si sono come quanto quale dove quando nel",
    "pt": "o a os as de que e em um uma é para com do da não se são como qual quando onde foi no na",
    "nl": "de het een en van is in op te dat voor met zijn niet aan wordt hoe wat wie waar wanneer er ook bij",
}
COMMON_WORDS = {
    word: tuple(language for language, listed in _COMMON.items() if word in words(listed))
    for word in frozenset().union(*map(words, _COMMON.values()))
}
