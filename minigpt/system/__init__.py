"""What every room may use: kinds of errors, files and names, how this program was called."""
