"""Each row of the table of threats: what is not the studio's own window is refused."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from minigpt.studio import answers
from minigpt.studio.tickets import Tickets
from minigpt.studio.workspace import Workspace, is_one_name, safe_name

from ..hostile import STRANGE_HOSTS, UNSAFE_NAMES
from .conftest import HOST, PORT, Window

OTHER_HOSTS = [
    None,
    "localhost",
    "localhost:80",
    f"localhost:{PORT}.evil.example",
    *(f"{host}:{PORT}" for host in STRANGE_HOSTS),
]


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_a_request_to_another_host_is_refused_everywhere(window: Window, host: str | None) -> None:
    for path in ("/", "/static/studio/window/index.html", "/api/token"):
        assert window.get(path, host=host).status == 403
    assert window.post("/api/token", host=host, origin=None).status == 403


def test_at_port_80_which_browsers_leave_out_the_studio_is_reached(window: Window) -> None:
    at_80 = Window(window.studio, port=80)
    entered = at_80.enter(window.studio.logins.token)
    assert entered.status == 200
    assert entered.headers["set-cookie"].startswith("minigpt-studio-80=")
    assert at_80.get("/api/state").status == 200
    assert at_80.get("/api/state", host="evil.example").status == 403


def test_what_is_sent_may_say_its_encoding(window: Window) -> None:
    assert window.post("/api/token", content_type="application/json; charset=utf-8").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "x"])
def test_another_origin_is_refused(window: Window, origin: str) -> None:
    assert window.post("/api/token", origin=origin).status == 403
    assert window.get("/", origin=origin).status == 403


def test_another_site_is_refused_even_where_it_sends_no_origin(window: Window) -> None:
    for site in ("cross-site", "same-site", "none"):
        assert window.post("/api/token", origin=None, sec_fetch_site=site).status == 403
    assert window.post("/api/token", sec_fetch_site="same-origin").status == 200


@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_what_a_form_can_send_is_refused(window: Window, kind: str | None) -> None:
    assert window.post("/api/token", content_type=kind).status == 415


def test_other_methods_are_refused(window: Window) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert window._run(window._send(method, "/api/token", b"", {})).status == 405


@pytest.mark.parametrize("path", ["/api/token", "/api/close", "/api/unknown"])
def test_cookie_and_key_are_both_needed(window: Window, path: str) -> None:
    cookie, key = window.login["cookie"], window.login["x-studio-key"]
    other = Window(window.studio)
    other.enter(window.studio.logins.token)

    assert window.post(path, cookie=None).status == 401
    assert window.post(path, x_studio_key=None).status == 401
    assert window.post(path, x_studio_key=key[:-1]).status == 401
    assert window.post(path, cookie=f"{cookie}x").status == 401
    assert window.post(path, x_studio_key=other.login["x-studio-key"]).status == 401
    assert window.post(path, cookie="").status == 401


def test_without_a_login_the_addresses_say_nothing_of_what_is_there(window: Window) -> None:
    (window.studio.workspace.runs / "diary").mkdir(parents=True)
    window.login = {}
    pages = [window.get(path) for path in ("/", "/text/0123456789ab", "/run/diary")]
    assert {page.status for page in pages} == {200}
    assert len({page.body for page in pages}) == 1
    assert b"diary" not in pages[0].body
    assert window.get("/run/none").body == pages[0].body


def test_the_printed_token_lasts_and_another_one_works_once(window: Window) -> None:
    logins = window.studio.logins
    for _ in range(3):
        assert Window(window.studio).enter(logins.token).status == 200

    token = window.post("/api/token").json["token"]
    first = Window(window.studio)
    assert first.enter(token).status == 200
    assert first.post("/api/token").status == 200

    assert Window(window.studio).enter(token).status == 401
    assert first.post("/api/token").status == 401  # the second use ended it
    assert window.post("/api/token").status == 200


def test_secrets_are_new_at_each_start(window: Window, tmp_path: Path) -> None:
    later = Window(type(window.studio)(Workspace(tmp_path), close=lambda: None))
    later.login = window.login
    assert later.post("/api/token").status == 401
    assert later.enter(window.studio.logins.token).status == 401
    later.studio.tickets.close()


@pytest.mark.parametrize("token", ["", None, 5, "ü" * 40, ["x"]])
def test_what_is_no_token_opens_nothing(window: Window, token: object) -> None:
    assert window.post("/api/enter", {"token": token}).status == 401


def test_half_a_character_in_a_request_gets_an_answer_and_is_not_kept(
    window: Window, capsys: pytest.CaptureFixture[str]
) -> None:
    half = "\ud800" + "secret" * 1000
    for i in range(3):
        assert window.post("/api/enter", {"token": f"{half}{i}"}).status == 401
    assert capsys.readouterr().err == ""
    text = window.post("/api/texts").json["id"]
    assert window.post(f"/api/texts/{text}/files?name=%ed%a0%80.txt", b"x").status == 201
    for path, sent in [
        (f"/api/texts/{text}/plan", {"settings": {"only": "\udce9"}}),
        ("/api/runs", {"text": half, "name": half}),
        ("/api/runs", {"text": text, "name": half, "settings": {half: half}}),
        (f"/api/runs/{'%ff'}/rename", {"name": half}),
        ("/api/runs/x/write", {"prompt": half, "settings": {"as": half, "stop": [half]}}),
    ]:
        assert 200 <= window.post(path, sent).status < 500, path
    assert window.get("/api/state").status == 200


def test_of_the_studio_s_own_mistakes_no_message_is_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(sent: str) -> None:
        raise ValueError(sent)

    before = {*answers._printed}
    for i in range(5):
        try:
            fail(f"secret {i}")
        except ValueError as error:
            answers.print_mistake(error)
    assert "secret" not in repr(answers._printed - before) and len(answers._printed - before) == 1
    assert capsys.readouterr().err.count("Traceback") == 1


def test_what_is_no_object_or_too_large_is_refused(window: Window) -> None:
    for body in (b"[1]", b"{", b"[" * 100_000, b"\xff"):
        assert window.post("/api/enter", body).status == 400
    assert window.post("/api/enter", b" " * (1 << 20) + b" ").status == 413


def test_answers_let_no_other_page_use_them(window: Window) -> None:
    for path in ("/", "/static/studio/window/index.html", "/api/nothing", "/t/none"):
        headers = window.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


def test_the_cookie_is_for_the_studio_alone(window: Window) -> None:
    cookie = window.enter(window.studio.logins.token).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert cookie.startswith(f"minigpt-studio-{PORT}=")
    assert "Domain" not in cookie


def test_nothing_beside_the_window_is_a_static_file(window: Window) -> None:
    for folder in ("/static/studio/window/", "/static/web/"):
        for path in ("../routes.py", "%2e%2e/routes.py", "../page/build.py", "/etc/passwd", ""):
            assert window.get(folder + path).status == 404
    for path in ("/static/", "/static/studio/routes.py", "/static/page/build.py", "/web/dom.js"):
        assert window.get(path).status == 404


def test_a_ticket_is_good_once_and_its_file_is_then_gone(window: Window) -> None:
    tickets = window.studio.tickets
    path = tickets.new_folder() / "page.html"
    path.write_text("<script>alert(1)</script>")
    address = tickets.issue(path, "page.html", is_shown=True)

    window.login = {}
    answer = window.get(address)
    assert answer.body == b"<script>alert(1)</script>"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox ")
    assert "allow-same-origin" not in policy
    assert window.get(address).status == 404
    assert not path.exists()


def test_a_file_to_save_is_never_shown(window: Window) -> None:
    tickets = window.studio.tickets
    path = tickets.new_folder() / "diary.html"
    path.write_text("<script>alert(1)</script>")
    answer = window.get(tickets.issue(path, 'a "b"\n.html'))
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")


def test_what_a_killed_studio_left_for_the_browser_is_gone_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = """if True:
        import os
        from minigpt.studio.tickets import Tickets
        tickets = Tickets()
        (tickets.new_folder() / "diary.html").write_text("secret")
        os._exit(9)  # as a process that is killed
    """
    with_folder = os.environ | {"TMPDIR": str(tmp_path)}
    killed = subprocess.run([sys.executable, "-c", code], env=with_folder, check=False)
    assert killed.returncode == 9 and len([*tmp_path.rglob("diary.html")]) == 1

    open_one = Tickets()
    next_one = Tickets()
    assert not [*tmp_path.rglob("diary.html")] and open_one.new_folder().is_dir()
    open_one.close()
    next_one.close()
    assert [*tmp_path.iterdir()] == []


def test_the_files_of_tickets_are_gone_when_the_studio_is_closed(window: Window) -> None:
    folder = window.studio.tickets.new_folder()
    window.studio.tickets.close()
    assert not folder.exists()


@pytest.mark.parametrize(("shown", "kept"), UNSAFE_NAMES)
def test_a_name_that_was_sent_becomes_one_that_every_system_can_store(
    shown: str, kept: str
) -> None:
    assert safe_name(shown, "text") == kept
    assert is_one_name(kept)
    assert len(kept) <= 80


@pytest.mark.parametrize("name", ["", ".", "..", ".bin", "a/b", "a\\b", "a\0b"])
def test_a_name_that_leaves_its_folder_is_none(name: str) -> None:
    assert not is_one_name(name)


def test_the_studio_is_reached_by_each_of_its_own_names(window: Window) -> None:
    for host in (HOST, f"127.0.0.1:{PORT}", f"[::1]:{PORT}", HOST.upper()):
        assert window.get("/", host=host).status == 200
        origin = f"http://{host}"
        assert window.post("/api/token", host=host, origin=origin).status == 200
