"""A one-machine cluster of real parts, for trying and testing everything."""
