"""Commands that read captures: show, diff, import, export, replay."""
