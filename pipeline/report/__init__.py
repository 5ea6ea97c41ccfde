"""The report of an analysis, as a page to show to a colleague."""
