"""A run's folder on disk, whole at every moment; finding a run, or a model by any name."""
