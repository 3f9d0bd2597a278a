"""Which test is about which constant of ``keys/limits.py``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from keys import limits

Test = TypeVar("Test", bound=Callable[..., Any])
_ATTRIBUTE = "bounds_of"
# Tested elsewhere: the test file, and a word that stands in it.
ELSEWHERE = {
    "STARTS_MAX": ("tests/unit/test_clones.py", "STARTS_MAX + 1"),
    "RECOVER_REQUEST_BYTES_MAX": ("tests/unit/test_sync_recovery.py", "RECOVER_REQUEST_BYTES_MAX"),
    "ADDRESSES_MAX": ("tests/unit/test_nodedb.py", "ADDRESSES_MAX"),
    "ADDRESS_BYTES_MAX": ("tests/unit/test_address.py", "ADDRESS_BYTES_MAX"),
    "ADVERT_ID_BYTES": ("tests/unit/test_sync_discovery.py", "advert"),
    "ADVERT_NAME_BYTES": ("tests/unit/test_sync_discovery.py", "ADVERT_NAME_BYTES"),
    "ADVERT_SALT_BYTES": ("tests/unit/test_sync_discovery.py", "ADVERT_SALT_BYTES"),
    "AGENTS_PER_HELLO_MAX": ("tests/unit/test_sync_messages.py", "AGENTS_PER_HELLO_MAX"),
    "AHEAD_TOMBSTONES_MAX": ("tests/unit/test_sync_frames.py", "AHEAD_TOMBSTONES_MAX"),
    "BATCH_RECORDS_MAX": ("tests/unit/test_cli_files.py", "501"),
    "BOOT_NONCE_BYTES": ("tests/unit/test_sync_messages.py", "nonce"),
    "CALL_BYTES_MAX": ("tests/unit/test_cli_session.py", "CALL_BYTES_MAX"),
    "CERTIFICATE_BYTES_MAX": ("tests/unit/test_certificate.py", "CERTIFICATE_BYTES_MAX"),
    "DIAL_FIRST_S": ("tests/unit/test_sync_backoff.py", "DIAL_FIRST_S"),
    "DIAL_MAX_S": ("tests/unit/test_sync_backoff.py", "DIAL_MAX_S"),
    "FOUND_MAX": ("tests/unit/test_sync_discovery.py", "FOUND_MAX"),
    "FRAME_BYTES_MAX": ("tests/unit/test_sync_frames.py", "FRAME_BYTES_MAX"),
    "IMPORT_LINE_BYTES_MAX": ("tests/unit/test_importers.py", "IMPORT_LINE_BYTES_MAX"),
    "INTERFACE_IDLE_S": ("tests/unit/test_sync_discovery.py", "INTERFACE_IDLE_S"),
    "INTERFACE_POLL_S": ("tests/unit/test_sync_discovery.py", "INTERFACE_POLL_S"),
    "JSON_VALUES_MAX": ("tests/fuzz/test_fuzz.py", "JSON_VALUES_MAX"),
    "JSON_VALUE_BYTES": ("tests/fuzz/test_fuzz.py", "JSON_VALUE_BYTES"),
    "KEY_BOXES_MAX": ("tests/unit/test_sync_messages.py", "KEY_BOXES_MAX"),
    "KEY_BOX_BYTES_MAX": ("tests/unit/test_sync_messages.py", "KEY_BOX_BYTES_MAX"),
    "LOGS_PER_AGENT_MAX": ("tests/unit/test_sync_vector.py", "LOGS_PER_AGENT_MAX"),
    "MARKS_MAX": ("tests/unit/test_fingerprint.py", "MARKS_MAX"),
    "PAGE_BYTES": ("tests/unit/test_sync_pull.py", "page"),
    "PAGE_ENTRIES": ("tests/unit/test_sync_pull.py", "PAGE_ENTRIES"),
    "PAIR_CODES_PER_WINDOW": ("tests/unit/test_pair_code.py", "PAIR_CODES_PER_WINDOW"),
    "PAIR_CODE_DIGITS": ("tests/unit/test_pair_code.py", "PAIR_CODE_DIGITS"),
    "PAIR_CODE_TTL_S": ("tests/unit/test_pair_code.py", "PAIR_CODE_TTL_S"),
    "PAIR_CONNECTIONS_MAX": ("tests/unit/test_pair_messages.py", "PAIR_CONNECTIONS_MAX"),
    "PAIR_EXTRA_BYTES_MAX": ("tests/unit/test_pair_messages.py", "PAIR_EXTRA_BYTES_MAX"),
    "PAIR_GIFTS_MAX": ("tests/unit/test_pairing_channel.py", "PAIR_GIFTS_MAX"),
    "PAIR_GIFT_BYTES_MAX": ("tests/unit/test_pairing_channel.py", "PAIR_GIFT_BYTES_MAX"),
    "PAIR_JOINS_PER_CODE_MAX": ("tests/unit/test_pair_code.py", "PAIR_JOINS_PER_CODE_MAX"),
    "PAIR_MESSAGE_BYTES_MAX": ("tests/unit/test_pairing_attacks.py", "PAIR_MESSAGE_BYTES_MAX"),
    "PAIR_PICK_DIGITS": ("tests/unit/test_pair_code.py", "PAIR_PICK_DIGITS"),
    "PAIR_PORTS_TRIED": ("tests/e2e/test_pairing_nodes.py", "port"),
    "PAIR_URI_BYTES_MAX": ("tests/unit/test_pair_uri.py", "PAIR_URI_BYTES_MAX"),
    "PAIR_WINDOW_S": ("tests/unit/test_pair_code.py", "PAIR_WINDOW_S"),
    "PASSPHRASE_BYTES_MAX": ("tests/unit/test_vault.py", "PASSPHRASE_BYTES_MAX"),
    "PEERS_MAX": ("tests/unit/test_nodedb.py", "PEERS_MAX"),
    "PROOF_STATEMENTS_MAX": ("tests/unit/test_sync_messages.py", "PROOF_STATEMENTS_MAX"),
    "PULL_ENTRIES_MAX": ("tests/unit/test_sync_messages.py", "PULL_ENTRIES_MAX"),
    "REPLY_BYTES_MAX": ("tests/unit/test_sync_messages.py", "REPLY_BYTES_MAX"),
    "REQUEST_BYTES_MAX": ("tests/unit/test_sync_messages.py", "REQUEST_BYTES_MAX"),
    "STALLED_ROUNDS": ("tests/unit/test_sync_outcome.py", "stalled"),
    "STATEMENTS_PAGE_BYTES": ("tests/unit/test_sync_serve.py", "STATEMENTS_PAGE_BYTES"),
    "STATEMENTS_PAGE_MAX": ("tests/unit/test_sync_messages.py", "STATEMENTS_PAGE_MAX"),
    "UNKNOWN_FRAMES_MAX": ("tests/unit/test_sync_announce.py", "UNKNOWN_FRAMES_MAX"),
    "VAULT_BYTES_MAX": ("tests/unit/test_vault.py", "VAULT_BYTES_MAX"),
    "VERSION_MAX": ("tests/unit/test_sync_messages.py", "VERSION_MAX"),
    "WANT_PAYLOADS_MAX": ("tests/unit/test_sync_messages.py", "WANT_PAYLOADS_MAX"),
    "WATCH_FRAME_BYTES_MAX": ("tests/unit/test_sync_announce.py", "WATCH_FRAME_BYTES_MAX"),
}


def bounds(*names: str) -> Callable[[Test], Test]:
    """Says that a test tries these bounds at n and n + 1."""

    def marked(test: Test) -> Test:
        setattr(test, _ATTRIBUTE, names)
        return test

    return marked


def constants() -> dict[str, int]:
    """Every constant that ``keys/limits.py`` assigns, by reading the file."""
    tree = ast.parse(Path(limits.__file__).read_text())
    named = {
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return {name: getattr(limits, name) for name in named}


def tried(module: ModuleType) -> set[str]:
    """The bounds that the tests of a module try."""
    return {name for test in vars(module).values() for name in getattr(test, _ATTRIBUTE, ())}
