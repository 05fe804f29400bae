"""The external compiler `vega`."""
