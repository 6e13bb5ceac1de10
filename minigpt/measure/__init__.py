"""What a run is worth: its loss on a text, beside others and beside counting; what it copies."""
