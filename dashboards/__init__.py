"""Views of a running klamm: clients of its admin API, in processes of their own."""
