"""Label sets: the type, its vocabulary, its constructors, and the reading of candidates in any form."""
