"""The view of rules: a form that makes one, and what a rule would have done."""
