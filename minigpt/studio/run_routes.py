"""The routes of runs, and of the line in which they wait."""

from starlette.routing import Route

ROUTES: list[Route] = []
