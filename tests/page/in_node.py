"""The page's worker in node: the same script as in the page, asked as the page asks it."""

import json
import os
import shutil
import subprocess
import sysconfig
import threading
from collections import defaultdict
from pathlib import Path
from queue import Queue
from typing import Any

from minigpt.page.build import WORKER, bundle, page_model
from minigpt.runs.read_model import FoundModel

from ..patience import PATIENCE

PROGRAM = """
import { createInterface } from "node:readline";

const plain = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
globalThis.postMessage = (data) => process.stdout.write(JSON.stringify(data, plain) + "\\n");
globalThis.onmessage = null;
// Node hands over many messages of a port before it looks at others; a browser takes turns.
globalThis.MessageChannel = class {
  port1 = {};
  port2 = { postMessage: () => setImmediate(() => this.port1.onmessage()) };
};
{{worker}}
tasks.call = (name, ...args) => eval(name)(...args);
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => onmessage({ data: JSON.parse(line) }));
lines.on("close", () => process.exit());
"""


class TaskError(Exception):
    """What went wrong in a task of the worker."""


class Worker:
    """A process of node that runs the worker."""

    def __init__(self, folder: Path):
        own = sysconfig.get_path("scripts")  # of the environment, which has a node
        node = shutil.which("node", path=os.pathsep.join([own, os.environ["PATH"]]))
        assert node is not None, "node is missing; make test installs it"
        program = folder / "worker.mjs"
        program.write_text(PROGRAM.replace("{{worker}}", bundle(WORKER)), encoding="utf-8")

        self.process = subprocess.Popen(
            [node, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.asked = 0
        self.answers: dict[int, dict[str, Any]] = {}
        self.events: dict[int, list[dict[str, Any]]] = defaultdict(list)  # by question
        self.messages: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.messages.put(line)

    def send(self, name: str, *args: Any) -> int:
        """Ask for a task without waiting; the number of the question."""
        assert self.process.stdin is not None
        self.asked += 1
        question = {"id": self.asked, "name": name, "args": args}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self.asked

    def receive(self) -> dict[str, Any]:
        """The next message."""
        message: dict[str, Any] = json.loads(self.messages.get(timeout=PATIENCE))
        if "event" in message:
            self.events[message["question"]].append(message)
        else:
            self.answers[message["id"]] = message
        return message

    def answer(self, question: int) -> Any:
        """The answer to a question."""
        while question not in self.answers:
            self.receive()
        answer = self.answers.pop(question)
        if "error" in answer:
            raise TaskError(answer["error"]["message"])
        return answer.get("result")

    def ask(self, name: str, *args: Any) -> Any:
        """Ask, and wait for the answer."""
        return self.answer(self.send(name, *args))

    def call(self, function: str, *args: Any) -> Any:
        """What a function of the worker's script returns."""
        return self.ask("call", function, *args)

    def told(self, name: str, *args: Any) -> list[dict[str, Any]]:
        """Ask, wait for the answer, and return the events before it."""
        question = self.send(name, *args)
        self.answer(question)
        return self.events[question]

    def open(self, found: FoundModel) -> None:
        """Give it a model, in place of the one it had."""
        model, packed = page_model(found, "test", "float32")
        self.ask("open", model, packed)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)
