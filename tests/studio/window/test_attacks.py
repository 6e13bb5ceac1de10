"""Each row of the table of threats, against the real program in a real browser: what a web page of
another origin, an old token, a stored script or a huge file can do, which is nothing."""

import http.client
import http.server
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from minigpt.system.json_objects import lines_of
from tests.browser import chromium_place, new_context
from tests.hostile import EVIL_NAME as EVIL
from tests.patience import PATIENCE

from ...data.chats.made import some_chat
from ..by_hand import a_job, make_run
from ..person import Person
from .learners import SMALL
from .opened import Opened, Program, real_program
from .pages import drop

pytestmark = pytest.mark.studio

SCRIPT = "</script><script>top.hacked=1</script>"
BY_FORM = ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data")


class OtherSite:
    """A web page at another port of this machine, to which browsers send the studio's cookie."""

    def __init__(self, port: int = 0):
        site = self
        self.headers: list[dict[str, str]] = []  # of the requests that came

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.headers.append({k.lower(): v for k, v in self.headers.items()})
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!doctype html><title>kittens</title><body>")

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://localhost:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[OtherSite]:
    opened = OtherSite()
    yield opened
    opened.close()


@pytest.fixture
def owner(program: Opened) -> Person:
    """Somebody who may ask the studio."""
    return enter(program)


def enter(program: Opened) -> Person:
    person = Person(int(program.port))
    person.enter(program.address.partition("#")[2])
    return person


def nothing_ran(page: Any) -> bool:
    """Whether no script and no handler of the test's came into a page as such."""
    hacked = page.evaluate("window.hacked !== undefined")
    return not hacked and page.locator("[onerror], main script, main style").count() == 0


# Another web page in the same browser

WAITED = """(make, event, failure) => new Promise((done, failed) => {
    const made = make();
    made.addEventListener(event, done);
    made.addEventListener(failure, failed);
})"""
ATTACKS = {
    "fetch": "async (url) => await fetch(url + '/api/state', { credentials: 'include' })",
    "fetch of a page": "async (url) => await fetch(url + '/', { credentials: 'include' })",
    "fetch with a key": """async (url) => {
        const headers = { "x-studio-key": "x", "content-type": "application/json" };
        const options = { method: "POST", credentials: "include", headers, body: "{}" };
        await fetch(url + "/api/empty-bin", options);
    }""",
    "fetch without reading": """async (url) => {
        const options = { method: "POST", mode: "no-cors", credentials: "include", body: "{}" };
        await fetch(url + "/api/close", options);
    }""",
    "image": f"""(url) => ({WAITED})(() => {{
        const src = url + "/api/state";
        return Object.assign(new Image(), {{ src }});
    }}, "load", "error")""",
    "script": f"""(url) => ({WAITED})(() => {{
        const script = document.createElement("script");
        script.src = url + "/static/studio/window/main.js";
        document.body.append(script);
        return script;
    }}, "load", "error")""",
    "events": f"""(url) => ({WAITED})(() => {{
        return new EventSource(url + "/api/events", {{ withCredentials: true }});
    }}, "open", "error")""",
    "socket": f"""(url) => ({WAITED})(() => {{
        return new WebSocket(url.replace("http", "ws") + "/api/events");
    }}, "open", "error")""",
    "opened window": """async (url) => {
        const opened = window.open(url + "/");
        await new Promise((done) => setTimeout(done, 1000));
        return opened.document.body.innerText;
    }""",
}
FORM = """([action, enctype]) => new Promise((onload) => {
    const form = document.createElement("form");
    Object.assign(form, { action, enctype, method: "post", target: "inside" });
    form.append(Object.assign(document.createElement("input"), { name: "{", value: "}" }));
    const frame = Object.assign(document.createElement("iframe"), { name: "inside", onload });
    document.body.replaceChildren(form, frame);
    form.submit();
})"""
BEACON = "(url) => navigator.sendBeacon(url, new Blob(['{}'], { type: 'text/plain' }))"
FRAME = """(src) => new Promise((onload) => {
    const frame = Object.assign(document.createElement("iframe"), { src, onload });
    document.body.replaceChildren(frame);
})"""


def test_a_page_of_another_origin_can_read_and_change_nothing(
    page: Any, program: Opened, owner: Person, site: OtherSite
) -> None:
    make_run(program.folder / "runs", "diary", job=a_job(), phase="training", how="finished")
    before = [run["name"] for run in owner.get("/api/state")["runs"]]
    hostile = page.context.new_page()
    hostile.goto(site.url)
    assert "minigpt-studio" in site.headers[0].get("cookie", "")  # all ports have the same cookies

    for name, attack in ATTACKS.items():
        code = f"(url) => ({attack})(url).then(() => 'read', () => 'refused')"
        assert hostile.evaluate(code, program.url) == "refused", name

    # Nobody can see whether a form was refused, so look at what it has done.
    for path in ("/api/close", "/api/empty-bin", "/api/runs/diary/delete"):
        for kind in BY_FORM:
            hostile.evaluate(FORM, [program.url + path, kind])
        hostile.evaluate(BEACON, program.url + path)
    assert [run["name"] for run in owner.get("/api/state")["runs"]] == before == ["diary"]
    assert program.is_open()

    hostile.evaluate(FRAME, program.url + "/")
    framed = [frame.url for frame in hostile.frames[1:]]
    assert framed == ["chrome-error://chromewebdata/"]  # the browser shows an error of its own


def test_a_name_that_was_bound_to_this_machine_is_not_the_studios(
    browser: Any, program: Opened
) -> None:
    rule = "--host-resolver-rules=MAP *.example 127.0.0.1"
    rebound = browser.browser_type.launch(executable_path=chromium_place(), args=[rule])
    page = rebound.new_page()
    for path in ("/", "/static/studio/window/main.js", "/api/state"):
        answer = page.goto(f"http://localhost.evil.example:{program.port}{path}")
        assert answer.status == 403
    assert "not the studio's" in page.locator("body").inner_text()
    rebound.close()


def test_a_cookie_that_another_port_was_sent_opens_nothing(
    page: Any, program: Opened, site: OtherSite
) -> None:
    page.context.new_page().goto(site.url)
    thief = Person(int(program.port))
    thief.login = {"cookie": site.headers[0]["cookie"]}
    assert thief.ask("GET", "/api/state")[0] == 401
    assert thief.ask("POST", "/api/close")[0] == 401


def test_what_an_impostor_on_the_freed_port_is_sent_opens_no_later_studio(
    page: Any, program: Opened
) -> None:
    program.kill()
    impostor = OtherSite(int(program.port))
    page.reload()
    impostor.close()
    sent = {
        **impostor.headers[0],
        "x-studio-key": page.evaluate("localStorage[Object.keys(localStorage)[0]]"),
    }
    assert "minigpt-studio" in sent["cookie"]

    program.start()
    thief = Person(int(program.port))
    thief.login = sent
    assert thief.ask("GET", "/api/state")[0] == 401


def test_a_token_that_is_used_again_is_refused_and_ends_the_login_that_it_opened(
    browser: Any, program: Opened, owner: Person
) -> None:
    token = owner.post("/api/token")["token"]
    first, second = (new_context(browser, locale="en-US").new_page() for _ in range(2))
    first.goto(f"{program.url}/#{token}")
    first.get_by_text("Your models will appear here.").wait_for()

    second.goto(f"{program.url}/#{token}")
    second.get_by_text("This window is not logged in.").wait_for()
    first.reload()
    first.get_by_text("This window is not logged in.").wait_for()
    assert owner.get("/api/state")["runs"] == []  # the printed one is as good as before
    first.context.close()
    second.context.close()


# Scripts in what is stored


def test_scripts_in_names_texts_and_messages_are_shown_and_never_run(
    page: Any, program: Opened
) -> None:
    run = make_run(
        program.folder / "runs",
        EVIL,
        job=a_job(text={**a_job().text, "name": EVIL, "beginning": EVIL}),
        phase="training",
        steps=3,
        evaluations=1,
        has_checkpoint=True,
        log=f"error: {EVIL}\n",
    )
    sample = {"step": 1, "seconds": 1.0, "beginning": EVIL, "text": f"{EVIL} {SCRIPT}"}
    words = {"words": 2, "known": 0, "unknown": [EVIL], "tokens": [EVIL]}
    (run / "journal" / "samples.jsonl").write_text(
        lines_of([{**sample, **words, "looks": [[[1.0]]]}])
    )

    page.get_by_role("heading", name=EVIL).wait_for()
    assert nothing_ran(page)
    page.get_by_role("link", name=f"Open {EVIL}").click()
    page.get_by_role("heading", level=1, name=EVIL).wait_for()
    page.locator(".writes .written").filter(has_text=SCRIPT).wait_for()
    page.get_by_role("button", name="Details").click()
    page.locator(".details").get_by_text(EVIL).wait_for()
    assert nothing_ran(page)

    page.goto(f"{program.url}/run/%3Cimg%20src%3Dx%20onerror%3Dtop.hacked%3D2%3E")
    page.get_by_text("Somebody moved or deleted this model.").wait_for()
    assert nothing_ran(page)


def test_scripts_in_a_chat_are_text_and_the_page_of_its_model_has_no_rights(
    page: Any, program: Opened, owner: Person, tmp_path: Path
) -> None:
    chat = some_chat(300).replace("Anna", EVIL).replace("Otto", "Bob").replace("good", SCRIPT)
    drop(page, tmp_path, {f"{EVIL}.txt": chat.encode()})
    page.get_by_text(f"Who speaks: {EVIL}, Bob").wait_for()
    page.get_by_role("region", name="As the model sees it").get_by_text(EVIL).first.wait_for()
    assert nothing_ran(page)

    text = owner.get("/api/state")["texts"][0]["id"]
    settings = {**SMALL, "steps": 20, "num_evals": 1}
    asked = {"text": text, "name": f"my {EVIL}", "minutes": 5, "settings": settings}
    name = owner.post("/api/runs", asked)["name"]
    owner.wait(lambda: owner.state(quote(name)) == "done")

    page.goto(f"{program.url}/run/{quote(name)}")
    shown = page.frame_locator(".page iframe").get_by_text(EVIL).first
    shown.wait_for(state="attached")
    assert nothing_ran(page)
    page.get_by_role("button", name="Childhood").click()
    page.locator(".try select option", has_text=EVIL).first.wait_for(state="attached")

    inside = next(frame for frame in page.frames if frame.url.startswith(f"{program.url}/t/"))
    assert inside.evaluate("window.hacked === undefined")
    assert inside.locator("[onerror]").count() == 0
    for reached in (
        "document.cookie",
        "localStorage.length",
        "parent.document.body",
        "parent.localStorage",
        f"fetch('{program.url}/api/state', {{ credentials: 'include' }})",
        f"fetch('{program.url}/', {{ credentials: 'include' }})",
    ):
        code = f"(async () => {reached})().then(() => 'reached', () => 'refused')"
        assert inside.evaluate(code) == "refused", reached
    inside.evaluate("try { top.location = 'about:blank' } catch {}")
    page.get_by_text(re.compile("Done after")).wait_for()  # it cannot lead the window away
    assert page.url.startswith(program.url)


# What is too large


@real_program
def test_ten_gigabytes_are_refused_and_take_no_memory(program: Program, owner: Person) -> None:
    def most_memory() -> int:
        status = Path(f"/proc/{program.process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+)", status)[0])

    before = most_memory()
    text = owner.post("/api/texts")["id"]
    folder = program.folder / "texts" / text
    with open(folder / "files" / "large.txt", "wb") as file:
        file.truncate(2 * 10**9 - 10**7)  # ten megabytes more have a place
    for path in (f"/api/texts/{text}/files?name=x.txt", "/api/texts"):
        for framing in ("content-length: 10000000000", "transfer-encoding: chunked"):
            assert send_without_end(owner, path, framing) == 413
    assert most_memory() - before < 20_000  # KB
    left = {path.name for path in folder.rglob("*")}
    assert left == {"files", "large.txt", "text.json", "settings.json"}


def send_without_end(owner: Person, path: str, framing: str) -> int:
    """The status with which ten gigabytes are answered that somebody begins to send."""
    with socket.create_connection(("127.0.0.1", owner.port), timeout=PATIENCE) as connection:
        kind = "application/octet-stream" if "files" in path else "application/json"
        headers = {**owner.login, "content-type": kind}
        lines = [f"{name}: {value}" for name, value in headers.items()]
        head = [f"POST {path} HTTP/1.1", f"host: localhost:{owner.port}", *lines, framing, "", ""]
        block = b"100000\r\n" + b"a" * (1 << 20) + b"\r\n"  # a chunk, or any other bytes
        try:
            connection.sendall("\r\n".join(head).encode())
            for _ in range(200):
                connection.sendall(block)
        except OSError:  # it does not want more
            pass
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status


@real_program
def test_of_a_file_that_ends_too_early_nothing_stays(program: Program, owner: Person) -> None:
    text = owner.post("/api/texts")["id"]
    folder = program.folder / "texts" / text
    lines = [f"{name}: {value}" for name, value in owner.login.items()]
    head = [f"POST /api/texts/{text}/files?name=x.txt HTTP/1.1", f"host: localhost:{owner.port}"]
    head += ["content-type: application/octet-stream", "content-length: 5000000", *lines, "", ""]
    with socket.create_connection(("127.0.0.1", owner.port), timeout=PATIENCE) as connection:
        connection.sendall("\r\n".join(head).encode() + b"a" * 4_000_000)
        owner.wait(lambda: [path for path in folder.glob(".arriving-*") if path.stat().st_size])
    owner.wait(lambda: not [*folder.glob(".arriving-*")])
    assert owner.get(f"/api/texts/{text}")["files"] == []


# What is left behind


@real_program
def test_neither_the_history_nor_what_it_prints_nor_a_file_holds_a_token_or_a_name(
    page: Any, program: Program, owner: Person
) -> None:
    token = program.address.partition("#")[2]
    make_run(program.folder / "runs", "secret-diary", job=a_job(), phase="training", how="finished")
    page.goto(f"{program.url}/run/secret-diary")
    page.get_by_role("heading", level=1, name="secret-diary").wait_for()
    owner.ask("POST", "/api/runs/secret-diary/go-on", {"minutes": "x"})
    owner.ask("POST", "/api/runs/secret-diary/write", {"prompt": 5})

    history = page.context.new_cdp_session(page).send("Page.getNavigationHistory")
    addresses = [entry["url"] for entry in history["entries"]]
    assert f"{program.url}/" in addresses
    for secret in (token, owner.login["x-studio-key"], owner.login["cookie"].partition("=")[2]):
        assert not any(secret in address for address in addresses)
        kept = [path for path in program.folder.rglob("*") if path.is_file()]
        holding = [path.name for path in kept if secret.encode() in path.read_bytes()]
        assert holding == ([".studio.json"] if secret == token else [])
    printed = program.kill()
    assert token not in printed
    assert "secret-diary" not in printed
