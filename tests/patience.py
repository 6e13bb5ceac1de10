"""How long a test waits for what must come."""

# Seconds. Whoever is not answered by then waits for ever: nothing that passes takes nearly so long,
# not even beside other programs.
PATIENCE = 120
