# SPDX-License-Identifier: Apache-2.0
"""A scorecard of the running producer's HTTP: raw probes, each printed with its answer, none of which may deviate.

Behind every probe stands another request in the same write. A probe that is refused must be the only one that is
answered, and the connection be closed; one that is served must leave the connection where the next request is read
as what it is.
"""
import concurrent.futures
import json
import socket

from producer_fixture import Database, Producer, case, main

HOST = b"Host: t\r\n"
GET = b"GET /livez HTTP/1.1\r\n" + HOST
NEXT = GET + b"X-Next: 1\r\nConnection: close\r\n\r\n"
JSON = b'{"type":"demo"}'
POST = b"POST /submissions HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b"Content-Length: 15\r\n\r\n" + JSON
DEADLINE = 20

OPEN, CLOSED, SILENT = "open", "closed", "silent"  # SILENT: closed without a word.
ALONE = object()  # Nothing stands behind the probe.
HALF = object()  # Nor behind this one, and the client says that it has no more to say.


def get(path, more=b""):
    return b"GET " + path + b" HTTP/1.1\r\n" + HOST + more + b"\r\n"


def bad(name, data):
    return (name, data, 400, "request_malformed", CLOSED)


def chunk_bad(name, chunks):
    return bad(name, CHUNKED + chunks)


def head_bad(name, line):
    return bad(name, GET + line + b"\r\n\r\n")


def length_bad(name, value):
    return bad(name, POST + b"Content-Length:" + value + b"\r\n\r\n" + JSON)


def coding_bad(name, *lines):
    return bad(name, POST + b"".join(line + b"\r\n" for line in lines) + b"\r\nf\r\n" + JSON + b"\r\n0\r\n\r\n")


FRAMING = [
    ("a body with Content-Length", POST + BODY, 201, None, OPEN),
    ("blanks around Content-Length", POST + b"Content-Length: \t15 \r\n\r\n" + JSON, 201, None, OPEN),
    ("a chunked body", CHUNKED + b"f\r\n" + JSON + b"\r\n0\r\n\r\n", 201, None, OPEN),
    ("a chunked body in upper case, with zeros", CHUNKED + b"00F\r\n" + JSON + b"\r\n000\r\n\r\n", 201, None, OPEN),
    ("chunk extensions", CHUNKED + b'f;a=b;c="d"\r\n' + JSON + b"\r\n0;last\r\n\r\n", 201, None, OPEN),
    ("a name with an underscore is no coding", POST + b"Transfer_Encoding: chunked\r\n" + BODY, 201, None, OPEN),
    ("Content-Length: 0 on a GET", GET + b"Content-Length: 0\r\n\r\n", 200, None, OPEN),
    bad("Content-Length, then Transfer-Encoding", POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("Transfer-Encoding, then Content-Length", POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
    bad("two Content-Lengths", POST + b"Content-Length: 5\r\n" + BODY),
    bad("two equal Content-Lengths", POST + b"Content-Length: 15\r\n" + BODY),
    length_bad("a list of equal lengths", b" 15, 15"),
    length_bad("a length with a plus", b" +15"),
    length_bad("a length with a minus", b" -15"),
    length_bad("a length with a blank inside", b" 1 5"),
    length_bad("a hexadecimal length", b" 0xf"),
    length_bad("a length with a point", b" 15.0"),
    length_bad("a length with an underscore", b" 1_5"),
    length_bad("a length with a letter behind", b" 15a"),
    length_bad("a length in other digits", b" \xef\xbc\x91\xef\xbc\x95"),
    length_bad("an empty length", b""),
    length_bad("a length beyond 64 bits", b" 99999999999999999999999"),
    length_bad("a length that wraps to 15", b" 18446744073709551631"),
    bad("a blank before the colon of Content-Length", POST + b"Content-Length : 15\r\n\r\n" + JSON),
    coding_bad("a coding that is not chunked", b"Transfer-Encoding: gzip"),
    coding_bad("identity", b"Transfer-Encoding: identity"),
    coding_bad("a coding before chunked", b"Transfer-Encoding: gzip, chunked"),
    coding_bad("chunked not last", b"Transfer-Encoding: chunked, gzip"),
    coding_bad("chunked twice in a line", b"Transfer-Encoding: chunked, chunked"),
    coding_bad("chunked twice in two lines", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    coding_bad("two different codings", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
    coding_bad("almost chunked", b"Transfer-Encoding: xchunked"),
    coding_bad("chunked with a parameter", b"Transfer-Encoding: chunked;q=1"),
    coding_bad("chunked in quotation marks", b'Transfer-Encoding: "chunked"'),
    coding_bad("chunked behind a vertical tab", b"Transfer-Encoding: \x0bchunked"),
    coding_bad("a blank before the colon of Transfer-Encoding", b"Transfer-Encoding : chunked"),
    coding_bad("an empty coding", b"Transfer-Encoding:"),
    coding_bad("chunked on a folded line", b"Transfer-Encoding:", b" chunked"),
    bad("chunked in HTTP/1.0", CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n"),
    chunk_bad("a chunk size that is no number", b"zz\r\n"),
    chunk_bad("a chunk size with a sign", b"+f\r\n" + JSON + b"\r\n0\r\n\r\n"),
    chunk_bad("a chunk size with 0x", b"0xf\r\n" + JSON + b"\r\n0\r\n\r\n"),
    chunk_bad("a chunk size behind a blank", b" f\r\n" + JSON + b"\r\n0\r\n\r\n"),
    chunk_bad("a chunk size with a blank behind", b"f \r\n" + JSON + b"\r\n0\r\n\r\n"),
    chunk_bad("no chunk size", b"\r\n" + JSON + b"\r\n0\r\n\r\n"),
    chunk_bad("a chunk size beyond 64 bits", b"fffffffffffffffff\r\n"),
    chunk_bad("a chunk size that ends in a bare LF", b"f\n" + JSON + b"\r\n0\r\n\r\n"),
    chunk_bad("a chunk extension with a bare LF", b"f;a\nb\r\n" + JSON + b"\r\n0\r\n\r\n"),
    chunk_bad("a chunk that is longer than it says", b"e\r\n" + JSON + b"\r\n0\r\n\r\n"),
    chunk_bad("a chunk that ends in a bare LF", b"f\r\n" + JSON + b"\n0\r\n\r\n"),
    chunk_bad("a trailer", b"f\r\n" + JSON + b"\r\n0\r\nX: y\r\n\r\n"),
    chunk_bad("Content-Length in a trailer", b"f\r\n" + JSON + b"\r\n0\r\nContent-Length: 1\r\n\r\n"),
    ("a chunk over the limit", CHUNKED + b"7fffffff\r\n" + JSON, 413, "body_too_large", CLOSED),
    ("a body on a GET", GET + b"Content-Length: 3\r\n\r\nabc", 413, "body_not_expected", CLOSED),
    ("a chunked body on a GET", GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413, "body_not_expected", CLOSED),
    ("a length over the limit", POST + b"Content-Length: 99999999\r\n\r\n", 413, "body_too_large", CLOSED),
    ("a length of 19 digits", POST + b"Content-Length: 9223372036854775807\r\n\r\n", 413, "body_too_large", CLOSED),
]

HEADS = [
    ("8-bit bytes in a value", get(b"/livez", b"X: \xc3\xa4\xff\r\n"), 200, None, OPEN),
    ("an empty value", get(b"/livez", b"X:\r\n"), 200, None, OPEN),
    ("empty lines before a request", b"\r\n\r\n" + get(b"/livez"), 200, None, OPEN),
    ("an empty Host", b"GET /livez HTTP/1.1\r\nHost:\r\n\r\n", 200, None, OPEN),
    bad("no Host", b"GET /livez HTTP/1.1\r\n\r\n"),
    head_bad("two Hosts", b"Host: u"),
    head_bad("two equal Hosts", b"Host: t"),
    bad("a Host with a path", b"GET /livez HTTP/1.1\r\nHost: t/x\r\n\r\n"),
    bad("a Host with a user", b"GET /livez HTTP/1.1\r\nHost: u@t\r\n\r\n"),
    bad("two names in Host", b"GET /livez HTTP/1.1\r\nHost: t u\r\n\r\n"),
    head_bad("a folded line", b"X: 1\r\n 2"),
    bad("a fold before the first header", b"GET /livez HTTP/1.1\r\n X: 1\r\n" + HOST + b"\r\n"),
    bad("bare LFs", b"GET /livez HTTP/1.1\nHost: t\n\n"),
    bad("a bare LF behind the request line", b"GET /livez HTTP/1.1\n" + HOST + b"\r\n"),
    head_bad("a bare LF in a value", b"X: 1\nY: 2"),
    head_bad("a bare CR in a value", b"X: 1\rY: 2"),
    bad("a bare LF for the empty line", GET + b"\n"),
    head_bad("NUL in a value", b"X: a\0b"),
    head_bad("NUL in a name", b"X\0Y: a"),
    head_bad("a control byte in a value", b"X: a\x01"),
    head_bad("a vertical tab in a value", b"X: a\x0bb"),
    head_bad("DEL in a value", b"X: \x7f"),
    head_bad("a blank before a colon", b"X : 1"),
    head_bad("a tab before a colon", b"X\t: 1"),
    head_bad("an empty name", b": 1"),
    head_bad("a line without a colon", b"X"),
    head_bad("a name that is no token", b"X(y): 1"),
    head_bad("an 8-bit name", b"X\xe4: 1"),
    ("headers over the limit", get(b"/livez", b"X: " + b"x" * 40000 + b"\r\n"), 431, "head_too_large", CLOSED),
    ("too many headers", get(b"/livez", b"X: y\r\n" * 100), 431, "head_too_large", CLOSED),
    ("Expect: 100-continue", POST + b"Expect: 100-continue\r\n" + BODY, 201, None, OPEN),
    ("Expect: 100-continue over the limit: no 100", POST + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", 413,
     "body_too_large", CLOSED),
    ("another expectation", POST + b"Expect: miracles\r\n" + BODY, 417, "expectation_failed", CLOSED),
    ("two expectations", POST + b"Expect: 100-continue\r\nExpect: 100-continue\r\n" + BODY, 417, "expectation_failed", CLOSED),
    ("a wish for HTTP/2", get(b"/livez", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"), 200,
     None, OPEN),
    ("a wish for WebSocket", get(b"/livez", b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"), 200,
     None, OPEN),
    ("Connection: close", get(b"/livez", b"Connection: close\r\n"), 200, None, CLOSED),
    ("Authorization: Basic", get(b"/requests", b"Authorization: Basic dTpw\r\n"), 401, "token_invalid", OPEN),
    ("two Authorizations", get(b"/requests", b"Authorization: Bearer a\r\n" * 2), 401, "token_invalid", OPEN),
    ("two Idempotency-Keys", POST + b"Idempotency-Key: a\r\n" * 2 + BODY, 400, "idempotency_key_invalid", OPEN),
    ("two Content-Types", POST + b"Content-Type: application/json\r\n" + BODY, 415, "media_type_unsupported", OPEN),
    ("a compressed body", POST + b"Content-Encoding: gzip\r\n" + BODY, 415, "media_type_unsupported", OPEN),
]

LINES = [
    ("HTTP/1.0", b"GET /livez HTTP/1.0\r\n\r\n", 200, None, CLOSED),
    ("HTTP/1.0 that stays", b"GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, None, OPEN),
    ("HEAD", b"HEAD /livez HTTP/1.1\r\n" + HOST + b"\r\n", 200, None, OPEN),
    bad("HTTP/0.9", b"GET /livez\r\n\r\n"),
    bad("HTTP/1.2", b"GET /livez HTTP/1.2\r\n" + HOST + b"\r\n"),
    bad("HTTP/2.0", b"GET /livez HTTP/2.0\r\n" + HOST + b"\r\n"),
    bad("a version in lower case", b"GET /livez http/1.1\r\n" + HOST + b"\r\n"),
    bad("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    bad("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    bad("a blank before the method", b" GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"),
    bad("two blanks", b"GET  /livez HTTP/1.1\r\n" + HOST + b"\r\n"),
    bad("tabs", b"GET\t/livez\tHTTP/1.1\r\n" + HOST + b"\r\n"),
    bad("a blank at the end", b"GET /livez HTTP/1.1 \r\n" + HOST + b"\r\n"),
    bad("a blank in the target", b"GET /li vez HTTP/1.1\r\n" + HOST + b"\r\n"),
    ("the absolute form", get(b"http://t/livez"), 200, None, OPEN),
    ("the absolute form of https, in upper case", get(b"HTTPS://T/livez"), 200, None, OPEN),
    ("the absolute form without a path", get(b"http://t"), 200, None, OPEN),
    bad("the absolute form of another host", get(b"http://u/livez")),
    bad("the absolute form with a user", get(b"http://u@t/livez")),
    bad("the absolute form of another scheme", get(b"ftp://t/livez")),
    bad("the asterisk form", b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n"),
    bad("an asterisk with GET", get(b"*")),
    bad("the authority form", b"CONNECT t:80 HTTP/1.1\r\n" + HOST + b"\r\n"),
    ("CONNECT of a path", b"CONNECT /livez HTTP/1.1\r\n" + HOST + b"\r\n", 501, "method_unknown", CLOSED),
    ("a method that nobody knows", b"FROB /livez HTTP/1.1\r\n" + HOST + b"\r\n", 501, "method_unknown", CLOSED),
    ("a method in lower case", b"get /livez HTTP/1.1\r\n" + HOST + b"\r\n", 501, "method_unknown", CLOSED),
    ("TRACE", b"TRACE /livez HTTP/1.1\r\n" + HOST + b"\r\n", 405, "method_not_allowed", OPEN),
    ("OPTIONS", b"OPTIONS /requests HTTP/1.1\r\n" + HOST + b"\r\n", 405, "method_not_allowed", OPEN),
    ("DELETE", b"DELETE /requests/x HTTP/1.1\r\n" + HOST + b"\r\n", 405, "method_not_allowed", OPEN),
    bad("a method that is no token", b"GE(T /livez HTTP/1.1\r\n" + HOST + b"\r\n"),
    ("a target over the limit", get(b"/" + b"x" * 40000), 414, "target_too_long", CLOSED),
    bad("a fragment", get(b"/livez#x")),
    bad("an 8-bit byte in the path", get(b"/\xe4")),
    bad("a backslash in the path", get(b"/livez\\x")),
    bad("NUL in the path", get(b"/livez\0")),
]

PATHS = [
    ("a path that is none", get(b"/nothing"), 404, "not_found", OPEN),
    ("a trailing slash", get(b"/livez/"), 404, "not_found", OPEN),
    ("two slashes", get(b"//livez"), 404, "not_found", OPEN),
    ("a dot segment", get(b"/./livez"), 404, "not_found", OPEN),
    ("two dots", get(b"/requests/../livez"), 404, "not_found", OPEN),
    ("two dots at the root", get(b"/../livez"), 404, "not_found", OPEN),
    ("an escaped letter", get(b"/%6civez"), 404, "not_found", OPEN),
    ("a path in upper case", get(b"/LIVEZ"), 404, "not_found", OPEN),
    ("an escaped NUL", get(b"/requests/%00"), 404, "request_not_found", OPEN),
    ("an escaped slash", get(b"/requests/a%2Fb"), 404, "request_not_found", OPEN),
    ("an escape that is none", get(b"/requests/%zz"), 404, "request_not_found", OPEN),
    ("an id in upper case", get(b"/requests/01A22E15-B33F-7C95-9F53-2E24EFC07539"), 404, "request_not_found", OPEN),
    ("a key with an escape that is none", get(b"/idempotency-keys/%zz"), 400, "idempotency_key_invalid", OPEN),
    ("a key with an escaped slash", get(b"/idempotency-keys/a%2Fb"), 404, "idempotency_key_not_found", OPEN),
    ("a parameter twice", get(b"/requests?limit=1&limit=1"), 400, "query_invalid", OPEN),
    ("an unknown parameter", get(b"/requests?x=1"), 400, "query_invalid", OPEN),
    ("a parameter with an escape that is none", get(b"/requests?limit=%zz"), 400, "query_invalid", OPEN),
    ("a parameter with NUL", get(b"/requests?limit=1%00"), 400, "query_invalid", OPEN),
]

ORDER = [
    ("a head that stops", GET + b"X: ", 408, "request_timeout", CLOSED, ALONE),
    ("a single byte", b"G", 408, "request_timeout", CLOSED, ALONE),
    ("half closed behind a whole request", POST + BODY, 201, None, CLOSED, HALF),
    ("half closed in a head", GET + b"X: ", None, None, SILENT, HALF),
    ("half closed in a body", POST + BODY[:-3], None, None, SILENT, HALF),
    ("half closed in a chunk", CHUNKED + b"f\r\n{", None, None, SILENT, HALF),
    ("what follows a refusal is not read", b"GET /livez HTTP/1.1\r\n\r\n" + get(b"/livez") * 3, 400, "request_malformed",
     CLOSED),
]


class World:
    def __init__(self, bin_dir):
        self.db = Database(bin_dir)
        self.producer = Producer(bin_dir, self.db.role())


def unmake(world):
    world.producer.stop()
    world.db.drop()


def split(text, is_head):
    """The answers one after the other: (status, headers, body); the bytes must be nothing else. 100 Continue is left out."""
    answers = []
    while text:
        head, blank, rest = text.partition(b"\r\n\r\n")
        assert blank and head.startswith(b"HTTP/1.1 "), text[:200]
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        headers = dict(line.split(": ", 1) for line in lines[1:])
        size = 0 if status == 100 or (is_head and not answers) else int(headers["Content-Length"])
        assert len(rest) >= size, text
        text = rest[size:]
        if status != 100:
            answers.append((status, headers, rest[:size]))
    return answers


def send(port, data, behind):
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as connection:
        connection.sendall(data + (NEXT if behind is None else b""))
        if behind is HALF:
            connection.shutdown(socket.SHUT_WR)
        text = b""
        try:
            while piece := connection.recv(65536):
                text += piece
        except ConnectionResetError:
            pass
    return split(text, data.startswith(b"HEAD"))


def judge(answers, status, code, end):
    """What deviates; an empty text when nothing does."""
    if end is SILENT:
        return "" if not answers else "an answer"
    wanted = 2 if end is OPEN else 1
    if len(answers) != wanted:
        return f"{len(answers)} answers, not {wanted}"
    got, headers, body = answers[0]
    if got != status:
        return f"{got}, not {status}"
    if got >= 400:
        problem = json.loads(body)
        if headers["Content-Type"] != "application/problem+json" or problem["status"] != got or "retry" not in problem:
            return "no problem document"
        if problem["code"] != code:
            return f"{problem['code']}, not {code}"
    if (headers.get("Connection") == "close") != (end is CLOSED) and not (end is CLOSED and got == 201):
        return f"Connection: {headers.get('Connection')}"
    return "" if end is CLOSED or answers[1][0] == 200 else "the next request was not read as what it is"


def run(world, probes):
    """Prints each probe with its answer."""
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda probe: send(world.producer.port, probe[1], probe[5] if len(probe) > 5 else None), probes))
    failures = []
    for (name, _, status, code, end, *_), answers in zip(probes, results):
        wrong = judge(answers, status, code, end)
        got = "-" if not answers else str(answers[0][0])
        said = json.loads(answers[0][2])["code"] if answers and answers[0][0] >= 400 else ""
        state = "open" if len(answers) > 1 else "closed"
        print(f"      {'FAIL' if wrong else 'pass'}  {got:3} {said:26} {state:6} {name}{': ' + wrong if wrong else ''}")
        failures += [name] if wrong else []
    assert not failures, failures


@case("B5 B2 B3 B9 B10", f"a scorecard of {sum(map(len, (FRAMING, HEADS, LINES, PATHS, ORDER)))} raw probes: framing")
def _(world):
    run(world, FRAMING)


@case("B5 B11 G2", "the scorecard: headers")
def _(world):
    run(world, HEADS)


@case("B5 B6 B8 B9 B10 B11", "the scorecard: request lines")
def _(world):
    run(world, LINES)


@case("B7 A13", "the scorecard: paths and queries")
def _(world):
    run(world, PATHS)


@case("B4 B5", "the scorecard: the order of things")
def _(world):
    run(world, ORDER)


@case("B1 B5 E2", "requests in a row are answered in a row, and an error that leaves the framing sound does not end it")
def _(world):
    row = get(b"/livez") + POST + BODY + get(b"/nothing") + CHUNKED + b"f\r\n" + JSON + b"\r\n0\r\n\r\n" + POST + \
        b"Content-Length: 1\r\n\r\n{" + get(b"/requests?x=1")
    answers = send(world.producer.port, row, None)
    assert [answer[0] for answer in answers] == [200, 201, 404, 201, 400, 400, 200], answers
    assert world.producer.get("/livez").status == 200


@case("B5 G2", "who tries a password is told that a bearer token is asked for")
def _(world):
    (_, headers, body), _ = send(world.producer.port, get(b"/requests", b"Authorization: Basic dTpw\r\n"), None)
    assert "a bearer token is asked for" in json.loads(body)["detail"], body
    assert headers["WWW-Authenticate"].startswith("Bearer "), headers


main(World, unmake)
