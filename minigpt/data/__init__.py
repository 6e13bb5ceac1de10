"""Files -> documents -> tokens -> batches."""
