"""`klamm top`: tables of a running klamm with keys. `state` says what a key does, `tables` what the rows are,
`drawing` what is on the screen; `app` asks klamm and the keyboard.
"""
