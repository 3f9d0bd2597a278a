"""Every bound of Roost, with its unit, in one place.

A value from outside is compared with its bound before anything is allocated for it. Each bound is
tested at n and n + 1 (``tests/unit/test_limits.py``). Numbers that RULES.md fixes name their rule.
"""

from __future__ import annotations

from typing import Final

# Sizes of fixed fields, bytes.
KEY_BYTES: Final = 32
HASH_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
INCARNATION_BYTES: Final = 8
RECORD_BYTES: Final = 16
SALT_BYTES: Final = 16
ACTOR_BYTES: Final = 16
TAG_VALUE_BYTES: Final = 8  # R12

# Codec.
NESTING_MAX: Final = 8
CODEC_ITEMS_MAX: Final = 65_536  # values in one decoded message
SMALL_BYTES: Final = 16 * 1024  # decoded without a walk first: builds at most 1 MiB
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1

# Entries.
HEADER_BYTES_MAX: Final = 4_096
SEQ_MAX: Final = 2**40
WALL_MS_MAX: Final = 2**48 - 1  # the width of a UUIDv7 stamp
DEPS_MAX: Final = 64  # R6
PAST_ENTRIES_MAX: Final = 4_096  # R6: causal past of one entry
OPS_MAX: Final = 256
OP_KEY_BYTES_MAX: Final = 256
OPS_PADDING_BYTES: Final = 64  # R1
ENTRY_BYTES_MAX: Final = 5 * 1024 * 1024  # R3: header and payload together
COMMIT_ENTRIES_MAX: Final = 512  # R3
COMMIT_BYTES_MAX: Final = 8 * 1024 * 1024  # R3
RUN_ENTRIES_MAX: Final = 512  # R4
RUN_BYTES_MAX: Final = 8 * 1024 * 1024  # R4
RUN_BYTES_TARGET: Final = 256 * 1024  # a run is served up to the first signature past this
BRANCHES_MAX: Final = 8  # R7: kept per log
OPEN_HEADS_MAX: Final = 16  # R2
TOMBSTONE_PRINTS_MAX: Final = 64
MARKS_MAX: Final = 30  # combining marks in a row that are normalised together

# Statements.
STATEMENT_BYTES_MAX: Final = 64 * 1024
STATEMENT_AFTER_MAX: Final = 16  # R16
STATEMENTS_PER_AGENT_MAX: Final = 10_000
CUTS_MAX: Final = 512
KEEPS_MAX: Final = 1_500
FACTS_PER_LIFT_MAX: Final = 256
APPROVALS_MAX: Final = 512

# Messages between peers.
REQUEST_BYTES_MAX: Final = 1024 * 1024
FRAME_BYTES_MAX: Final = RUN_BYTES_MAX + 1024 * 1024
LOGS_PER_AGENT_MAX: Final = 1_024
AGENTS_PER_HELLO_MAX: Final = 1_024
ADDRESSES_MAX: Final = 16
ADDRESS_BYTES_MAX: Final = 262
PULL_ENTRIES_MAX: Final = 1_000_000  # entries in one answer
PEERS_MAX: Final = 256
AHEAD_TOMBSTONES_MAX: Final = 4_096  # in one pull answer
WANT_PAYLOADS_MAX: Final = 256  # payloads asked for in one request
RECOVER_REQUEST_BYTES_MAX: Final = 512  # a claim with a recovery key
REPLY_BYTES_MAX: Final = 2 * 1024 * 1024  # a reply that is no stream
BOOT_NONCE_BYTES: Final = 16
STARTS_MAX: Final = 8  # of one device, remembered and told of
VERSION_MAX: Final = 65_535
PROOF_STATEMENTS_MAX: Final = 256  # statements in a request that prove the right
STATEMENTS_PAGE_BYTES: Final = 1024 * 1024  # an answer ends with the first statement past this
STATEMENTS_PAGE_MAX: Final = 4_096  # statements in one answer
KEY_BOXES_MAX: Final = 1_024  # sealed fingerprint keys in one answer
KEY_BOX_BYTES_MAX: Final = 256
PAGE_BYTES: Final = 1024 * 1024  # verified runs are handed to the store at the first past this
PAGE_ENTRIES: Final = 2_048  # or this many entries
UNKNOWN_FRAMES_MAX: Final = 256  # of kinds a later version may have, in one stream
ERROR_CODE_BYTES_MAX: Final = 64
WATCH_FRAME_BYTES_MAX: Final = 1_024
WATCH_OUTBOX_MAX: Final = 4_096  # announcements that wait for one slow watcher
WATCH_BEAT_S: Final = 30
WATCH_SILENCE_S: Final = 75  # a watch without a frame for this long is dead
STALLED_ROUNDS: Final = 2  # rounds without progress until an error (S-D2)
DIAL_FIRST_S: Final = 1
DIAL_MAX_S: Final = 300

# Discovery.
FOUND_MAX: Final = PEERS_MAX  # adverts kept
ADVERT_SALT_BYTES: Final = 8
ADVERT_ID_BYTES: Final = 8  # of the salted hash of the device id
ADVERT_NAME_BYTES: Final = 10  # random bytes of an instance name
INTERFACE_POLL_S: Final = 5  # between two looks at the interfaces, nothing having told of a change
INTERFACE_IDLE_S: Final = 60  # the same where the system tells of changes
RESOLVE_S: Final = 2  # for an advert that did not come whole
RESOLVES_MAX: Final = 16  # of those at once

# Pairing.
PAIR_MESSAGE_BYTES_MAX: Final = 8_192
PAIR_CODE_DIGITS: Final = 6
PAIR_CODE_TTL_S: Final = 120
PAIR_CODES_PER_WINDOW: Final = 5
PAIR_WINDOW_S: Final = 600
PAIR_PICK_DIGITS: Final = 2  # of those, how many name the opener's device
PAIR_JOINS_PER_CODE_MAX: Final = 8  # the malformed ones included; one well-formed spends the code
PAIR_EXTRA_BYTES_MAX: Final = 4_096  # what goes along with "confirmed"
PAIR_GIFT_BYTES_MAX: Final = 256 * 1024
PAIR_GIFTS_MAX: Final = 64  # in each direction
PAIR_URI_BYTES_MAX: Final = 2_048  # what a QR code can hold
PAIR_PORTS_TRIED: Final = 10
PAIR_CONNECTIONS_MAX: Final = 8

# Key files, vault, certificates, recovery code.
KEY_FILE_BYTES_MAX: Final = 4_096
VAULT_BYTES_MAX: Final = 512
VAULT_MEMORY_BYTES_MIN: Final = 8_192
VAULT_MEMORY_BYTES_MAX: Final = 1024 * 1024 * 1024
VAULT_OPS_MAX: Final = 16
PASSPHRASE_CHARS_MIN: Final = 8
PASSPHRASE_BYTES_MAX: Final = 1_024
CERTIFICATE_BYTES_MAX: Final = 1_024
RECOVERY_BYTES: Final = 16
RECOVERY_TEXT_CHARS_MAX: Final = 256  # as typed, separators included

# What people and agents hand in.
TEXT_BYTES_MAX: Final = 4 * 1024 * 1024
NAME_BYTES_MAX: Final = 128
REASON_BYTES_MAX: Final = 2_048
SOURCE_BYTES_MAX: Final = 1_024
TAGS_PER_RECORD_MAX: Final = 64
TAG_BYTES_MAX: Final = OP_KEY_BYTES_MAX - len("tag.")
SOURCES_PER_RECORD_MAX: Final = 1_024
BATCH_RECORDS_MAX: Final = 500
QUERY_BYTES_MAX: Final = 4_096
QUERY_TERMS_MAX: Final = 64
LIST_LIMIT_MAX: Final = 1_000
CALL_BYTES_MAX: Final = 32 * 1024 * 1024  # one call on the local socket
IMPORT_LINE_BYTES_MAX: Final = 8 * 1024 * 1024
JSON_VALUES_MAX: Final = 65_536  # in one JSON text of any length,
JSON_VALUE_BYTES: Final = 64  # and one more for each so many bytes of it

assert ENTRY_BYTES_MAX < COMMIT_BYTES_MAX <= RUN_BYTES_MAX < FRAME_BYTES_MAX
assert COMMIT_ENTRIES_MAX <= RUN_ENTRIES_MAX
assert TEXT_BYTES_MAX < ENTRY_BYTES_MAX
assert BATCH_RECORDS_MAX < COMMIT_ENTRIES_MAX
assert RUN_BYTES_TARGET <= RUN_BYTES_MAX
assert PAGE_BYTES <= RUN_BYTES_MAX
assert STATEMENTS_PAGE_BYTES + STATEMENT_BYTES_MAX + KEY_BOXES_MAX * 512 < REPLY_BYTES_MAX
assert STATEMENTS_PER_AGENT_MAX * (HASH_BYTES + 2) < REQUEST_BYTES_MAX
assert LOGS_PER_AGENT_MAX * (64 + BRANCHES_MAX * (HASH_BYTES + 12)) < REQUEST_BYTES_MAX
assert WATCH_BEAT_S * 2 < WATCH_SILENCE_S
assert PAIR_PICK_DIGITS < PAIR_CODE_DIGITS
assert (
    ADDRESSES_MAX * (ADDRESS_BYTES_MAX + 3) + CERTIFICATE_BYTES_MAX < PAIR_MESSAGE_BYTES_MAX - 1024
)
assert VAULT_BYTES_MAX <= KEY_FILE_BYTES_MAX
assert DEPS_MAX * (HASH_BYTES + 2) + 512 <= HEADER_BYTES_MAX
