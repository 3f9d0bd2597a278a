"""How two nodes exchange what each is missing: version vectors, serve, pull, discovery, bundles."""
