"""What a model says about rows, behind one protocol: arrays, the largest probabilities, tensors on a device."""
