package node

// Main x.
func Main(arguments []string) int { return 0 }
