package docker

// Self is how this process calls itself on what it makes in an engine.
func Self() string { return newOwner().String() }
