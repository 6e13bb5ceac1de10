"""The routes of texts."""

from starlette.routing import Route

ROUTES: list[Route] = []
