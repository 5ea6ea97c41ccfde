"""What is in captures: sums, differences, and what rules would have done."""
