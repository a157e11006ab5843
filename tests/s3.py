"""A small object store on this machine, as much of Amazon's S3 as PyArrow asks for: for tests of places in stores.

It keeps objects in memory, by name, and knows no folders, no renaming and no locks: what a store cannot do, it cannot.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
"""What must stand in the environment of whoever asks; any key will do."""
WHEN = "Wed, 01 Jan 2025 00:00:00 GMT"


class Store(ThreadingHTTPServer):
    """Objects by "bucket/name", and parts of those that are still being sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}
        self.sent: dict[str, dict[int, bytes]] = {}
        self.numbers = itertools.count()
        self.refused: str | None = None
        """Names that hold this are not written."""

    def address(self, path: str) -> str:
        port = self.server_address[1]
        return f"s3://bucket/{path}?scheme=http&endpoint_override=127.0.0.1:{port}&region=us-east-1"

    def names(self, path: str = "") -> list[str]:
        """The objects below a path, without marks of folders."""
        return sorted(
            n.removeprefix(f"bucket/{path}") for n in self.objects if n.startswith(f"bucket/{path}") and n[-1] != "/"
        )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""

    def parsed(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return unquote(parts.path).lstrip("/"), query

    def answer(self, code: int, body: bytes = b"", length: int | None = None, **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def xml(self, text: str, code: int = 200) -> None:
        self.answer(code, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode(), Content_Type="application/xml")

    def missing(self) -> None:
        self.xml("<Error><Code>NoSuchKey</Code><Message>none</Message></Error>", 404)

    def body(self) -> bytes:
        length, chunked = self.headers.get("Content-Length"), self.headers.get("Transfer-Encoding") == "chunked"
        data = unchunked(self.rfile) if chunked else self.rfile.read(int(length or 0))
        # the signed pieces of Amazon's own, which end with a checksum
        signed = "aws-chunked" in self.headers.get("Content-Encoding", "")
        return unchunked(io.BytesIO(data)) if signed else data

    def do_HEAD(self) -> None:
        name, _ = self.parsed()
        if "/" not in name.rstrip("/"):
            self.answer(200, x_amz_bucket_region="us-east-1")
        elif name in self.server.objects:
            self.described(self.server.objects[name])
        else:
            self.answer(404)

    def described(self, data: bytes) -> None:
        self.answer(200, b"", len(data), ETag=f'"{hashlib.md5(data).hexdigest()}"', Last_Modified=WHEN)

    def do_GET(self) -> None:
        name, query = self.parsed()
        if "list-type" in query:
            self.listed(name.strip("/"), query)
            return
        data = self.server.objects.get(name)
        if data is None:
            self.missing()
            return
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if found is None:
            self.answer(200, data, Last_Modified=WHEN)
            return
        start, stop = int(found[1]), min(int(found[2] or len(data) - 1), len(data) - 1)
        self.answer(206, data[start : stop + 1], Content_Range=f"bytes {start}-{stop}/{len(data)}", Last_Modified=WHEN)

    def listed(self, bucket: str, query: dict[str, str]) -> None:
        prefix, mark, most = query.get("prefix", ""), query.get("delimiter", ""), int(query.get("max-keys", 1000))
        found, folders = [], []
        for whole, data in sorted(self.server.objects.items()):
            name = whole.removeprefix(f"{bucket}/")
            if not name.startswith(prefix) or whole == name:
                continue
            rest = name[len(prefix) :]
            if mark and mark in rest:
                folders.append(prefix + rest.partition(mark)[0] + mark)
            else:
                found.append((name, len(data)))
        text = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size><LastModified>2025-01-01T00:00:00.000Z</LastModified>"
            "<ETag>x</ETag></Contents>"
            for name, size in found[:most]
        )
        text += "".join(
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in dict.fromkeys(folders)
        )
        count = len(found[:most]) + len(set(folders))
        head = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{count}</KeyCount>"
        self.xml(f"<ListBucketResult>{head}<IsTruncated>false</IsTruncated>{text}</ListBucketResult>")

    def do_PUT(self) -> None:
        (name, query), data = self.parsed(), self.body()
        if self.server.refused is not None and self.server.refused in name:
            self.xml("<Error><Code>AccessDenied</Code><Message>no</Message></Error>", 403)
        elif "uploadId" in query:
            self.server.sent[query["uploadId"]][int(query["partNumber"])] = data
            self.answer(200, ETag=f'"{hashlib.md5(data).hexdigest()}"')
        elif source := self.headers.get("x-amz-copy-source"):
            self.server.objects[name] = self.server.objects[unquote(source).lstrip("/")]
            self.xml(
                "<CopyObjectResult><ETag>x</ETag><LastModified>2025-01-01T00:00:00.000Z</LastModified></CopyObjectResult>"
            )
        else:
            self.server.objects[name] = data
            self.answer(200, ETag=f'"{hashlib.md5(data).hexdigest()}"')

    def do_POST(self) -> None:
        (name, query), data = self.parsed(), self.body()
        if "uploads" in query:
            number = str(next(self.server.numbers))
            self.server.sent[number] = {}
            bucket, _, key = name.partition("/")
            text = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{number}</UploadId>"
            self.xml(f"<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>")
        elif "uploadId" in query:
            parts = self.server.sent.pop(query["uploadId"])
            self.server.objects[name] = b"".join(part for _, part in sorted(parts.items()))
            self.xml("<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
        else:
            keys = re.findall(r"<Key>(.*?)</Key>", data.decode())
            for key in keys:
                self.server.objects.pop(f"{name.strip('/')}/{key}", None)
            self.xml("<DeleteResult>" + "".join(f"<Deleted><Key>{k}</Key></Deleted>" for k in keys) + "</DeleteResult>")

    def do_DELETE(self) -> None:
        name, query = self.parsed()
        if "uploadId" in query:
            self.server.sent.pop(query["uploadId"], None)
        else:
            self.server.objects.pop(name, None)
        self.answer(204)


def unchunked(stream: Any) -> bytes:
    """Pieces with their sizes before them, up to one of no size; what follows it is read and left."""
    out = b""
    while size := int(stream.readline().split(b";")[0], 16):
        out += stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass
    return out


@contextmanager
def running() -> Iterator[Store]:
    """A store that answers until the end."""
    with Store() as store:
        thread = threading.Thread(target=store.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield store
        finally:
            store.shutdown()
            thread.join()
