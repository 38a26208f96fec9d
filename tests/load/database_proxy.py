#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands before Postgres and cuts connections at a chosen statement, so that whoever sent it cannot know what became of it.

It reads the protocol's messages, never changes one, and passes everything on until it is told to cut. A line on standard
input arms one cut: {"user": ROLE, "statement": TEXT, "way": WAY}, for the next statement of that role that begins so.

    way "before"   what came before the statement is passed on, the statement is not, and both sides are cut
    way "after"    the statement is passed on, the server's answer is awaited and kept, and both sides are cut

Each line on standard output is what happened: {"event": "ready"}, or {"event": "cut", "user", "statement", "way", "answer"},
where answer is the server's word on the statement that the client never saw ("COMMIT"), null with way "before". A cut whose
answer did not come in time did not take place: the client gets what was kept, and nothing is said.
"""

import argparse
import asyncio
import json
import re
import struct
import sys

CHUNK_SIZE = 256 * 1024
ANSWER_WAIT_S = 10
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
READY_FOR_QUERY = re.compile(rb"Z\x00\x00\x00\x05[ITE]\Z")
COMMAND_COMPLETE = re.compile(rb"C\x00\x00\x00.([A-Z][A-Z0-9 ]*)\x00", re.DOTALL)


class Statements:
    """Follows what a client sends, message by message, and finds where a statement with a given beginning is run."""

    def __init__(self):
        self._rest = b""
        self._skip = 0
        self._named = {}

    def find(self, chunk, wanted):
        """Takes the next bytes. Gives the place in them at which a message runs a statement that begins with one of
        `wanted`, with that text; (None, None) if there is none. A message that runs a statement is small or comes whole."""
        data = self._rest + chunk
        at, found = min(self._skip, len(data)), (None, None)
        self._skip -= at
        while len(data) - at >= 5:
            kind, length = data[at:at + 1], struct.unpack_from(">I", data, at + 1)[0] + 1
            body = data[at + 5:at + length]
            is_whole = len(data) - at >= length
            if not is_whole and kind in (b"P", b"Q", b"B") and len(body) < 4096:
                break
            text = self._text_that_runs(kind, body)
            if text is not None and found[0] is None and (prefix := next(filter(text.startswith, wanted), None)) is not None:
                found = max(0, at - len(self._rest)), prefix
            self._skip = max(0, at + length - len(data))
            at = min(at + length, len(data))
        self._rest = data[at:]
        return found

    def _text_that_runs(self, kind, body):
        if kind == b"P":
            name, text = body.split(b"\0", 2)[:2]
            self._named[name] = text.decode(errors="replace").lstrip()
        elif kind == b"B":
            return self._named.get(body.split(b"\0", 2)[1])
        elif kind == b"Q":
            return body.rstrip(b"\0").decode(errors="replace").lstrip()
        return None


class Cuts:
    """The cuts that are armed, and who is told of those that took place."""

    def __init__(self):
        self._armed = []

    def arm(self, cut):
        self._armed.append(cut)

    def wanted(self, user):
        return [cut["statement"] for cut in self._armed if cut["user"] == user]

    def take(self, user, statement):
        cut = next((cut for cut in self._armed if cut["user"] == user and cut["statement"] == statement), None)
        if cut is not None:
            self._armed.remove(cut)
        return cut

    @staticmethod
    def say(**event):
        print(json.dumps(event), flush=True)


class Link:
    """One client and its connection to the server."""

    def __init__(self, client, server, cuts):
        self._client_reader, self._client = client
        self._server_reader, self._server = server
        self._cuts = cuts
        self._user = ""
        self._kept = None  # What the server said since a cut began.
        self._answered = asyncio.Event()

    async def run(self):
        if not await self._start():
            return
        downstream = asyncio.create_task(self._pass_answers())
        upstream = asyncio.create_task(self._pass_statements())
        await asyncio.wait((downstream, upstream), return_when=asyncio.FIRST_COMPLETED)
        for task in (downstream, upstream):
            task.cancel()
        await asyncio.gather(downstream, upstream, return_exceptions=True)

    async def _start(self):
        """Passes the start of a session on, and learns whose it is."""
        while True:
            head = await self._client_reader.readexactly(8)
            length, code = struct.unpack(">II", head)
            body = await self._client_reader.readexactly(length - 8)
            self._server.write(head + body)
            await self._server.drain()
            if code in (SSL_REQUEST, GSS_REQUEST):
                self._client.write(await self._server_reader.readexactly(1))
                continue
            words = body.split(b"\0")
            self._user = dict(zip(words[::2], words[1::2])).get(b"user", b"").decode()
            return code != CANCEL_REQUEST

    async def _pass_statements(self):
        statements = Statements()
        while chunk := await self._client_reader.read(CHUNK_SIZE):
            at, statement = statements.find(chunk, self._cuts.wanted(self._user))
            cut = None if at is None else self._cuts.take(self._user, statement)
            if cut is not None and await self._cut(cut, chunk, at):
                return
            if cut is None:
                self._server.write(chunk)
                await self._server.drain()

    async def _cut(self, cut, chunk, at):
        """True if both sides are to be closed."""
        if cut["way"] == "before":
            self._server.write(chunk[:at])
            await self._server.drain()
            self._cuts.say(event="cut", user=self._user, statement=cut["statement"], way="before", answer=None)
            return True
        self._kept = b""
        self._server.write(chunk)
        await self._server.drain()
        try:
            await asyncio.wait_for(self._answered.wait(), ANSWER_WAIT_S)
        except asyncio.TimeoutError:
            kept, self._kept = self._kept, None
            self._client.write(kept)
            return False
        answers = COMMAND_COMPLETE.findall(self._kept)
        self._cuts.say(event="cut", user=self._user, statement=cut["statement"], way="after",
                       answer=answers[-1].decode() if answers else None)
        return True

    async def _pass_answers(self):
        while chunk := await self._server_reader.read(CHUNK_SIZE):
            if self._kept is None:
                self._client.write(chunk)
                await self._client.drain()
                continue
            self._kept += chunk
            if READY_FOR_QUERY.search(self._kept):
                self._answered.set()
                await asyncio.sleep(ANSWER_WAIT_S)


async def serve_client(options, cuts, reader, writer):
    server_writer = None
    try:
        server_reader, server_writer = await asyncio.open_connection(*options.server, limit=CHUNK_SIZE)
        await Link((reader, writer), (server_reader, server_writer), cuts).run()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.transport.abort()
        if server_writer is not None:
            server_writer.close()  # What was passed on before a cut still arrives.


async def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--listen", type=int, required=True, metavar="PORT")
    parser.add_argument("--server", required=True, metavar="HOST:PORT")
    options = parser.parse_args()
    host, port = options.server.rsplit(":", 1)
    options.server = host, int(port)
    cuts = Cuts()
    await asyncio.start_server(lambda *client: serve_client(options, cuts, *client), "127.0.0.1", options.listen, limit=CHUNK_SIZE)
    cuts.say(event="ready")
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while order := await orders.readline():
        cuts.arm(json.loads(order))


if __name__ == "__main__":
    asyncio.run(main())
