"""Secrets and what looks like them, made at run time: no file here holds a whole one.

The forms are those that the issuers give or that people write; they are spelled out here once more
and not taken from the detector. ``python -m tests.support.secret_corpus [LOCOMO.json]`` prints what
is caught, what is refused wrongly, and what a text costs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memory.detector import find_secrets, luhn

SEED = 20_240_311
PER_KIND = 3
HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
URLSAFE = ALNUM + "-_"


class _Maker:
    """Draws the parts of secrets."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, letters: str, length: int) -> str:
        return "".join(self.random.choice(letters) for _ in range(length))

    def b64(self, length: int) -> str:
        return base64.b64encode(self.random.randbytes(length)).decode()

    def password(self) -> str:
        words = ("harbour", "Saffron", "meadow", "Lantern", "copper", "Violet")
        return self.random.choice(words) + self.random.choice("!#%7") + self.of("23456789", 3)

    def card(self, prefix: str, length: int) -> str:
        body = prefix + self.of(string.digits, length - len(prefix) - 1)
        return next(body + d for d in string.digits if luhn(body + d))

    def pem(self, name: str) -> str:
        rule = "-" * 5
        lines = "\n".join(self.b64(48) for _ in range(5))
        return f"{rule}BEGIN {name}{rule}\n{lines}\n{rule}END {name}{rule}"

    def jwt(self) -> str:
        def part(value: object) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        claims = {"sub": self.of(string.digits, 8), "iat": 1_700_000_000}
        return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{self.of(URLSAFE, 43)}"


def _makers(m: _Maker) -> dict[str, Callable[[], tuple[str, str]]]:
    """By kind, how to make ``(text, the secret in it)``."""

    def said(before: str, secret: str, after: str = "") -> tuple[str, str]:
        return before + secret + after, secret

    key = "KEY"
    return {
        "rsa key": lambda: said("deploy with\n", m.pem(f"RSA PRIVATE {key}")),
        "openssh key": lambda: said("my laptop: ", m.pem(f"OPENSSH PRIVATE {key}")),
        "pkcs8 key": lambda: said("", m.pem(f"PRIVATE {key}"), "\nkeep it"),
        "aws id": lambda: said(
            "the AWS id is ", "AK" + "IA" + m.of(UPPER[:26] + "234567", 16), "."
        ),
        "aws secret": lambda: said("aws_secret_access_key = ", m.of(ALNUM + "/+", 36) + "9aB/"),
        "github": lambda: said("use ", "gh" + "p_" + m.of(ALNUM, 36), " for CI"),
        "github fine": lambda: said(
            "PAT: ", "github" + "_pat_" + m.of(ALNUM, 22) + "_" + m.of(ALNUM, 59)
        ),
        "gitlab": lambda: said("GitLab wants ", "gl" + "pat-" + m.of(URLSAFE, 20)),
        "slack": lambda: said(
            "bot ",
            f"xo{'xb'}-{m.of(string.digits, 12)}-{m.of(string.digits, 12)}-{m.of(ALNUM, 24)}",
        ),
        "slack hook": lambda: (
            lambda path: ("post to https://hooks.slack" + f".com/services/{path}", path)
        )(f"T{m.of(UPPER, 9)}/B{m.of(UPPER, 9)}/{m.of(ALNUM, 24)}"),
        "stripe": lambda: said("billing uses ", "sk" + "_live_" + m.of(ALNUM, 24), ","),
        "google": lambda: said("maps key ", "AI" + "za" + m.of(URLSAFE, 35)),
        "openai": lambda: said("export it: ", "sk-" + "proj-" + m.of(URLSAFE, 64)),
        "openai old": lambda: said("", "sk-" + m.of(ALNUM, 20) + "T3Blbk" + "FJ" + m.of(ALNUM, 20)),
        "anthropic": lambda: said("Claude: ", "sk-" + "ant-api03-" + m.of(URLSAFE, 93) + "AA"),
        "hugging face": lambda: said("login with ", "h" + "f_" + m.of(string.ascii_letters, 34)),
        "sendgrid": lambda: said("mail ", "S" + f"G.{m.of(URLSAFE, 22)}.{m.of(URLSAFE, 43)}"),
        "mailchimp": lambda: said("list ", m.of(HEX, 32) + "-u" + "s12"),
        "twilio": lambda: said("sms ", "S" + "K" + m.of(HEX, 32)),
        "npm": lambda: said("publish ", "np" + "m_" + m.of(ALNUM, 36)),
        "pypi": lambda: said("twine ", "pypi-" + "AgEIcHlwaS5vcmc" + m.of(URLSAFE, 150)),
        "jwt": lambda: said("Cookie: session=", m.jwt()),
        "telegram": lambda: said("bot ", f"{m.of('123456789', 10)}:A" + "A" + m.of(URLSAFE, 33)),
        "discord": lambda: said("bot ", f"M{m.of(ALNUM, 23)}.{m.of(ALNUM, 6)}.{m.of(URLSAFE, 27)}"),
        "shopify": lambda: said("shop ", "shp" + "at_" + m.of(HEX, 32)),
        "digitalocean": lambda: said("droplet ", "do" + "p_v1_" + m.of(HEX, 64)),
        "azure": lambda: said("AccountName=stuff;Account" + "Key=", m.b64(64), ";"),
        "vault": lambda: said("unseal ", "hv" + "s." + m.of(URLSAFE, 95)),
        "url password": lambda: said("postgres://app:", m.of(ALNUM, 14), "@db.internal/app"),
        "bearer": lambda: said("curl -H 'Authorization: Bearer ", m.of(ALNUM, 38) + "7a", "'"),
        "labelled key": lambda: said("API key: ", m.of(HEX, 31) + "7", ", from the console"),
        "client secret": lambda: said('"client_secret": "', m.of(URLSAFE, 30) + "4x", '"'),
        "visa": lambda: said("pay with ", m.card("4", 16), " until 12/29"),
        "mastercard": lambda: (lambda n: (f"card {n}, mine", n))(
            " ".join(c[i : i + 4] for c in [m.card("53", 16)] for i in range(0, 16, 4))
        ),
        "amex": lambda: said("the Amex is ", m.card("37", 15)),
        "password": lambda: said("The wifi password is ", m.password(), "."),
        "password assigned": lambda: said("DB_HOST=x\npassword=", m.of(string.ascii_lowercase, 10)),
        "passwort": lambda: said("Das Passwort lautet ", m.password(), ", merk es dir"),
        "contraseña": lambda: said("la contraseña es ", m.password()),
        "пароль": lambda: said("пароль: ", m.password()),
        "密码": lambda: said("服务器的密码是", m.password(), "\uff0c别忘了"),
        "密码 =": lambda: said("密码\uff1a", m.of(string.digits, 8)),
        "パスワード": lambda: said("Wi-Fiのパスワードは", m.password(), "です"),
        "비밀번호": lambda: said("비밀번호는 ", m.password(), " 입니다"),
        "pin": lambda: said("the PIN is ", m.of(string.digits, 4), " at the bank"),
        "seed phrase": lambda: said("seed phrase: ", " ".join(["river", "lamp", "onion"] * 4)),
        # What people write and no issuer marks: some of these are missed, and count.
        "quoted": lambda: said('his password is "', m.of(string.ascii_lowercase, 9), '"'),
        "no label word": lambda: said("log in as root with ", m.password()),
    }


def secrets(seed: int = SEED) -> list[tuple[str, str, str]]:
    """``(kind, text, secret in it)``: ``PER_KIND`` of each kind."""
    made = _makers(_Maker(seed))
    return [(kind, *make()) for kind, make in made.items() for _ in range(PER_KIND)]


def look_alikes(seed: int = SEED) -> list[tuple[str, str]]:
    """``(kind, text)`` of texts that hold no secret and could be taken for one."""
    m = _Maker(seed + 1)
    made: dict[str, Callable[[], str]] = {
        "md5": lambda: f"md5 {hashlib.md5(m.random.randbytes(9)).hexdigest()}",
        "sha1": lambda: f"checksum: {m.of(HEX, 40)}",
        "sha256": lambda: f"the file's sha256 is {m.of(HEX, 64)}",
        "sha512": lambda: f"sha512-{m.b64(64)}",
        "git id": lambda: f"fixed in commit {m.of(HEX, 40)}, see {m.of(HEX, 7)}",
        "uuid": lambda: f"the ticket is {uuid.UUID(bytes=m.random.randbytes(16))}",
        "image head": lambda: f"![x](data:image/png;base64,iVBORw0KGgoAAAANSUhEUg{m.b64(60)})",
        "base64": lambda: f"it begins with {m.b64(36)} and goes on",
        "order": lambda: (
            f"order {m.of(string.digits, 3)}-{m.of(string.digits, 7)}-"
            f"{m.of(string.digits, 7)} was sent"
        ),
        "order plain": lambda: f"Order number {m.card('4', 16)} was cancelled",
        "isbn": lambda: (
            f"ISBN 978-3-16-{m.of(string.digits, 6)}-0 and 978{m.of(string.digits, 10)}"
        ),
        "phone": lambda: (
            f"call +49 {m.of('123456789', 3)} {m.of(string.digits, 8)} or "
            f"(555) {m.of(string.digits, 3)}-{m.of(string.digits, 4)}"
        ),
        "iban": lambda: (
            f"DE{m.of(string.digits, 2)} {m.of(string.digits, 4)} 0000 "
            f"{m.of(string.digits, 4)} {m.of(string.digits, 4)} {m.of(string.digits, 2)}"
        ),
        "imei": lambda: f"IMEI {m.of('35', 2)}{m.of(string.digits, 13)}",
        "timestamp": lambda: f"at 17{m.of(string.digits, 14)} and 2024{m.of('01', 10)}",
        "coordinates": lambda: f"48.{m.of(string.digits, 14)}, 11.{m.of(string.digits, 14)}",
        "url": lambda: f"https://example.org/a/{m.of(ALNUM, 22)}?v={m.of(ALNUM, 11)}#t=4",
        "docker image": lambda: f"python@sha256:{m.of(HEX, 64)}",
        "package": lambda: (
            f"numpy-{m.of('123456789', 1)}.26.4-cp311-cp311-manylinux_2_17_x86_64.whl"
        ),
        "mac": lambda: "the NAS is " + ":".join(m.of(HEX, 2) for _ in range(6)),
        "ipv6": lambda: "it has 2001:db8:" + ":".join(m.of(HEX, 4) for _ in range(6)),
        "path": lambda: f"/srv/data/{m.of(ALNUM, 24)}/train-0000{m.of(string.digits, 1)}.parquet",
        "public key": lambda: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{m.of(ALNUM, 43)} me@laptop",
        "wallet address": lambda: f"donations to 0x{m.of(HEX, 40)}",
    }
    found = [(kind, make()) for kind, make in made.items() for _ in range(7)]
    return found + [("sentence", text) for text in _SENTENCES]


_SENTENCES = (
    "I forgot my password again and had to reset it.",
    "The password is stored in the vault, not here.",
    "password: required, at least 12 characters",
    "Her new password is very long.",
    "Das Passwort steht im Tresor.",
    "Das Passwort ist abgelaufen, bitte ändern.",
    "We pass the token to the next stage.",
    "The token is sent with every request.",
    "token: the smallest unit of text",
    "Secret Santa is on Friday at seven.",
    "the secret is to knead the dough twice",
    "La clave es empezar temprano.",
    "Das Kennwort wird alle 90 Tage geändert.",
    "密码必须每三个月更换一次",
    "パスワードを忘れました",
    "비밀번호를 잊어버렸어요",
    "PIN code 110001 is New Delhi",
    "The API key is kept in the keychain.",
    "api_key: ${OPENAI_API_KEY}",
    "password=<your-password-here>",
    "password: ********",
    "export TOKEN=$GITHUB_TOKEN",
    "https://user:password@example.org/ is the form of such an address",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx is how one looks",
    "the docs use AKIAIOSFODNN7" + "EXAMPLE",
    "she works the key-value store at night",
    "the desk-mounted-lamp-with-a-very-long-name-that-goes-on",
    "sk-learn and task-oriented-dialogue-systems-for-beginners",
    "the primary key is customer_id_2024_partition_17",
    "foreign key: orders.customer_reference_number",
    "my credentials are a degree in biology",
    "a bearer of good news came by",
    "Basic knowledge of Kubernetes is enough.",
    "4 2024 4111 people came",
    "meet me at 10:30@the usual place",
    "ratio 16:9 at 3840x2160@60Hz",
    "mailto:me@example.org and xmpp:me@example.org",
    "The passphrase should have six words.",
    "recovery phrase: write the twelve words on paper",
    "pw stands for password",
)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from _texts(child)
    elif isinstance(value, list):
        for child in value:
            yield from _texts(child)


def turns_of(path: Path) -> list[str]:
    """What was said in the conversations of a LoCoMo file, captions included."""
    return [
        str(turn[key])
        for sample in json.loads(path.read_text("utf-8"))
        for session in sample["conversation"].values()
        if isinstance(session, list)
        for turn in session
        for key in ("text", "blip_caption")
        if key in turn
    ]


def main() -> None:
    """Print what the detector does with the corpus, and with the file that is named."""
    missed = Counter(k for k, text, _ in secrets() if not find_secrets(text))
    false = [(k, [f.kind for f in find_secrets(t)]) for k, t in look_alikes() if find_secrets(t)]
    sys.stdout.write(f"secrets {len(secrets())}, missed {dict(missed)}\n")
    sys.stdout.write(f"look-alikes {len(look_alikes())}, refused {false}\n")
    for name in sys.argv[1:]:
        texts = turns_of(Path(name))
        began = time.process_time()
        refused = sum(bool(find_secrets(t)) for t in texts)
        spent = (time.process_time() - began) / len(texts) * 1e6
        sys.stdout.write(f"{len(texts)} turns, {refused} refused, {spent:.1f} us each\n")


if __name__ == "__main__":
    main()
