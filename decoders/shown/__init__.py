"""Messages as people are shown them: values in words, contents of fields of bytes, layouts side by side."""
