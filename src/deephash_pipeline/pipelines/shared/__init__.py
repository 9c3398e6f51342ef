"""Parts that several stages use: inputs of nodes, and the steps that stages end with."""
