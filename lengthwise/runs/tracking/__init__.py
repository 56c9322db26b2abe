"""Trackers: the curves of runs in TensorBoard, W&B, trackio or MLflow, besides the run's own folder."""
