"""How Kedro runs here: datasets, runners, tracking, hooks, environments."""
