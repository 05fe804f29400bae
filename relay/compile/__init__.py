"""`relay.build`: compiles a module or a model file to an executable, by way of the cache. May import `byoc`,
`frontend`, `lowering`, the packages below these, and `runtime`."""
