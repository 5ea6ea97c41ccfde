"""`klamm analyze`: findings in captures, by Spark."""
