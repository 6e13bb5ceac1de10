"""How soon the studio is there, what memory it takes, and whether its buttons answer under attack.

python benchmarks/studio.py [--connections 1000] [--runs 50]

In an empty folder with copies of a kept run: seconds from the command to the printed address, and
to the first answer; then how long a button (POST) and the list of runs (GET /api/state) take. At
first alone, then while another program of this machine holds a thousand connections open: a third
send nothing, a third send a request that never ends, a third send whole ones without a login, again
and again.
"""

import argparse
import contextlib
import http.client
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEPT = Path(__file__).parent.parent / "tests" / "runs" / "kept" / "before-0.2"
ASKED = 100  # times, for each figure
REQUEST = b"GET /api/state HTTP/1.1\r\nHost: evil.example\r\n"


class Studio:
    """The program in a folder, and a window that is logged in."""

    def __init__(self, folder: Path):
        command = [sys.executable, "-m", "minigpt", "studio", "--port", "0", "--no-browser"]
        started = time.monotonic()
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        printed = self.process.stdout.readline()
        self.seconds_to_address = time.monotonic() - started

        address, _, token = printed.split()[-1].partition("#")
        self.port = int(address.rstrip("/").rpartition(":")[2])
        self.login = {"content-type": "application/json"}
        status, sent, headers = self.ask("POST", "/api/enter", json.dumps({"token": token}))
        self.seconds_to_answer = time.monotonic() - started
        assert status == 200, sent
        self.login["cookie"] = headers["set-cookie"].partition(";")[0]
        self.login["x-studio-key"] = json.loads(sent)["key"]

    def ask(self, method: str, path: str, body: str = "") -> tuple[int, bytes, dict[str, str]]:
        """The answer to a request on a connection of its own."""
        connection = http.client.HTTPConnection("localhost", self.port, timeout=60)
        try:
            connection.request(method, path, body or None, self.login)
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, answer.read(), headers
        finally:
            connection.close()

    def times(self, method: str, path: str) -> list[float]:
        """Seconds that a request takes, sorted."""
        found = []
        for _ in range(ASKED):
            begun = time.monotonic()
            status, answer, _ = self.ask(method, path, "{}" if method == "POST" else "")
            found.append(time.monotonic() - begun)
            assert status == 200, answer
        return sorted(found)

    def memory(self) -> float:
        """Megabytes that the process holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=50)
    given = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i in range(given.runs):
            shutil.copytree(KEPT, folder / "runs" / f"run-{i}")
        studio = Studio(folder)
        try:
            show(studio, given.connections)
        finally:
            studio.process.terminate()
            studio.process.wait()


def show(studio: Studio, connections: int) -> None:
    """Print what is measured, alone and under attack."""
    print(f"address printed after {studio.seconds_to_address:.2f} s")
    print(f"first answer after {studio.seconds_to_answer:.2f} s")
    print_times("alone", studio)

    attacker = subprocess.Popen(
        [sys.executable, __file__, "--attack", str(studio.port), str(connections)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert attacker.stdout is not None
        print(attacker.stdout.readline().strip())
        print_times("attacked", studio)
    finally:
        attacker.kill()
        attacker.wait()


def print_times(when: str, studio: Studio) -> None:
    for what, method, path in (
        ("a button", "POST", "/api/token"),
        ("list of runs", "GET", "/api/state"),
    ):
        taken = [1000 * seconds for seconds in studio.times(method, path)]
        print(
            f"{when}: {what} answers within {statistics.median(taken):.0f} ms (median), "
            f"{taken[-1]:.0f} ms (longest of {ASKED}); {studio.memory():.0f} MB"
        )


def attack(port: int, connections: int) -> None:
    """Hold so many connections open until this process is killed."""
    opened = [connect(port, i % 3) for i in range(connections)]
    print(f"{sum(one is not None for one in opened)} connections are open", flush=True)
    while True:
        for i, connection in enumerate(opened):
            if not use(connection, i % 3):
                opened[i] = connect(port, i % 3)
        time.sleep(0.05)


def connect(port: int, kind: int) -> socket.socket | None:
    """A connection of a kind, with what it sends first."""
    try:
        connection = socket.create_connection(("localhost", port), timeout=2)
        if kind == 1:
            connection.send(REQUEST)
        connection.setblocking(False)
        return connection
    except OSError:
        return None


def use(connection: socket.socket | None, kind: int) -> bool:
    """Send what a connection of this kind sends; False if it has been closed."""
    if connection is None:
        return False
    sent = (b"", b"X-More: 1\r\n", REQUEST + b"\r\n")[kind]
    try:
        with contextlib.suppress(BlockingIOError):  # the studio does not read it now
            connection.send(sent)
        with contextlib.suppress(BlockingIOError):  # nor has it answered
            return connection.recv(1 << 16) != b""
    except OSError:
        return False
    return True


if __name__ == "__main__":
    if sys.argv[1:2] == ["--attack"]:
        attack(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
