"""The studio: a window in the browser, to train on a text and to use what comes of it."""
