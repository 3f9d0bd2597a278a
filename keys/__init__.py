"""Identities, signatures, the vault, certificates and pairing codes; statements and permissions."""
