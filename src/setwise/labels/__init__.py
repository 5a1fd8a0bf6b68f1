"""Label sets: the type, its vocabulary, its constructors, and reading what people pass as candidates."""
