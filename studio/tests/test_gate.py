"""Nobody comes in but the browser that was let in: other machines, other sites, other names, used tokens."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.browser import Browser

from house import SECONDS, House, visiting
from noren_studio.server import redirect_page


class Answer:
    """An answer, read to its end."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.getheader = answer.getheader
        self.body = b"" if answer.status == 101 else answer.read()


def ask(house: House, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", house.port, timeout=SECONDS)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in ({"Host": f"127.0.0.1:{house.port}"} | dict(headers or {})).items():
            connection.putheader(name, value)
        connection.endheaders()
        with connection.getresponse() as answer:
            return Answer(answer)
    finally:
        connection.close()


def let_in(house: House, address: str | None = None) -> str:
    """A cookie for a one-time address."""
    found = urlsplit(address or house.invite())
    answer = ask(house, f"{found.path}?{found.query}")
    assert answer.status == 303
    cookie = answer.getheader("Set-Cookie")
    assert cookie is not None
    return cookie


def test_a_token_is_exchanged_once_for_a_cookie_that_scripts_and_other_sites_do_not_get(house: House) -> None:
    address = house.invite()
    cookie = let_in(house, address)
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    found = urlsplit(address)
    again = ask(house, f"{found.path}?{found.query}")
    assert again.status == 403
    assert again.getheader("Set-Cookie") is None


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/?token=", "/table", "/_nicegui_ws/socket.io/", "/framed/x"])
def test_without_a_cookie_there_is_no_answer(house: House, path: str) -> None:
    answer = ask(house, path)
    assert answer.status == 403
    assert b"<" not in answer.body


def test_with_the_cookie_pages_come_in_a_closed_house(house: House) -> None:
    answer = ask(house, "/table", {"Cookie": let_in(house)})
    body = answer.body.decode()
    assert answer.status == 200
    policy = answer.getheader("Content-Security-Policy") or ""
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    script = policy.partition("script-src")[2].partition(";")[0]
    assert "'nonce-" in script
    assert "unsafe-inline" not in script
    assert answer.getheader("X-Frame-Options") == "DENY"
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Cache-Control") == "no-store"
    assert "http://" not in body.replace("http://www.w3.org", "")
    assert "https://" not in body


STRANGE = [
    {"Host": "evil.example"},
    {"Host": "evil.example:80"},
    {"Host": "127.0.0.1"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", STRANGE, ids=str)
def test_a_foreign_host_or_origin_is_refused_even_with_the_cookie(house: House, headers: dict[str, str]) -> None:
    cookie = let_in(house)
    assert ask(house, "/table", {"Cookie": cookie}).status == 200
    assert ask(house, "/table", {"Cookie": cookie} | headers).status in (403, 421)


def test_a_foreign_page_does_not_use_up_a_token(house: House) -> None:
    address = house.invite()
    found = urlsplit(address)
    assert ask(house, f"{found.path}?{found.query}", {"Sec-Fetch-Site": "cross-site"}).status == 403
    let_in(house, address)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(house: House, method: str) -> None:
    assert ask(house, "/table", {"Cookie": let_in(house)}, method).status == 405


def test_a_change_must_say_where_it_comes_from(house: House) -> None:
    cookie = let_in(house)
    assert ask(house, "/_nicegui/client/x/upload/1", {"Cookie": cookie, "Content-Length": "0"}, "POST").status == 403


def socket_status(house: House, path: str, headers: Mapping[str, str]) -> int:
    fixed = {
        "Host": f"127.0.0.1:{house.port}", "Upgrade": "websocket", "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13",
    }  # fmt: skip
    return ask(house, path, fixed | dict(headers)).status


def client_of(house: House, cookie: str) -> str:
    """The page that a browser with this cookie gets, as its socket names it."""
    body = ask(house, "/table", {"Cookie": cookie}).body.decode()
    return (
        body.partition("'client_id': '")[2].partition("'")[0] or body.partition('"client_id": "')[2].partition('"')[0]
    )


def test_a_socket_needs_cookie_origin_and_a_page_of_its_own_session(house: House) -> None:
    cookie, other = let_in(house), let_in(house)
    client = client_of(house, cookie)
    assert len(client) == 36
    path = f"/_nicegui_ws/socket.io/?EIO=4&transport=websocket&client_id={client}"
    own = {"Origin": house.base, "Cookie": cookie}
    assert socket_status(house, path, own) == 101
    assert socket_status(house, path, {"Origin": house.base}) == 403
    assert socket_status(house, path, {"Cookie": cookie}) == 403
    assert socket_status(house, path, own | {"Origin": "http://evil.example"}) == 403
    assert socket_status(house, path, own | {"Host": f"evil.example:{house.port}"}) in (403, 421)
    assert socket_status(house, path, own | {"Cookie": other}) == 403
    assert socket_status(house, path.partition("&client_id")[0], own) == 403


def test_only_the_loopback_interface_listens(house: House) -> None:
    """Any other address of this machine has nobody at the port."""
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    others |= {"127.0.0.2"}
    for address in others:
        with socket.socket() as probe:
            probe.settimeout(20)
            assert probe.connect_ex((str(address), house.port)) != 0


def test_nothing_is_left_behind_and_the_log_says_nothing(tmp_path: Path) -> None:
    """In a place for temporary files of its own: other studios may begin and end at the same time."""
    house = House(temporary=tmp_path)
    made = list(tmp_path.glob("noren-studio-*"))
    assert len(made) == 1
    assert made[0].stat().st_mode & 0o077 == 0
    ask(house, "/table", {"Cookie": let_in(house)})
    house.end()
    assert list(tmp_path.glob("noren-*")) == []
    assert all("Noren Studio" in line or "one browser" in line for line in house.log)


def test_a_browser_is_started_with_a_file_that_its_owner_alone_reads(
    browser: Browser, house: House, tmp_path: Path
) -> None:
    """What a program is started with, every user of the machine reads. The page in between says and changes nothing."""
    address = house.invite()
    page = redirect_page(tmp_path / "open.html", address)
    assert page.stat().st_mode & 0o777 == 0o600
    between = ask(house, "/enter", {"Sec-Fetch-Site": "cross-site"})
    assert (between.status, between.getheader("Set-Cookie")) == (200, None)
    with visiting(browser, house, page.as_uri()) as visit:
        assert visit.page.url == f"{house.base}/"
        assert address.partition("=")[2] not in visit.page.content()
    found = urlsplit(address)
    assert ask(house, f"{found.path}?{found.query}").status == 403
