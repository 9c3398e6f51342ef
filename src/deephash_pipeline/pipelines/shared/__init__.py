"""What several stages use: how nodes take their inputs, and the steps that stages end with."""
