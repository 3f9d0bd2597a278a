"""Times as people write and read them: ISO 8601 with an offset, or a date of this device's zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from keys.errors import UsageError

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(text: str) -> int:
    """Microseconds UTC since 1970; raises ``UsageError`` for anything that is not exact."""
    wanted = text.strip()
    try:
        found = datetime.fromisoformat(wanted)
    except ValueError as exc:
        raise _unclear(wanted) from exc
    if found.tzinfo is None:
        if not _DATE.match(wanted):
            raise _unclear(wanted)
        found = found.astimezone()
    try:
        delta = found.astimezone(UTC) - _EPOCH
    except OverflowError as exc:
        raise _unclear(wanted) from exc
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _unclear(text: str) -> UsageError:
    return UsageError(
        f"{text[:40]!r} is not a time", hint="write 2026-03-01T09:30+01:00, or 2026-03-01"
    )


def iso(us: int | None) -> str | None:
    """ISO 8601 UTC of microseconds since 1970; None stays None, the far future is clamped."""
    if us is None:
        return None
    clamped = min(max(us, -62_135_596_800_000_000), 253_402_300_799_999_999)
    seconds, micros = divmod(clamped, 1_000_000)
    days, rest = divmod(seconds, 86_400)
    moment = datetime.fromordinal(_EPOCH.toordinal() + days)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    fraction = f".{micros:06d}" if micros else ""
    return f"{moment:%Y-%m-%d}T{clock}{fraction}Z".replace(f"{moment:%Y}", f"{moment.year:04d}", 1)


def iso_ms(ms: int) -> str | None:
    """ISO 8601 UTC of milliseconds since 1970."""
    return iso(ms * 1000)


def local_day(us: int) -> str:
    """The date in this device's zone: ``2026-03-01``."""
    return datetime.fromtimestamp(us // 1_000_000, UTC).astimezone().date().isoformat()


_SPANS: Final = ((365 * 86_400_000, "y"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))


def span(offset_ms: int) -> str:
    """By how much a clock differs, as a person says it: ``+1 h ahead``, ``-14 y behind``.

    Rounded to a whole number of the largest unit that fits, seconds at least.
    """
    size_ms, unit = next((s for s in _SPANS if abs(offset_ms) >= s[0]), (1_000, "s"))
    amount = round(abs(offset_ms) / size_ms)
    return f"+{amount} {unit} ahead" if offset_ms >= 0 else f"-{amount} {unit} behind"
