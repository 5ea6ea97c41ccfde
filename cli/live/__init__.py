"""Commands that ask a running klamm."""
