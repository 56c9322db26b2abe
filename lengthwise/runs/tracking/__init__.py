"""Trackers: the curves of runs in TensorBoard, W&B, trackio or MLflow, in addition to the run's own folder."""
