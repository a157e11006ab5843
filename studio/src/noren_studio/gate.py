"""Access control: a browser needs a one-time address before it gets anything of a session.

Every request and every socket must name this server in Host, come from a page of this server if it says where it comes
from, and carry the cookie for which a one-time token was exchanged. So neither another machine, nor a page of another
site in the same browser, nor a name that was bound anew to this address (DNS rebinding) gets an answer.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from noren_studio import texts
from noren_studio.session import Sessions

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost")
METHODS = ("GET", "HEAD", "POST")
SOCKET = "/_nicegui_ws/"
CLIENTS = "/_nicegui/client/"
ENTRY = "/enter"
"""A page that exchanges the token behind its #: what comes from a file would be taken for a page of another site."""
ENTER = '<!doctype html><script>location.replace("/?token=" + encodeURIComponent(location.hash.slice(1)))</script>'
ALONE = "default-src 'none'; script-src 'unsafe-inline'; frame-ancestors 'none'"
FRAMED = "/framed/"
"""Pages that stand inside one of ours, without any right: reports."""

OWN = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Vue compiles templates in the browser, hence eval; a script that data smuggled into a page has no nonce."""
INSIDE = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data:; frame-ancestors 'self'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-dns-prefetch-control": "off",
}


class Gate:
    """The access check: an ASGI application around that of the pages."""

    def __init__(self, inside: App, sessions: Sessions, port: int, owner: Callable[[str], str | None]) -> None:
        self.inside = inside
        self.sessions = sessions
        self.hosts = frozenset(f"{name}:{port}" for name in LOOPBACK)
        self.port = port
        self.cookie = f"noren-studio-{port}"  # cookies do not tell ports apart
        self.owner = owner
        self._tokens: set[str] = set()

    def invite(self) -> str:
        """Return an address that lets one browser in, once."""
        token = secrets.token_urlsafe(32)
        self._tokens.add(token)
        return f"http://{LOOPBACK[0]}:{self.port}/?token={token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.inside(scope, receive, send)
            return
        headers = _headers(scope)
        status = self.refused(scope, headers)
        if status:
            await self._refuse(scope, send, status)
        elif scope["type"] == "http" and scope["path"] == ENTRY:
            await _answer(
                send, 200, ENTER.encode(), [("content-type", "text/html"), ("content-security-policy", ALONE)]
            )
        elif scope["type"] == "http" and scope["path"] == "/" and b"token=" in scope["query_string"]:
            await self._exchange(scope, send)
        elif (session := self.session_of(headers)) is None or not self._own(scope, session):
            await self._refuse(scope, send, 403)
        elif scope["type"] == "websocket":
            await self.inside(scope, receive, send)
        else:
            scope.setdefault("state", {})["noren_session"] = session
            await self.inside(scope, receive, Answer(scope["path"], send))

    def refused(self, scope: Scope, headers: MutableMapping[str, list[str]]) -> int:
        """Return the status of the answer to a forbidden request, or 0."""
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 421
        if scope["type"] == "http" and scope["method"] not in METHODS:
            return 405
        origins = headers.get("origin", [])
        changes = scope["type"] == "websocket" or scope["method"] == "POST"
        if (changes and not origins) or any(origin != f"http://{hosts[0].lower()}" for origin in origins):
            return 403
        sites = headers.get("sec-fetch-site", [])
        if scope["path"] == ENTRY:  # it says nothing and changes nothing, also where a file leads to it
            return 0
        return 403 if any(site not in ("same-origin", "none") for site in sites) else 0

    def session_of(self, headers: MutableMapping[str, list[str]]) -> str | None:
        """Return the session of the request's cookie."""
        for line in headers.get("cookie", []):
            try:
                found = SimpleCookie(line).get(self.cookie)
            except CookieError:
                continue
            if found is not None and self.sessions.get(found.value) is not None:
                return found.value
        return None

    def _own(self, scope: Scope, session: str) -> bool:
        """Return whether the page of a socket or an upload belongs to this session."""
        path = scope["path"]
        if path.startswith(SOCKET):
            asked = parse_qs(scope["query_string"].decode("latin-1")).get("client_id", [])
            return len(asked) == 1 and self.owner(asked[0]) == session
        if path.startswith(CLIENTS):
            return self.owner(path.removeprefix(CLIENTS).partition("/")[0]) == session
        return True

    async def _exchange(self, scope: Scope, send: Send) -> None:
        """Exchange a token for a cookie; the token is then invalid and leaves the address bar."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        known = next((one for one in self._tokens if hmac.compare_digest(one.encode(), given.encode())), None)
        if known is None or scope["method"] != "GET":
            await self._refuse(scope, send, 403)
            return
        self._tokens.discard(known)
        session = self.sessions.begin()
        cookie = f"{self.cookie}={session.id}; HttpOnly; SameSite=Strict; Path=/"
        await _answer(send, 303, b"", [("location", session.first), ("set-cookie", cookie)])

    async def _refuse(self, scope: Scope, send: Send, status: int) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        await _answer(send, status, texts.REFUSED.encode(), [])


class Answer:
    """Adds security headers to an answer, and to a page the nonce of its scripts."""

    def __init__(self, path: str, send: Send) -> None:
        self.path = path
        self.send = send
        self.nonce = secrets.token_urlsafe(16)
        self._start: MutableMapping[str, Any] | None = None
        self._body: list[bytes] = []

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            framed = self.path.startswith(FRAMED)
            policy = INSIDE if framed else OWN.format(nonce=self.nonce)
            more = HEADERS | {"content-security-policy": policy, "x-frame-options": "SAMEORIGIN" if framed else "DENY"}
            given = [(name.lower(), value) for name, value in message["headers"]]
            page = any(name == b"content-type" and value.startswith(b"text/html") for name, value in given)
            if page:
                more["cache-control"] = "no-store"
            kept = [(name, value) for name, value in given if name.decode("latin-1") not in more]
            message["headers"] = [*kept, *((n.encode(), v.encode()) for n, v in more.items())]
            if page and not framed:
                self._start = message
                return
            await self.send(message)
        elif self._start is not None and message["type"] == "http.response.body":
            self._body.append(message.get("body", b""))
            if not message.get("more_body"):
                await self._page()
        else:
            await self.send(message)

    async def _page(self) -> None:
        """Send the whole page at once, with the nonce in the scripts of the template."""
        assert self._start is not None
        body = b"".join(self._body).replace(b"<script", f'<script nonce="{self.nonce}"'.encode())
        kept = [(name, value) for name, value in self._start["headers"] if name.lower() != b"content-length"]
        self._start["headers"] = [*kept, (b"content-length", str(len(body)).encode())]
        await self.send(self._start)
        await self.send({"type": "http.response.body", "body": body})


async def _answer(send: Send, status: int, body: bytes, more: Iterable[tuple[str, str]]) -> None:
    fixed = HEADERS | {
        "content-type": "text/plain; charset=utf-8",
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "x-frame-options": "DENY",
    }
    headers = [(name.encode(), value.encode()) for name, value in (fixed | dict(more)).items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _headers(scope: Scope) -> MutableMapping[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        out.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return out
