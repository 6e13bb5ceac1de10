"""A class: pupils who come in with a code, from computers and phones of their own, once the teacher
has admitted them. Each has a folder, `classes/NAME/PUPIL`, with texts and runs."""

import secrets
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from ..allowance import OF_PUPIL
from ..errors import Refusal
from ..guard import Login, is_same
from ..workspace import Workspace, safe_name

CODE_LENGTH = 8
# No vowels, so that no word comes up by chance; no letters that look like others.
_LETTERS = "BCDFGHJKMNPQRTVWXYZ"
_TRIES = 5  # with a wrong code, in a minute, from one address
_ALL_TRIES = 60  # in a minute, from all addresses
_MINUTE = 60.0  # seconds
_MOST_PUPILS = 40
_NAME_LENGTH = 40

WAITING = "waiting"
ADMITTED = "admitted"
REFUSED = "refused"


@dataclass
class Pupil:
    """Somebody who has sent the code.

    Attributes:
        name: as it was typed.
        folder: the name of the pupil's folder.
        state: "waiting" until the teacher has decided, then "admitted" or "refused".
        login: what the pupil's window sends.
    """

    name: str
    folder: str
    state: str = WAITING
    login: Login = field(default_factory=Login)


class Classroom:
    """The pupils of a class. Their logins end with the studio; their folders stay.

    Attributes:
        name: of the class, such as "6b".
        code: what pupils type, new at each start.
        folder: with a folder for each pupil.
    """

    def __init__(self, name: str, folder: Path):
        self.name = name
        self.folder = folder
        self.code = "".join(secrets.choice(_LETTERS) for _ in range(CODE_LENGTH))
        self.has_ended = False
        self._pupils: dict[str, Pupil] = {}  # by their folders
        self._tries: list[tuple[float, str]] = []  # when, by the monotonic clock, and from where

    def join(self, code: str, name: str, address: str) -> Pupil:
        """Let somebody who knows the code wait at the door.

        Refusal: 429 after too many tries, 403 for another code, 400 for no name, 409 for one that
        is taken, or if the class has ended or is full.
        """
        if self.has_ended:
            raise Refusal(409, "This class has ended.", kind="class_ended")
        self._check_tries(address)
        if not is_same(code.strip().upper(), self.code):
            self._tries.append((time.monotonic(), address))
            raise Refusal(403, "That is not the code of this class.", "code", kind="wrong_code")

        shown = " ".join(name.split())[:_NAME_LENGTH]
        folder = safe_name(shown, "")
        if not folder:
            raise Refusal(400, "Type your name.", "name", kind="no_name")
        taken = {pupil.folder.casefold(): pupil for pupil in self._pupils.values()}
        found = taken.get(folder.casefold())
        if found is not None and found.state != REFUSED:
            message = f"There is a {shown} here already. Add a letter to your name."
            raise Refusal(409, message, "name", kind="name_taken", name=shown)
        if len(self.pupils) >= _MOST_PUPILS:
            raise Refusal(409, "This class is full.", kind="class_full")

        pupil = Pupil(shown, folder)
        self._pupils[folder] = pupil
        return pupil

    def admit(self, folder: str) -> None:
        """Let a pupil in, whose folder is made."""
        pupil = self._pupil(folder)
        workspace = self.workspace(pupil)
        workspace.runs.mkdir(parents=True, exist_ok=True)
        pupil.state = ADMITTED

    def refuse(self, folder: str) -> None:
        """Send somebody away; what a pupil has made stays."""
        self._pupil(folder).state = REFUSED

    def find(self, cookie: str, key: str) -> Pupil | None:
        """The admitted pupil with this cookie and key."""
        pupil = self.at_the_door(cookie, key)
        if pupil is None or pupil.state != ADMITTED:
            return None
        return pupil

    def at_the_door(self, cookie: str, key: str) -> Pupil | None:
        """Who has this cookie and key, admitted or not."""
        for pupil in self._pupils.values():
            if is_same(cookie, pupil.login.cookie) and is_same(key, pupil.login.key):
                return pupil
        return None

    @property
    def pupils(self) -> list[Pupil]:
        """Those who wait and those who were admitted, in the order in which they came."""
        return [pupil for pupil in self._pupils.values() if pupil.state != REFUSED]

    @property
    def waiting(self) -> int:
        """How many wait at the door."""
        return sum(pupil.state == WAITING for pupil in self._pupils.values())

    def workspace(self, pupil: Pupil) -> Workspace:
        """Where a pupil's texts and runs lie."""
        return Workspace(self.folder / pupil.folder, OF_PUPIL)

    def workspaces(self) -> list[Workspace]:
        """The workspaces of all who have ever been in this class."""
        if not self.folder.is_dir():
            return []
        return [Workspace(folder, OF_PUPIL) for folder in self.folder.iterdir() if folder.is_dir()]

    def has_been_here(self, pupil: Pupil) -> bool:
        """Whether there is a folder of this name already, from another day."""
        return (self.folder / pupil.folder).is_dir()

    def end(self) -> None:
        """Send all away. What they have made stays."""
        self.has_ended = True
        for pupil in self._pupils.values():
            pupil.state = REFUSED

    def delete(self) -> None:
        """Remove all that the class has made. Its trainings must have ended."""
        if self.folder.is_dir():
            shutil.rmtree(self.folder)

    def _pupil(self, folder: str) -> Pupil:
        found = self._pupils.get(folder)
        if found is None:
            raise Refusal(404, "Nobody of this name is here.")
        return found

    def _check_tries(self, address: str) -> None:
        now = time.monotonic()
        self._tries = [(when, who) for when, who in self._tries if now - when < _MINUTE]
        own = sum(who == address for _, who in self._tries)
        if own >= _TRIES or len(self._tries) >= _ALL_TRIES:
            raise Refusal(429, "Those were too many tries. Wait a minute.", kind="many_tries")
