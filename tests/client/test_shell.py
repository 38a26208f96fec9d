# SPDX-License-Identifier: Apache-2.0
"""deploy/shell/onceward.sh: the same key for every try, as often as it takes and no oftener."""
import hashlib
import http.server
import json
import os
import pathlib
import subprocess
import threading
import time
import uuid

from producer_fixture import Database, Producer, case, free_port, main

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy/shell/onceward.sh"
PROBLEM = {"Content-Type": "application/problem+json"}


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)


def unmake(world):
    world.db.drop()


def shell(command, port, patience=30, token=""):
    """Runs a command with the functions at hand; gives the process."""
    environment = {"PATH": os.environ["PATH"], "ONCEWARD_URL": f"http://127.0.0.1:{port}", "ONCEWARD_PATIENCE_S": str(patience),
                   "ONCEWARD_TOKEN": token}
    return subprocess.Popen(["bash", "-euc", f". {SCRIPT}; {command}"], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def ended(process):
    out, errors = process.communicate(timeout=90)
    return process.returncode, out, errors


SUBMIT = ("""onceward_call "$key" POST /submissions -H 'Content-Type: application/json' """
          """--data '{"type": "demo", "data": {"amount": "12.50"}}'""")


@case("", "a producer that is away, then killed at COMMIT, then there: one submission, its first answer")
def _(world):
    port = free_port()
    process = shell(f"key=$(onceward_key_new); echo \"$key\"; {SUBMIT}", port)
    time.sleep(1.2)  # Refused at least once.
    dying = Producer(world.bin_dir, world.db.role(), port=port, wait=False, failpoints="producer.after_commit=kill@1")
    try:
        assert dying.process.wait(timeout=30) < 0, "it was not killed"
    except subprocess.TimeoutExpired as error:
        raise AssertionError("the call did not come") from error
    again = Producer(world.bin_dir, world.db.role(), port=port)
    code, out, errors = ended(process)
    assert code == 0, (code, out, errors)
    key, _, body = out.partition("\n")
    receipt = json.loads(body)
    assert receipt["queued"] and world.db.count("submissions") == 1 and world.db.count("outbox") == 1, receipt
    assert world.db.value("SELECT event_id FROM onceward.submissions") == receipt["event_id"]
    assert world.db.value("SELECT key FROM onceward.idempotency_keys") == key
    # And by hand once more: the same bytes.
    code, out, _ = ended(shell(f"key={key}; {SUBMIT}", port))
    assert code == 0 and out == body and world.db.count("submissions") == 1, out
    again.stop()


class Scripted(http.server.ThreadingHTTPServer):
    """Answers with what the script says, in order, and notes what came."""

    def __init__(self, *script):
        self.script = list(script)
        self.seen = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.seen.append((time.monotonic(), self.headers["Idempotency-Key"], body, self.headers["Authorization"]))
        status, headers, text = self.server.script.pop(0) if self.server.script else (200, {}, "{}")
        if status == 0:  # No answer.
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def problem(code, same_key):
    return json.dumps({"code": code, "detail": 'says "same_key":true', "retry": {"same_key": same_key, "new_key": False,
                                                                                    "after_seconds": None}})


def run_script(*script, **more):
    server = Scripted(*script)
    try:
        result = ended(shell(f"key=k-1; {SUBMIT}", server.server_port, **more))
    finally:
        server.shutdown()
    return result, server.seen


@case("", "what may succeed later is tried again under the same key with the same body, not before Retry-After")
def _(_):
    (code, out, errors), seen = run_script((503, {**PROBLEM, "Retry-After": "3"}, problem("too_busy", True)),
                                           (409, PROBLEM, problem("idempotency_in_progress", True)), (0, {}, ""),
                                           (200, {}, "done"), token="owt_secret")
    assert (code, out) == (0, "done"), (code, out, errors)
    assert {key for _, key, _, _ in seen} == {'"k-1"'} and len({body for _, _, body, _ in seen}) == 1 and len(seen) == 4, seen
    assert seen[0][3] == "Bearer owt_secret" and seen[1][0] - seen[0][0] >= 3, seen


@case("", "a proxy's 502 is tried again; a refusal is not, whatever its text says")
def _(_):
    (code, out, _), seen = run_script((502, {}, "<html>bad gateway</html>"), (200, {}, "done"))
    assert (code, out, len(seen)) == (0, "done", 2), (code, out, seen)
    for status, text in ((422, problem("idempotency_key_reused", False)), (400, problem("body_invalid", False)), (403, "<html>no</html>"),
                         (500, problem("internal_error", False))):
        (code, out, errors), seen = run_script((status, PROBLEM, text))
        assert (code, out, len(seen)) == (1, "", 1) and text in errors, (code, out, errors, seen)


@case("", "patience ends; a body from a pipe, curl's own retries and a wrong option are refused before anything is sent")
def _(_):
    (code, _, errors), seen = run_script(*[(503, PROBLEM, problem("too_busy", True))] * 9, patience=2)
    assert code == 3 and "too_busy" in errors and 1 <= len(seen) <= 2, (code, errors, seen)
    server = Scripted()
    for options in ("--data-binary @-", "-d@-", "-sd@-", "-d @/dev/stdin", "-T -", "-T-", "--upload-file -", "-d @<(echo x)",
                    "--data-binary @<(echo x)", "-T <(echo x)", "--data-urlencode x@-", "-F f=@-", "-F 'f=<-'", "-Ff=@-",
                    "--retry 3", "--fail", "--no-such-option"):
        code, _, _ = ended(shell(f"echo x | onceward_call k POST /submissions {options}", server.server_port))
        assert code == 2, options
    assert ended(shell("onceward_call $'a\nb' GET /", server.server_port))[0] == 2
    server.shutdown()
    assert server.seen == []


@case("", "a body from a file is the same at every try, an at sign in a text is none, and a key may hold quotation marks")
def _(world):
    for options in ("-d @$file", "-d@$file", "--data-binary @$file", "-T $file", "-d 'mail=a@b.example'", "-d'm=a@b'", "-d@$file", "--data-urlencode 'm=a@b'"):
        server = Scripted((503, PROBLEM, problem("too_busy", True)), (200, {}, "done"))
        code, out, errors = ended(shell("file=$(mktemp); echo content >$file; onceward_call 'k\"\\' POST /submissions "
                                        f"{options}; rm $file", server.server_port))
        server.shutdown()
        assert (code, out) == (0, "done"), (options, code, out, errors)
        assert len({body for _, _, body, _ in server.seen}) == 1 and server.seen[0][2], (options, server.seen)
        assert {key for _, key, _, _ in server.seen} == {'"k\\"\\\\"'}, server.seen


@case("", "keys: a UUID that is new, and a hash that is the same as the C client's")
def _(_):
    code, out, _ = ended(shell("onceward_key_new; onceward_key_new; onceward_key_of u pay '{\"ä\": 1}'", 1))
    first, second, hashed = out.split()
    assert code == 0 and first != second and len(first) == 36, out
    code, out, _ = ended(shell("onceward_id_of psp evt_1; onceward_id_of psp evt_1; onceward_id_of pspe vt_1", 1))
    one, same, other = out.split()
    assert code == 0 and one == same != other and str(uuid.UUID(one)) == one and uuid.UUID(one).version == 8, out
    assert hashed == hashlib.sha256('1:u3:pay9:{"ä": 1}'.encode()).hexdigest(), hashed


main(World, unmake)
