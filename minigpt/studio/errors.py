"""What the studio answers where it cannot do what it was asked for."""


class Refusal(Exception):
    """A refusal, with the status of HTTP.

    Attributes:
        status: 400 for what was asked wrongly, 404 for what is not there, 409 for the wrong state,
            413 for too much, 507 for a full disk.
        message: what was wrong and what to do, in a sentence.
        field: the name of the field that was wrong, if it was one.
        kind: the name under which the window has its own words for this sentence, if it has any.
        values: what is filled into those words.
    """

    def __init__(
        self,
        status: int,
        message: str,
        field: str | None = None,
        *,
        kind: str | None = None,
        **values: str,
    ):
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.kind = kind
        self.values = values
