"""`klamm rules`: rule files checked, explained and tried, and the rules of a running klamm."""
