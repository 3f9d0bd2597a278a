"""Record documents over Automerge, the signed entry format, and how concurrent edits resolve."""
