"""PostgreSQL: tables, views and queries as sources, and connections for releases in a database.

An address is a libpq URI with one parameter of ours: `postgresql://host/base?table=schema.name`. Passwords come from
the URI, the environment or the pass file, as libpq knows them; no message ever shows more of an address than its host,
its base and the table.
"""

from __future__ import annotations

import re
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from noren.errors import DataError
from noren.sources.arrow import blank
from noren.sources.source import ADDRESSES, BATCH_ROWS, Writing, check_columns

INSTALL = "pip install 'noren[postgres]'"
OURS = ("table", "query", "schema")
"""Parameters of an address that are not libpq's."""
AS_THEY_ARE = frozenset(
    [
        "bool",
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "text",
        "varchar",
        "date",
        "timestamp",
        "timestamptz",
    ]  # Arrow has the same
)
ARRAY = "[]"
"""What an array of any type is called here: names of types that begin with _ need not be arrays."""
ONE_READER = (
    "synchronize_seqscans = off",
    "max_parallel_workers_per_gather = 0",
    "enable_indexscan = off",
    "enable_indexonlyscan = off",
    "enable_bitmapscan = off",
)
"""So that every pass meets the rows of a table in the same order."""
AT_ONCE = 2048
"""Blocks of a table that are asked for at once: 16 MB."""
READERS = 2
_PART = r'("(?:[^"]|"")+"|[^."]+)'
NAME = re.compile(rf"(?:{_PART}\.)?{_PART}")
ROLE = re.compile(r"\bnoren:\s*([a-z-]+)", re.IGNORECASE)
"""What a comment on a column may say to `noren init`: `noren: identifier`."""


@dataclass(frozen=True)
class Address:
    """A parsed URI: the part for libpq, and the table or query."""

    uri: str
    shown: str
    table: str | None = None
    query: str | None = None
    schema: str | None = None

    @classmethod
    def parse(cls, text: str) -> Address:
        try:
            parts = urlsplit(text)
            pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
            host, base = parts.hostname or dict(pairs).get("host") or "localhost", parts.path.strip("/")
            if "@" in parts.path or parts.port == 0:  # what was meant as a password holds a slash
                raise ValueError
        except ValueError:
            raise DataError("this is not an address of PostgreSQL.", hint=f"{ADDRESSES} {_EXAMPLE}") from None
        ours = {name: value for name, value in pairs if name in OURS}
        rest = urlencode([(name, value) for name, value in pairs if name not in OURS], quote_via=quote)
        uri = urlunsplit((parts.scheme, parts.netloc, parts.path, rest, ""))
        return cls(uri, f"postgresql://{host}/{base}", **ours)

    @property
    def name(self) -> str:
        """Return the name for messages, without user and password."""
        what = self.table or self.schema or ("a query" if self.query else "")
        return f"{self.shown} ({what})" if what else self.shown


_EXAMPLE = 'For example "postgresql://localhost/hospital?table=public.visits".'


class Refused(DataError):
    """The server refused a statement. Its message may quote cells or the password, so only the code is kept."""

    def __init__(self, address: Address, state: str | None) -> None:
        self.state = state or ""
        why, hint = _STATES.get(
            self.state,
            _STATES.get(self.state[:2], ("the server could not answer", "Try the table or the query in psql.")),
        )
        super().__init__(f"{address.name}: {why}{f' (SQLSTATE {self.state})' if state else ''}.", hint=hint or None)


_STATES = {
    "28": ("the server refused this user", "Check user and password; a pass file or PGPASSWORD works too."),
    "3D000": ("there is no such database", "Check the name after the host."),
    "42P01": ("there is no such table", "Write it as schema.name, in its exact case."),
    "3F000": ("there is no such schema", "Write it in its exact case."),
    "42501": ("this user lacks a right", "Ask for the missing right, or use another user."),
    "42601": ("the query is not valid SQL", "Try it in psql."),
    "42703": ("there is no such column", "Try the query in psql."),
    "57014": ("the statement was cancelled", "Raise statement_timeout for this user."),
    "53": ("the server ran out of memory, disk or connections", "Ask its administrator."),
    "72000": ("the snapshot is too old", "Try again while fewer changes are written."),
    "22021": ("a text holds a character that the database cannot store, such as NUL", "Remove it from the table."),
    "22P05": ("a text holds a character that the database cannot store, such as NUL", "Remove it from the table."),
    "22": ("a value cannot be converted as the query requires", "Try the query in psql."),
}


def driver() -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ModuleNotFoundError:
        raise DataError("PostgreSQL needs a package that is not installed.", hint=f"{INSTALL}.") from None
    return dbapi


@contextmanager
def translate_errors(address: Address) -> Iterator[None]:
    """Turn errors of the driver into errors that quote nothing."""
    import pyarrow as pa
    from adbc_driver_manager import Error

    try:
        yield
    except Error as error:
        raise Refused(address, error.sqlstate) from None
    except MemoryError:  # of Arrow too
        raise
    except (pa.ArrowException, OSError):  # while rows are streamed, faults come through Arrow
        raise Refused(address, None) from None


def connect(address: Address) -> Any:
    """Open a connection in autocommit mode."""
    from adbc_driver_manager import Error

    try:
        return driver().connect(address.uri, autocommit=True)
    except Error as error:
        if error.sqlstate:
            raise Refused(address, error.sqlstate) from None
        hint = "Check that the server runs and that host, port, user and database are right; try the address with psql."
        raise DataError(f"{address.name}: no connection.", hint=hint) from None


class Connection:
    """One connection, whose errors contain no cells and passwords."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connection = connect(address)
        self.close = weakref.finalize(self, self._connection.close)
        """Ends it; so does nobody holding it."""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, statement: str) -> None:
        with translate_errors(self.address), self._connection.cursor() as cursor:
            cursor.execute(statement)

    def rows(self, statement: str, *values: Any) -> list[tuple]:
        with translate_errors(self.address), self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            found: list[tuple] = cursor.fetchall()
            return found

    def batches(self, statement: str) -> Iterator[Any]:
        """Yield the answer as Arrow batches."""
        with translate_errors(self.address), self._connection.cursor() as cursor:
            cursor.execute(statement)
            yield from cursor.fetch_record_batch()

    def ingest(self, table: str, batches: Any, schema: str) -> int:
        """Append Arrow batches to a table by COPY."""
        with translate_errors(self.address), self._connection.cursor() as cursor:
            return int(cursor.adbc_ingest(table, batches, mode="append", db_schema_name=schema))


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """Return a text as an SQL literal, whatever the server's settings for backslashes."""
    return "E'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def split_name(table: str) -> tuple[str | None, str]:
    """Return schema and name of a table in an address; quotes permit dots in either."""
    found = NAME.fullmatch(table)
    if found is None:
        raise DataError("this is not the name of a table.", hint="Write it as schema.name.")
    names = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in found.groups() if part]
    return (None, names[0]) if len(names) == 1 else (names[0], names[1])


class PostgresSource:
    """A table, a view or a query. All passes read the same snapshot."""

    notes: tuple[str, ...] = ()

    def __init__(self, address: Address, missing_values: Sequence[str] = ()) -> None:
        if (address.table is None) == (address.query is None):
            raise DataError(f"{address.name}: which table?", hint=f"Give one table, or a query. {_EXAMPLE}")
        self.address = address
        self.name = address.name
        self.missing_values = missing_values
        self._held = Connection(address)  # keeps the snapshot alive as long as this source is
        self._held.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._from, self._plain, self._blocks = self._resolve_address()
        described = self._describe_columns()
        self.columns = check_columns([name for name, _, _ in described], self.name)
        self._types = {name: kind for name, kind, _ in described}
        self._comments = {name: comment for name, _, comment in described if comment}
        self._snapshot = self._held.rows("SELECT pg_export_snapshot()")[0][0]

    def _resolve_address(self) -> tuple[str, bool, int]:
        """Return what to select from, whether it is a table, whether its rows have a fixed order, and its blocks."""
        if self.address.query is not None:
            return f"({self.address.query.strip().rstrip(';')}\n)", False, 0
        schema, name = split_name(self.address.table or "")
        full = quote_name(name) if schema is None else f"{quote_name(schema)}.{quote_name(name)}"
        found = self._held.rows(
            "SELECT relkind, CASE WHEN relkind IN ('r', 'm') THEN pg_relation_size(oid) / "
            "current_setting('block_size')::int8 ELSE 0 END FROM pg_class WHERE oid = to_regclass($1)",
            full,
        )
        if not found:
            raise Refused(self.address, "42P01")
        return full, found[0][0] in ("r", "p", "m"), int(found[0][1])

    def _describe_columns(self) -> list[tuple[str, str, str | None]]:
        """Return name, type and comment of every column."""
        if self.address.query is None:
            regclass = quote_text(self._from)
            return self._held.rows(
                f"SELECT a.attname::text, CASE WHEN t.typcategory = 'A' THEN '{ARRAY}' "
                "WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname::text ELSE '' END, "
                "col_description(a.attrelid, a.attnum::int) "
                "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
                f"WHERE a.attrelid = to_regclass({regclass}) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
            )
        with translate_errors(self.address), self._held._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._from} AS q LIMIT 0")
            schema = cursor.fetch_record_batch().schema
        return [(field.name, _type_of(field), None) for field in schema]

    @cached_property
    def rows(self) -> int | None:
        return int(self._held.rows(f"SELECT count(*) FROM {self._from} AS q")[0][0])

    @property
    def hints(self) -> Mapping[str, str]:
        """Return the roles in comments on columns: `noren: identifier`."""
        found = {name: ROLE.search(comment) for name, comment in self._comments.items()}
        return {name: match[1].lower() for name, match in found.items() if match}

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        wanted = ", ".join(f"{self._read(name)} AS {quote_name(name)}" for name in columns) or "1"
        query = f"SELECT {wanted} FROM {self._from} AS q"
        if self._blocks > AT_ONCE:
            parts = self._in_lots(query)
        else:
            order = (
                "" if self._plain else ' ORDER BY ROW(q.*)::text COLLATE "C"'
            )  # rows that are equal may change places
            parts = self.read(query + order, ONE_READER if self._plain else ())
        for part in parts:
            for start in range(0, part.num_rows, BATCH_ROWS):
                yield _encode_texts(blank(part.slice(start, BATCH_ROWS), self.missing_values))

    def _in_lots(self, query: str) -> Iterator[Any]:
        """Yield the rows of a table in the order of its blocks, with two readers."""
        starts = iter(range(0, self._blocks, AT_ONCE))
        with ExitStack() as stack:
            readers = [stack.enter_context(self.reader(ONE_READER)) for _ in range(READERS)]
            pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in readers]
            waiting: deque[Any] = deque()
            for turn, start in enumerate(starts):
                waiting.append(pools[turn % READERS].submit(self._lot, readers[turn % READERS], query, start))
                if len(waiting) > READERS:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()

    def _lot(self, reader: Connection, query: str, start: int) -> list[Any]:
        """Return the rows of some blocks; of the last ones all that follow."""
        upper = f" AND q.ctid < '({start + AT_ONCE},0)'" if start + AT_ONCE < self._blocks else ""
        return [_bare(part) for part in reader.batches(f"{query} WHERE q.ctid >= '({start},0)'{upper}")]

    def read(self, query: str, settings: Sequence[str] = ()) -> Iterator[Any]:
        """Return the answer to a query on the same snapshot."""
        with self.reader(settings) as reader:
            for part in reader.batches(query):
                yield _bare(part)

    @contextmanager
    def reader(self, settings: Sequence[str]) -> Iterator[Connection]:
        """Open a connection on the same snapshot."""
        with Connection(self.address) as reader:
            reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            reader.run(f"SET TRANSACTION SNAPSHOT {quote_text(self._snapshot)}")
            for setting in settings:
                reader.run(f"SET LOCAL {setting}")
            yield reader

    def _read(self, name: str) -> str:
        """Return a column in a form for Arrow: other types as text, arrays as arrays of texts."""
        kind, column = self._types[name], f"q.{quote_name(name)}"
        if kind in AS_THEY_ARE:
            return column
        return f"{column}::text[]" if kind == ARRAY else f"{column}::text"


def _encode_texts(batch: Any) -> Any:
    """Return the batch with every text once, as files are read."""
    import pyarrow as pa

    if not any(pa.types.is_string(kind) for kind in batch.schema.types):
        return batch
    arrays = [one.dictionary_encode() if pa.types.is_string(one.type) else one for one in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def _type_of(field: Any) -> str:
    import pyarrow as pa

    if pa.types.is_list(field.type):
        return ARRAY
    told = (field.metadata or {}).get(b"POSTGRESQL:type", b"")
    return str(told.decode("utf-8", errors="replace"))


def _bare(batch: Any) -> Any:
    """Return the batch without the driver's metadata about its columns."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(batch.columns, batch.schema.names)


def open_postgres(place: str, writing: Writing) -> PostgresSource:
    """Open a table, view or query of a PostgreSQL database."""
    return PostgresSource(Address.parse(place), writing.missing_values)
