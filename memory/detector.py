"""What looks like a secret: tokens in the form of their issuer, cards, labelled passwords.

1. A text without any of the literals that secrets begin with costs a few microseconds: a pattern
   is tried only where its literal stands.
2. Every pattern is bounded, so that a text costs its length, whoever wrote it.
3. Only the secret itself is reported, without its label: that is what a redaction replaces.
4. Shape alone is no secret: a hash, an id or a serial number without issuer or label passes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

DISTINCT_MIN: Final = 6  # different characters in a token; xxxxxxxx is a placeholder
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_FREE: Final = r"(?<![A-Za-z0-9_-])"  # not in the middle of a longer word
_MASKED: Final = re.compile(
    r"[x*.…•#-]+|<.*|\[.*|\$.*|\{.*|%.*|.*(?:example|redacted|placeholder)|(?:my|your)[_-].*",
    re.IGNORECASE,
)
_PLACEHOLDERS: Final = frozenset({
    "pass", "passwd", "password", "passwort", "pwd", "secret", "token", "user", "username", "none",
    "null", "true", "false",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret in a text: what it is, and from where to where it stands (characters)."""

    kind: str
    start: int
    end: int


def _token(match: re.Match[str], group: int) -> bool:
    value = match.group(group)
    return len(set(value)) >= DISTINCT_MIN and not value.endswith("EXAMPLE")


def _anything(_match: re.Match[str], _group: int) -> bool:
    return True


def _real(value: str) -> bool:
    """Whether a value is none that documents put in the place of a secret."""
    return not _MASKED.fullmatch(value) and value.lower() not in _PLACEHOLDERS


def _url_password(match: re.Match[str], group: int) -> bool:
    return _real(match.group(group))


def _mixed(value: str) -> bool:
    """Whether a word is more than a word: digits or signs inside, or capitals in the middle."""
    letters = any(c.isalpha() for c in value)
    if any(c.isdigit() for c in value):
        return True
    signs = any(not c.isalnum() and c not in "'\u2019-/" for c in value)
    inner = any(a.islower() and b.isupper() for a, b in pairwise(value))
    return letters and (signs or inner)


def _labelled(match: re.Match[str], group: int) -> bool:
    """A password after its label: after ``=`` anything, else what is no ordinary word."""
    value = match.group(group)
    if not _real(value):
        return False
    if "=" in match["said"] or match["quote"]:
        return True
    if not match["said"].strip():  # "password hunter2": digits and letters, nothing else
        return len(value) >= 6 and value.isalnum() and _mixed(value) and not value.isdigit()
    return _mixed(value) if value.isascii() else False


def _labelled_cjk(match: re.Match[str], group: int) -> bool:
    value = match.group(group)
    return _real(value) and (_mixed(value) or len(value) >= 6)


def _labelled_token(match: re.Match[str], group: int) -> bool:
    value = match.group(group)
    return _real(value) and _token(match, group) and any(c.isdigit() for c in value)


@dataclass(frozen=True, slots=True)
class _Pattern:
    kind: str
    literals: tuple[str, ...]  # one of them is in every match; in lower case where ``folded``
    pattern: re.Pattern[str]
    group: int = 0
    holds: Callable[[re.Match[str], int], bool] = _token
    folded: bool = False
    issued: bool = False


def _plain(kind: str, literals: str, pattern: str) -> _Pattern:
    """A token known by how it begins, not in the middle of a word."""
    return _Pattern(
        kind, tuple(literals.split()), re.compile(_FREE + f"(?:{pattern})"), issued=True
    )


_LABEL: Final = (
    r"(?i:\b(?:pass\s?words?|passwd|pass\s?phrase|passcode|pwd|pw|passwort|kennwort|passphrase"
    r"|contraseña|clave|mot de passe|senha|wachtwoord|hasło|lösenord|parola|şifre|пароль))"
)
_SAID: Final = (
    r"(?P<said>\s{0,3}(?:=>|:=|[:=]|\b(?:is|was|ist|war|lautet|est|es|é|to|auf)\b)\s{0,3}:?\s{0,3}"
    r"|\s{1,3})"
)
_VALUE: Final = (
    r"(?P<quote>[\"'`“„«]?)(?P<value>[^\s\"'`“”„»<>]{4,128}?)(?=[.,;:!?)]*(?:[\s\"'`“”»<>]|$))"
)
_LABEL_LITERALS: Final = (
    "pass", "pwd", "pw", "kennwort", "contraseña", "clave", "senha", "wachtwoord", "hasło",
    "lösenord", "parola", "şifre", "пароль",
)  # fmt: skip
_CJK_LITERALS: Final = (
    "密码", "密碼", "口令", "パス", "暗証番号", "비밀번호", "암호", "รหัสผ่าน", "كلمة", "पासवर्ड",
)  # fmt: skip
_CJK_LABEL: Final = (
    r"(?:密码|密碼|口令|パスワード|パスコード|暗証番号|비밀번호|암호|รหัสผ่าน|كلمة المرور|पासवर्ड)"
    r"(?P<said>\s{0,3}(?:[:\uff1a=\uff1d]|是|为|為|は|が|이|가|은|는|คือ|هي|है)?\s{0,3}[「『“\"']?)"
    r"(?P<value>[!-~]{4,128})"
)
_KEY_LABEL: Final = (
    r"(?i:\b[a-z0-9_ -]{0,24}(?:api[_ -]?keys?|secret[_ -]?keys?|secret[_ -]?access[_ -]?key"
    r"|access[_ -]?keys?|access[_ -]?tokens?|auth[_ -]?tokens?|refresh[_ -]?tokens?"
    r"|client[_ -]?secrets?|bearer[_ -]?tokens?|signing[_ -]?keys?|private[_ -]?keys?"
    r"|encryption[_ -]?keys?|account[_ -]?keys?|secrets?|tokens?|credentials?|zugangsschlüssel))"
    r"[\"'`]?\s{0,3}(?:=>|:=|[:=]|\uff1a|是|は|\b(?:is|ist|lautet)\b)\s{0,3}[\"'`]?"
    r"([A-Za-z0-9_+/=.~-]{16,256})"
)

_PATTERNS: Final = (
    _Pattern(
        "private key",
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?!-----)[\s\S]){0,16384}(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
        ),
        holds=_anything,
    ),
    _plain("private key", "PuTTY-User-Key-File-", r"PuTTY-User-Key-File-[23]:[\s\S]{1,4096}"),
    _plain("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,64}"),
    _plain("wallet key", "prv", r"[xyz]prv[1-9A-HJ-NP-Za-km-z]{80,112}"),
    _plain("aws access key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?!\w)"),
    _plain("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,255}"),
    _plain("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,255}"),
    _plain("gitlab token", "gl", r"gl(?:pat|ptt|dt|rt|soat|cbt|ft|agent|imt|oas)-[\w.-]{20,200}"),
    _plain("slack token", "xox xapp-", r"(?:xox[a-z](?:\.xox[a-z])?|xapp)-[0-9A-Za-z-]{10,250}"),
    _plain("slack webhook", "hooks.slack.com", r"hooks\.slack\.com/[a-z]+/[A-Za-z0-9/]{30,100}"),
    _plain("stripe key", "k_live_ k_test_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    _plain("webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,100}"),
    _plain("google api key", "AIza", r"AIza[\w-]{35}"),
    _plain("google token", "ya29. GOCSPX-", r"(?:ya29\.[\w-]{20,500}|GOCSPX-[\w-]{20,40})"),
    _plain("anthropic key", "sk-ant-", r"sk-ant-[\w-]{20,200}"),
    _plain("openrouter key", "sk-or-", r"sk-or-[\w-]{30,200}"),
    _plain("openai key", "sk-", r"sk-(?:proj|svcacct|admin|None)-[\w-]{20,250}"),
    _plain("openai key", "sk-", r"sk-[A-Za-z0-9]{32,64}"),
    _plain("roost token", "roost_", r"roost_[A-Za-z0-9]{4,32}_[\w-]{16,128}"),
    _plain("hugging face token", "hf_", r"hf_[A-Za-z0-9]{30,40}"),
    _plain("groq key", "gsk_", r"gsk_[A-Za-z0-9]{40,60}"),
    _plain("xai key", "xai-", r"xai-[A-Za-z0-9]{60,100}"),
    _plain("perplexity key", "pplx-", r"pplx-[A-Za-z0-9]{40,60}"),
    _plain("replicate token", "r8_", r"r8_[A-Za-z0-9]{30,45}"),
    _plain("sendgrid key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{30,64}"),
    _plain("mailgun key", "key-", r"key-[0-9a-f]{32}(?!\w)"),
    _plain("mailchimp key", "-us", r"[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    _plain("twilio key", "SK", r"SK[0-9a-f]{32}(?!\w)"),
    _plain("npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _plain("pypi token", "pypi-AgE", r"pypi-AgE[\w-]{50,300}"),
    _plain("rubygems key", "rubygems_", r"rubygems_[0-9a-f]{40,60}"),
    _plain("json web token", "eyJ", r"eyJ[\w-]{8,4096}\.eyJ[\w-]{8,8192}\.[\w-]{8,2048}"),
    _plain("telegram token", ":AA", r"\d{8,10}:AA[\w-]{32,34}(?!\w)"),
    _plain("discord webhook", "webhooks/", r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{50,80}"),
    _plain("shopify token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _plain("digitalocean token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _plain("square token", "sq0", r"sq0[a-z]{3}-[\w-]{22,64}"),
    _plain("vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{24,300}"),
    _plain("terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}"),
    _plain("linear key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    _plain("notion token", "secret_", r"secret_[A-Za-z0-9]{43}(?!\w)"),
    _plain("notion token", "ntn_", r"ntn_[A-Za-z0-9]{40,60}"),
    _plain("airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _plain("postman key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _plain("atlassian token", "ATATT3 ATCTT3", r"AT[AC]TT3[\w=-]{50,300}"),
    _plain("new relic key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _plain("grafana token", "glsa_ glc_", r"(?:glsa|glc)_[\w+/=]{32,400}"),
    _plain("databricks token", "dapi", r"dapi[0-9a-f]{32}"),
    _plain("docker token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{27,40}"),
    _plain("tailscale key", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9-]{20,80}"),
    _plain("1password token", "ops_eyJ", r"ops_eyJ[\w=-]{100,2000}"),
    _plain("supabase token", "sbp_", r"sbp_[0-9a-f]{40}"),
    _plain("planetscale token", "pscale_", r"pscale_(?:pw|tkn|oauth)_[\w.=-]{32,64}"),
    _plain("sentry token", "sntry", r"sntry[su]_[\w+/=]{40,400}"),
    _plain("figma token", "figd_", r"figd_[\w-]{35,60}"),
    _plain("heroku key", "HRKU-", r"HRKU-[\w-]{30,70}"),
    _Pattern(
        "azure key",
        ("accountkey=", "sharedaccesskey="),
        re.compile(r"(?i:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{40,100})"),
        1,
        folded=True,
    ),
    _Pattern(
        "password in an address",
        ("://",),
        re.compile(r"://[^\s:/@]{0,64}:([^\s/@]{3,128})@[\w.\[-]"),
        1,
        _url_password,
    ),
    _Pattern(
        "authorization header",
        ("bearer ", "basic "),
        re.compile(
            r"(?i:\bBearer\s{1,3}|\bAuthorization:?\s{0,3}Basic\s{1,3})([A-Za-z0-9._~+/=-]{20,4096})"
        ),
        1,
        _labelled_token,
        folded=True,
    ),
    _Pattern(
        "labelled key",
        ("key", "token", "secret", "credential", "zugangsschlüssel"),
        re.compile(_KEY_LABEL),
        1,
        _labelled_token,
        folded=True,
    ),
    _Pattern(
        "password",
        _LABEL_LITERALS,
        re.compile(_LABEL + r"[\"'`]?" + _SAID + _VALUE),
        3,
        _labelled,
        folded=True,
    ),
    _Pattern(
        "password",
        _CJK_LITERALS,
        re.compile(_CJK_LABEL),
        2,
        _labelled_cjk,
    ),
    _Pattern(
        "pin",
        ("PIN",),
        re.compile(r"\bPINs?\s{0,3}(?:[:=\uff1a]|\b(?:is|ist|lautet|war|was)\b)\s{0,3}(\d{4,8})\b"),
        1,
        _anything,
    ),
    _Pattern(
        "recovery phrase",
        ("phrase", "mnemonic", "助记词"),
        re.compile(
            r"(?i:(?:seed|recovery|secret|wallet|backup)[ -]phrase|mnemonic(?: phrase)?|助记词)"
            r"\s{0,3}(?:is|[:\uff1a=]|是)\s{0,3}[\"'`“]?"
            r"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b"
        ),
        1,
        folded=True,
    ),
)  # fmt: skip
# A token that an issuer made holds this many characters without a gap; few texts do.
_RUN: Final = re.compile(r"[A-Za-z0-9_+/=.~-]{16}")
_ISSUED: Final = tuple((lit, p) for p in _PATTERNS if p.issued for lit in p.literals)
_EXACT: Final = tuple(
    (lit, p) for p in _PATTERNS if not (p.issued or p.folded) for lit in p.literals if lit.isascii()
)
_FOLDED: Final = tuple(
    (lit, p) for p in _PATTERNS if p.folded for lit in p.literals if lit.isascii()
)
_FOREIGN: Final = tuple((lit, p) for p in _PATTERNS for lit in p.literals if not lit.isascii())

# A Discord bot's token has no literal, only its three parts.
_DISCORD: Final = re.compile(_FREE + r"[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w.-])")

_MAYBE_CARD: Final = re.compile(r"\d{4}[\d -]\d{4}")
_CARD: Final = re.compile(
    r"(?<![\w.,/+-])(?:\d{14,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?"
    r"|\d{4}([ -])\d{6}\2\d{4,5})(?![\w-]|[.,]\d)"
)
_BRANDS: Final = re.compile(
    r"(?:4\d{15}|4\d{18}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}"
    r"|62\d{14,17})\Z"
)
# What says of a number without gaps that it is another one.
_OTHER_NUMBER: Final = re.compile(
    r"(?i:\b(?:order|invoice|tracking|serial|ticket|parcel|customer|reference|ref|case|imei|id"
    r"|bestellung|bestellnummer|rechnung|sendung|sendungsnummer|kundennummer)"
    r"(?:\s(?:no|nr|number|id|nummer))?)[.:#\s]{0,4}\Z"
)


def find_secrets(text: str) -> list[Finding]:
    """The secrets in a text, first ones first; none overlap.

    What shows only after compatibility characters and invisible ones are resolved is reported as
    the whole text.
    """
    found = list(_resolved(_scan(text)))
    if found or text.isascii():
        return found
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    if plain != text:
        hidden = next(iter(_scan(plain)), None)
        if hidden is not None:
            return [Finding(hidden.kind, 0, len(text))]
    return []


def _resolved(findings: Iterator[Finding]) -> Iterator[Finding]:
    """In order, the first of those that overlap: a token with an issuer before one with a label."""
    kept: list[Finding] = []
    for finding in findings:
        if all(finding.end <= k.start or finding.start >= k.end for k in kept):
            kept.append(finding)
    yield from sorted(kept, key=lambda f: f.start)


def _scan(text: str) -> Iterator[Finding]:
    tried: set[int] = set()
    if _RUN.search(text):
        yield from _tried(_ISSUED, text, text, tried)
        if "." in text:
            for match in _DISCORD.finditer(text):
                yield Finding("discord token", *match.span())
    if _MAYBE_CARD.search(text):
        yield from _cards(text)
    yield from _tried(_EXACT, text, text, tried)
    lower = text.lower()
    yield from _tried(_FOLDED, lower, text, tried)
    if not text.isascii():
        yield from _tried(_FOREIGN, lower, text, tried)


def _tried(
    literals: tuple[tuple[str, _Pattern], ...], within: str, text: str, tried: set[int]
) -> Iterator[Finding]:
    """The matches of those patterns whose literal stands in ``within``, each pattern once."""
    for literal, pattern in literals:
        if literal in within and id(pattern) not in tried:
            tried.add(id(pattern))
            yield from _matches(pattern, text)


def _matches(pattern: _Pattern, text: str) -> Iterator[Finding]:
    for match in pattern.pattern.finditer(text):
        group = match.re.groupindex.get("value", pattern.group)
        if pattern.holds(match, group):
            yield Finding(pattern.kind, *match.span(group))


def _cards(text: str) -> Iterator[Finding]:
    for match in _CARD.finditer(text):
        digits = match.group().replace(" ", "").replace("-", "")
        if not _BRANDS.match(digits) or not luhn(digits) or len(set(digits)) == 1:
            continue
        if digits == match.group() and _OTHER_NUMBER.search(text[: match.start()][-40:]):
            continue
        yield Finding("card number", *match.span())


def luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
