"""Identities, signatures, the vault, certificates and pairing codes; statements and who may do what."""
