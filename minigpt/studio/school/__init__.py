"""A class: pupils who use the studio from computers of their own."""
