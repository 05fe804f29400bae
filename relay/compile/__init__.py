"""The front door: `relay.build`, from a module or a model file to an executable."""
