"""The people behind votes: how they err, how far they agree, and what they say together."""
