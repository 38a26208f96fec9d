# SPDX-License-Identifier: Apache-2.0
"""The parts of the load tools that stand by themselves: what is sent, how exact bytes are cut out, what a client repeats."""

import json
import os
import random
import socketserver
import tempfile
import threading
import unittest

import corpus
import json_slices
import manifest
import shapes
from expectations import derived_document_id, instant
from http_client import Call, Client


class ShapesTest(unittest.TestCase):
    def test_data_is_cut_out_of_a_body_as_it_was_written(self):
        rng = random.Random(1)
        for number in range(2000):
            data = shapes.numbered_object(rng, number)
            body = shapes.body({"type": b'"t"', "data": data, "documents": b"[]"})
            self.assertEqual(data, json_slices.members(body)["data"])

    def test_another_spelling_means_the_same_in_other_bytes(self):
        rng = random.Random(2)
        for number in range(2000):
            data = shapes.numbered_object(rng, number)
            self.assertNotEqual(data, shapes.respell(data))
            self.assertEqual(json.loads(data), json.loads(shapes.respell(data)))

    def test_the_same_seed_sends_the_same(self):
        self.assertEqual(*[[shapes.data_object(random.Random("1/7"), 7) for _ in range(9)] for _ in range(2)])

    def test_what_is_no_object_is_refused(self):
        for value in (b"[]", b"", b"7", b'{"a":1', b'{"a" 1}', b'{"a":}', b"\xff"):
            with self.subTest(value), self.assertRaises(ValueError):
                json_slices.members(value)


class CorpusTest(unittest.TestCase):
    def test_too_few_files_are_refused_with_the_packages(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(corpus.CorpusError, "apt-get install .*iso-codes"):
            corpus.Corpus(folder)


class ExpectationsTest(unittest.TestCase):
    def test_times_compare_whatever_their_spelling(self):
        same = {instant(text) for text in ("2026-01-02T03:04:05.5Z", "2026-01-02 03:04:05.500000+00", "2026-01-02T03:04:05.500+00:00")}
        self.assertEqual({"2026-01-02T03:04:05.500000"}, same)
        self.assertEqual([None, None], [instant("yesterday"), instant(None)])

    def test_an_id_is_derived_from_name_media_type_and_hash(self):
        self.assertEqual(32, len(derived_document_id("a", "b", "c")))
        self.assertNotEqual(derived_document_id("ab", "c", "d"), derived_document_id("a", "bc", "d"))


class ManifestTest(unittest.TestCase):
    def test_a_line_that_was_cut_off_is_left_out(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = os.path.join(parent, "m")
            writer = manifest.Writer(folder, {"a": 1})
            writer.add({"call": "put", "text": "\u2028é"})
            writer.close()
            with open(os.path.join(folder, "calls.jsonl"), "a", encoding="utf-8") as file:
                file.write('{"call":"su')
            self.assertEqual(({"a": 1}, [{"call": "put", "text": "\u2028é"}]), manifest.read(folder))
            with self.assertRaises(manifest.ManifestError):
                manifest.Writer(folder, {})


class Answers(socketserver.StreamRequestHandler):
    """Answers the n-th call as it is told: a status, or "cut" for a connection that ends without one."""

    def handle(self):
        while self.rfile.readline():
            size = 0
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                size = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else size
            self.rfile.read(size)
            answer = self.server.answers.pop(0)
            self.server.call_count += 1
            if answer == "cut":
                return
            body = b'{"code":"outcome_unknown"}' if answer == "unknown" else b"{}"
            status = 503 if answer == "unknown" else answer
            self.wfile.write(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\nRetry-After: 0\r\n\r\n%b" % (status, len(body), body))


class ClientTest(unittest.TestCase):
    def call(self, answers, **changes):
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answers)
        server.daemon_threads, server.answers, server.call_count = True, list(answers), 0
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        client = Client([f"http://127.0.0.1:{server.server_address[1]}"], 5)
        try:
            call = Call("submit", "POST", "/x", b"{}", **changes)
            return client.call(call), server.call_count
        finally:
            client.close()
            server.shutdown()
            server.server_close()

    def test_a_lost_answer_and_503_are_tried_again(self):
        outcome, call_count = self.call(["cut", 503, "cut", 200])
        self.assertEqual((200, 4, 2, 4), (outcome.status, outcome.attempts, outcome.lost, call_count))

    def test_an_answer_that_says_unknown_is_tried_again_as_a_lost_one(self):
        outcome, call_count = self.call(["unknown", 200])
        self.assertEqual((200, 1, 2), (outcome.status, outcome.lost, call_count))

    def test_what_cannot_be_repeated_is_left_unknown(self):
        outcome, call_count = self.call(["cut", 200], is_repeatable=False)
        self.assertEqual((0, 1, 1), (outcome.status, outcome.lost, call_count))

    def test_503_is_tried_again_even_then(self):
        outcome, call_count = self.call([503, 201], is_repeatable=False)
        self.assertEqual((201, 2), (outcome.status, call_count))

    def test_a_refusal_stands(self):
        outcome, call_count = self.call([422])
        self.assertEqual((422, 1), (outcome.status, call_count))


if __name__ == "__main__":
    unittest.main()
