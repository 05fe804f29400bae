"""`relay.build`: from a module or a model file to an executable, by way of the cache. May import `byoc`, `frontend`,
`lowering`, the rooms below, and `runtime`."""
