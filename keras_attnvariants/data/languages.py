"""Codes of languages."""

import re

_LANGUAGE = re.compile(r"[A-Za-z][\w-]*")


def check_languages(source_language: str, target_language: str) -> None:
    """Raises unless these are the codes of two languages.

    Raises:
        ValueError: one is no code, or both are the same.
    """
    for name, value in (
        ("source_language", source_language),
        ("target_language", target_language),
    ):
        if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
            raise ValueError(
                f"`{name}` must be a language code such as 'de'. Received: {value!r}"
            )
    if source_language == target_language:
        raise ValueError(
            "`source_language` and `target_language` must differ. "
            f"Received: {source_language!r} twice"
        )
