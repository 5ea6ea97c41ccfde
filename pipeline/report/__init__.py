"""What was found, as a page to show to a colleague."""
