"""Rule files: YAML text to rules, each mistake with its place; rules in words, and their schema."""
