"""Captures as Spark reads them: the Data Source, its parts, frames and exchanges."""
