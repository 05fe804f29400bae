"""Passes that transform modules of the `relay` dialect: one pass, one file, the file named as the pass. May import
`passes`, `interpreters` and the packages below them."""
