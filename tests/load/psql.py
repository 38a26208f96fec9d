# SPDX-License-Identifier: Apache-2.0
"""Postgres through psql, so that nothing of the code under test stands between."""

import json
import os
import subprocess

COMMAND = ("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1")


class PsqlError(Exception):
    """psql failed; the text is what it said."""


def _environment():
    return dict(os.environ, PGTZ="UTC", PGCLIENTENCODING="UTF8", PGOPTIONS="-c client_min_messages=warning")


def command(conninfo, *arguments):
    return [*COMMAND, *arguments, "-d", conninfo]


def run(conninfo, sql):
    """Runs statements, each in its own transaction. Its output as text."""
    done = subprocess.run(command(conninfo), input=sql, capture_output=True, text=True, env=_environment(), check=False)
    if done.returncode != 0:
        raise PsqlError(done.stderr.strip())
    return done.stdout


def start(conninfo, script_path):
    """A psql that reads a file of statements; its output is text, a line per row."""
    return subprocess.Popen(command(conninfo, "-f", script_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=_environment())


def rows(conninfo, query):
    """The rows of a query as dicts, read in portions."""
    sql = f"SELECT row_to_json(r)::text FROM ({query}) r"
    with subprocess.Popen(command(conninfo, "-v", "FETCH_COUNT=2000", "-c", sql), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=_environment()) as process:
        for line in process.stdout:
            yield json.loads(line)
        error = process.stderr.read()
    if process.returncode != 0:
        raise PsqlError(error.strip())


def value(conninfo, query):
    """The first column of the only row as text; "" for NULL."""
    return run(conninfo, query + ";").strip("\n")


def literal(text):
    return "'" + text.replace("'", "''") + "'"
