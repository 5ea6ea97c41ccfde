"""The routes of the admin API, a file for each subject."""
