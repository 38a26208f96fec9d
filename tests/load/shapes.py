# SPDX-License-Identifier: Apache-2.0
"""JSON objects as callers really write them, as bytes: what a parser that re-serialises would change.

Each holds the number it was made with, so that no two are alike, unless it says nothing at all.
"""

import json
import random
import re

WORDS = (
    "Grüße", "naïve café", "漢字とかな", "Здравствуй", "مرحبا بالعالم", "שלום", "e\u0301 combining", "👩‍👩‍👧‍👦 family", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "line\u2028separator", "zero\u200bwidth", "tab\tand \"quotes\" and \\ and /", "\u0001\u001f controls", "\ufeffmark", "",
)
ESCAPED = r'"\u0047r\u00fc\u00dfe \ud83d\ude00 \/ \b\f\n\r\t \\ \" \u2029 \u007f"'
NUMBERS = (
    "0.1000000000000000055511151231257827021181583404541015625", "12345678901234567890.123456789012345678901234567890",
    "-0.0", "-0", "1E+2", "1e-300", "9223372036854775807", "-9223372036854775808", "0.10", "1.000", "2.50E-07", "1e+05",
)
DEPTH_MAX = 50
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+', re.DOTALL)


def _plain(rng, number):
    return json.dumps({"n": number, "text": rng.choice(WORDS), "list": [rng.randint(-9, 9) for _ in range(rng.randint(0, 8))],
                       "none": None, "yes": True}, ensure_ascii=False)


def _escaped(rng, number):
    return json.dumps({"n": number, rng.choice(WORDS): rng.choice(WORDS), "": "empty name"})[:-1] + ', "as written": ' + ESCAPED + "}"


def _decimals(rng, number):
    chosen = rng.sample(NUMBERS, rng.randint(2, len(NUMBERS)))
    return '{"n":%d,"decimals":[%s],"amount":%s}' % (number, ",".join(chosen), rng.choice(NUMBERS))


def _nested(rng, number):
    depth = rng.randint(5, DEPTH_MAX - 1)
    opened = [rng.choice(("[", '{"\\u006e ":')) for _ in range(depth)]
    closed = "".join("]" if part == "[" else "}" for part in reversed(opened))
    return '{"n":%d,"deep":%s"%s"%s}' % (number, "".join(opened), "bottom", closed)


def _spaced(rng, number):
    text = json.dumps({"z": number, "a": {"b": [1, {"c": rng.choice(WORDS)}], "A": {}}, "m": []}, indent=rng.choice((1, 2, 7)))
    return text.replace("\n", rng.choice(("\n", "\r\n", "\n\t")))


def _wide(rng, number):
    members = {f"member {i} {rng.choice(WORDS)}": rng.random() for i in range(rng.randint(50, 900))}
    return json.dumps({"n": number, "wide": members, "long": rng.choice(WORDS) * rng.randint(1, 2000)}, ensure_ascii=False)


def _empty(_rng, _number):
    return "{ }"


SHAPES = ((_plain, 30), (_escaped, 20), (_decimals, 15), (_nested, 10), (_spaced, 15), (_wide, 5), (_empty, 2))


def data_object(rng: random.Random, number):
    """The bytes of an object, or None where a caller sends no data."""
    if rng.random() < 0.03:
        return None
    shape = rng.choices([shape for shape, _ in SHAPES], [weight for _, weight in SHAPES])[0]
    return shape(rng, number).encode()


def numbered_object(rng: random.Random, number):
    """The bytes of an object that no other number gives."""
    return rng.choice((_plain, _escaped, _decimals, _nested, _spaced))(rng, number).encode()


def respell(data: bytes):
    """The same object in other bytes: white space between all tokens."""
    return b" " + "\n ".join(TOKEN.findall(data.decode())).encode()


def body(members):
    """An object of members whose values are bytes that are JSON already. Members without a value are left out."""
    parts = [json.dumps(name).encode() + b":" + value for name, value in members.items() if value is not None]
    return b"{" + b",".join(parts) + b"}"


def text(value):
    """A string as JSON bytes."""
    return json.dumps(value, ensure_ascii=False).encode()
