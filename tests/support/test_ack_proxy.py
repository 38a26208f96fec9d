# SPDX-License-Identifier: Apache-2.0
"""What the proxy before a broker reads out of a Produce response, in every version that it may meet."""

import importlib.machinery
import importlib.util
import json
import os
import struct
import unittest

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ack_proxy")
LOADER = importlib.machinery.SourceFileLoader("ack_proxy", PATH)
ack_proxy = importlib.util.module_from_spec(importlib.util.spec_from_loader("ack_proxy", LOADER))
LOADER.exec_module(ack_proxy)


def plain(version, errors):
    """Up to version 8: one topic with these errors, by Kafka's protocol guide."""
    body = struct.pack(">ih4si", 1, 4, b"name", len(errors))
    for partition, error in enumerate(errors):
        body += struct.pack(">ihq", partition, error, 1000)
        body += struct.pack(">q", -1) if version >= 2 else b""
        body += struct.pack(">q", 0) if version >= 5 else b""
        if version >= 8:
            body += struct.pack(">iih3sh", 1, 7, 3, b"why", -1)  # One record's error, and no text for the batch.
    return body + struct.pack(">i", 0)


def flexible(errors):
    """From version 9 on; with tagged fields, as brokers send them from version 10 on."""
    body = b"\x00" + b"\x02" + b"\x05name" + bytes([len(errors) + 1])
    for partition, error in enumerate(errors):
        body += struct.pack(">ihqqq", partition, error, 1000, -1, 0)
        body += b"\x02" + struct.pack(">i", 7) + b"\x04why" + b"\x00"
        body += b"\x00"
        body += b"\x01\x00\x05" + b"abcde"  # One tagged field: its tag, its size, its bytes.
    return body + b"\x00" + struct.pack(">i", 0) + b"\x00"


class ResponseTest(unittest.TestCase):
    def test_the_errors_of_every_version_are_read(self):
        for errors in ([0], [0, 0, 0], [0, 6, 0], [-1]):
            for version in range(0, 9):
                with self.subTest(version=version, errors=errors):
                    self.assertEqual(errors, ack_proxy.produce_errors(plain(version, errors), version))

    def test_the_errors_of_the_compact_form_are_read(self):
        for errors in ([0], [0, 6]):
            for version in range(9, ack_proxy.VERSION_MAX + 1):
                with self.subTest(version=version, errors=errors):
                    self.assertEqual(errors, ack_proxy.produce_errors(flexible(errors), version))

    def test_numbers_of_more_than_one_byte_are_read(self):
        self.assertEqual(300, ack_proxy.Reader(b"\xac\x02", True).varint())


class CommandTest(unittest.TestCase):
    def test_a_command_takes_the_place_of_what_is_pending(self):
        proxy = ack_proxy.Proxy()
        proxy.command("swallow 3\n")
        proxy.command("cut 2\n")
        status = json.loads(proxy.command("swallow 1\n"))
        self.assertEqual((1, 2), (status["pending_swallow"], status["pending_cut"]))

    def test_what_is_no_command_is_refused(self):
        for line in ("", "swallow", "swallow -1", "swallow x", "status 1", "stop"):
            with self.subTest(line):
                self.assertIn("error", json.loads(ack_proxy.Proxy().command(line)))


if __name__ == "__main__":
    unittest.main()
