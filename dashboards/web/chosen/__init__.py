"""The view of one exchange: its fields, its records, what klamm changed, and what one does from there."""
