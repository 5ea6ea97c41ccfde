"""The view of captures: their content over time, findings, exports; and captures of a running klamm."""
