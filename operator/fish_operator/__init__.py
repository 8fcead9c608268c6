"""The operator: from what the cluster shows to what it should do next."""
