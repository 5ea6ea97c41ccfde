"""The web inspector: a server of its own between a page and the admin API, or between a page and captures."""
