"""Tracking: every `kedro run` in MLflow. Nothing else in the project knows MLflow."""

from deephash_pipeline.project.tracking.hook import MlflowTracking

__all__ = ["MlflowTracking"]
