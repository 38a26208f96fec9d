# SPDX-License-Identifier: Apache-2.0
"""Real files to send as documents: of many sizes, types and encodings, as a machine has them under /usr/share.

The same machine and seed give the same choice. A slim image of a system leaves out manuals and translations, so two
kinds of files may be few; with more missing the corpus is refused, with the packages that bring them.
"""

import hashlib
import os
import random
import shutil
from dataclasses import dataclass

SIZE_MAX = 6 * 1024 * 1024  # Under the producer's 8 MiB a document, base64 included.
KIND_FILE_COUNT_MAX = 600
KIND_FILE_COUNT_MIN = 10
POOR_KIND_COUNT_MAX = 2

# kind: (endings, none for any; media type, folders to look in, none for all; Debian package that brings such files)
KINDS = {
    "json": ((".json",), "application/json", ("iso-codes",), "iso-codes"),
    "licence": ((), "text/plain", ("common-licenses",), "base-files"),
    "image": ((".png", ".svg", ".gif", ".jpg"), "image/png", ("icons", "pixmaps"), "tango-icon-theme"),
    "compressed": ((".gz", ".jar", ".xz", ".zip"), "application/gzip", (), "manpages"),
    "translation": ((".mo",), "application/x-gettext-translation", ("locale",), "iso-codes"),
    "text": ((".txt", ".html", ".xml", ".md", ".css", ".conf", ".enc", ".lang"), "text/plain; charset=utf-8", (), "cmake-data"),
}

MEDIA_TYPES = {
    ".svg": "image/svg+xml", ".gif": "image/gif", ".jpg": "image/jpeg", ".html": "text/html", ".xml": "application/xml",
    ".md": "text/markdown", ".css": "text/css", ".enc": "application/octet-stream",
    ".jar": "application/java-archive", ".xz": "application/x-xz", ".zip": "application/zip",
}

# How often which size is taken: (bytes up to, weight). Most documents are small, a few are megabytes.
SIZE_CLASSES = ((4096, 700), (65536, 280), (524288, 17), (SIZE_MAX, 3))


class CorpusError(Exception):
    """Too few files; the text says what to install."""


@dataclass(frozen=True)
class Document:
    name: str
    media_type: str
    content: bytes

    @property
    def sha256(self):
        return hashlib.sha256(self.content).hexdigest()


def _files_under(folder):
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            yield os.path.join(parent, name)


def _size_if_usable(path):
    try:
        if os.path.islink(path) or not os.path.isfile(path) or not os.access(path, os.R_OK):
            return 0
        size = os.path.getsize(path)
    except OSError:
        return 0
    return size if size <= SIZE_MAX else 0


def _matches(path, endings):
    return not endings or os.path.splitext(path)[1] in endings


def _collect(root, endings, folders):
    """A sample of the files of one kind as (path, size); the same each time."""
    found = {}
    for folder in [os.path.join(root, name) for name in folders] or [root]:
        for path in _files_under(folder):
            size = _size_if_usable(path) if _matches(path, endings) else 0
            if size > 0:
                found[path] = size
    paths = sorted(found)
    if len(paths) > KIND_FILE_COUNT_MAX:
        paths = random.Random(root).sample(paths, KIND_FILE_COUNT_MAX)
    return [(path, found[path]) for path in paths]


class Corpus:
    """Files by size class; pick() reads one."""

    def __init__(self, root="/usr/share"):
        self.kind_counts = {}
        by_class = [{} for _ in SIZE_CLASSES]
        for kind, (endings, _, folders, _) in KINDS.items():
            files = _collect(root, endings, folders)
            self.kind_counts[kind] = len(files)
            for path, size in files:
                index = next(i for i, (size_max, _) in enumerate(SIZE_CLASSES) if size <= size_max)
                by_class[index].setdefault(kind, []).append(path)
        self._root = root
        self._by_class = by_class
        self._check(root)

    def _check(self, root):
        poor = [kind for kind, count in self.kind_counts.items() if count < KIND_FILE_COUNT_MIN]
        if len(poor) > POOR_KIND_COUNT_MAX:
            counts = ", ".join(f"{count} {kind}" for kind, count in self.kind_counts.items())
            packages = " ".join(sorted({KINDS[kind][3] for kind in poor}))
            raise CorpusError(f"too few real files under {root} ({counts}; {KIND_FILE_COUNT_MIN} of each are needed)\n"
                              f"Install them: apt-get install {packages}; if they are installed, /etc/dpkg/dpkg.cfg.d may have "
                              "kept their documentation and translations out.")

    def pick(self, rng: random.Random):
        """A document: a size class by weight, then a kind that has one, then a file."""
        classes = [i for i, kinds in enumerate(self._by_class) if kinds]
        kinds = self._by_class[rng.choices(classes, [SIZE_CLASSES[i][1] for i in classes])[0]]
        kind = rng.choice(sorted(kinds))
        path = rng.choice(kinds[kind])
        with open(path, "rb") as file:
            content = file.read()
        media_type = MEDIA_TYPES.get(os.path.splitext(path)[1], KINDS[kind][1])
        return Document(os.path.relpath(path, self._root), media_type, content)

    def sample(self, folder, kind_file_count):
        """Copies some files of each kind into a folder, which then is a corpus that is faster to look through."""
        for kind in KINDS:
            paths = sorted(path for kinds in self._by_class for path in kinds.get(kind, []))
            for path in random.Random(kind).sample(paths, min(len(paths), kind_file_count)):
                copy = os.path.join(folder, os.path.relpath(path, self._root))
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copyfile(path, copy)
