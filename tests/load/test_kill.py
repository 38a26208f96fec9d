# SPDX-License-Identifier: Apache-2.0
"""The parts of tests/load/run --kill that stand by themselves: where a statement begins in what a client sends, what a log says."""

import struct
import unittest

import kill
import kill_chaos
from database_proxy import Statements
from kill_evidence import FENCED, REFUSED, REWOUND, UNKNOWN
from kill_refill import STOPPED
from kill_services import CUT_BATCH


def message(kind, body):
    return kind + struct.pack(">I", len(body) + 4) + body


PARSED = message(b"P", b"c\0COMMIT\0\0\0") + message(b"P", b"i\0INSERT INTO t VALUES ($1)\0\0\1\0\0\0\x17")
INSERT = message(b"B", b"\0i\0" + bytes(9000)) + message(b"E", b"\0\0\0\0\0")
COMMIT = message(b"B", b"\0c\0\0\0\0\0\0\0") + message(b"E", b"\0\0\0\0\0") + message(b"S", b"")


class StatementsTest(unittest.TestCase):
    def find(self, pieces, wanted):
        """The place in all pieces together, and the text."""
        statements, passed = Statements(), 0
        for piece in pieces:
            at, text = statements.find(piece, wanted)
            if text is not None:
                return passed + at, text
            passed += len(piece)
        return None

    def test_a_prepared_commit_is_found_where_it_is_bound(self):
        self.assertEqual((len(PARSED + INSERT), "COMMIT"), self.find([PARSED + INSERT + COMMIT], ["COMMIT"]))

    def test_it_is_found_wherever_the_bytes_are_divided(self):
        sent = PARSED + INSERT + COMMIT
        wanted = len(PARSED + INSERT)
        for cut in (*range(1, len(PARSED) + 40), *range(wanted - 30, len(sent))):
            at, text = self.find([sent[:cut], sent[cut:]], ["COMMIT"])
            # What was passed on already cannot be taken back: then it is the end of that.
            self.assertEqual(("COMMIT", True), (text, wanted <= at <= max(wanted, cut)), cut)

    def test_parsing_alone_runs_nothing(self):
        self.assertIsNone(self.find([PARSED], ["COMMIT", "INSERT"]))

    def test_a_simple_query_is_found_by_its_beginning(self):
        query = message(b"Q", b" COMMIT;\0")
        self.assertEqual((0, "COMMIT"), self.find([query], ["COMMIT"]))
        self.assertIsNone(self.find([message(b"Q", b"SELECT 'COMMIT'\0"), query], ["ROLLBACK"]))


class EvidenceTest(unittest.TestCase):
    def test_the_lines_that_count_are_known(self):
        for pattern, line in (
                (FENCED, "2026-11-30T15:47:52.098Z warning outbox-relay relay.fenced lane=4 seq=157 another relay has moved the lane"),
                (FENCED, "2026-11-30T15:47:52.098Z warning onceward-consumer consumer.fenced topic=t partition=4 somebody else took it"),
                (FENCED, "2026-11-30T16:47:28.058Z warning outbox-relay relay.lease_lost kind=none code=\"\""),
                (FENCED, "2026-11-30T15:48:07.922Z info onceward-consumer consumer.lost partitions=3 nothing of them is applied any more"),
                (REFUSED, "2026-11-30T15:47:52.098Z warning outbox-relay relay.fenced lane=4 seq=157 another relay has moved the lane"),
                (UNKNOWN, "2026-11-30T15:46:51.536Z warning onceward-producer producer.commit_unknown calls=1 kind=transient"),
                (REWOUND, "2026-11-30T15:47:12.675Z info onceward-consumer consumer.rewound topic=t partition=4 offset=15 an operator"),
                (STOPPED, "2026-11-30T15:48:13.088Z error onceward-consumer consumer.partition_stopped topic=t partition=0 offset=20 "
                          "kind=permanent code=record_differs the record at offset 19 is not the one; last verified offset: 19; rewind"),
                (CUT_BATCH, "2026-11-30 15:46:51.1 UTC [77] onceward_consumer@d LOG:  unexpected EOF on client connection with an open transaction")):
            with self.subTest(line):
                self.assertTrue(pattern.search(line))
        self.assertFalse(FENCED.search("relay.session_ended kind=transient we were not relay_fenced"))

    def test_progress_counts_each_piece_of_the_load_once(self):
        progress = kill.Progress("/nonexistent", 4)
        for line in ('{"call":"submit","number":7,"status":200}', '{"call":"submit","number":7,"again":true}', '{"call":"put","number":8}',
                     '{"call":"publish","number":7,"outcome":"committed"}'):
            progress._take(line)
        self.assertEqual(0.5, progress())


class PlanTest(unittest.TestCase):
    def test_a_full_run_kills_sixty_times_and_a_short_one_leaves_nothing_out(self):
        full, short = kill_chaos.counts_for(20000), kill_chaos.counts_for(100)
        self.assertGreaterEqual(sum(count for name, count in full.items() if name.startswith("kill_") and name != "kill_broker"), 60)
        self.assertEqual({"restore_stopped"}, {name for name, count in short.items() if count == 0})


if __name__ == "__main__":
    unittest.main()
