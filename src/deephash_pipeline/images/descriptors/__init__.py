"""Hand-crafted features, for hash functions that are to learn without a network: GIST and a bag of SIFT words."""
