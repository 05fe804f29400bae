"""Passes that leave a module on its stage: one pass, one file, the file named as the pass. May import `passes`,
`interpreters` and the rooms below."""
