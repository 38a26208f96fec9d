# SPDX-License-Identifier: Apache-2.0
"""The exact bytes of an object's members, as they were written. For comparing bytes, so nothing is re-serialised."""

import json

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


def _past_space(text, at):
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def members(value: bytes):
    """{name: bytes of its value}. ValueError for what is no object in UTF-8."""
    text = value.decode("utf-8")
    at = _past_space(text, 0)
    if text[at : at + 1] != "{":
        raise ValueError("no JSON object")
    found = {}
    at = _past_space(text, at + 1)
    while text[at : at + 1] != "}":
        name, at = json.decoder.scanstring(text, at + 1, True)
        at = _past_space(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("a colon is missing")
        begin = _past_space(text, at + 1)
        _, end = _DECODER.raw_decode(text, begin)
        found[name] = text[begin:end].encode()
        at = _past_space(text, end)
        if text[at : at + 1] == ",":
            at = _past_space(text, at + 1)
        elif text[at : at + 1] != "}":
            raise ValueError("the object does not end")
    return found


def slice_or_none(value: bytes, name):
    """The bytes of one member; None where it is missing or the value is no object."""
    try:
        return members(value).get(name)
    except ValueError:
        return None


def parsed(value):
    """What bytes of a member mean; an empty list where they are missing or no list of objects."""
    found = json.loads(value) if value else []
    is_listed = isinstance(found, list) and all(isinstance(item, dict) for item in found)
    return found if is_listed else []


def texts(found, names):
    """Members that should be strings, as strings; None where they are not."""
    values = {name: json.loads(found[name]) if name in found else None for name in names}
    return {name: value if isinstance(value, str) else None for name, value in values.items()}
