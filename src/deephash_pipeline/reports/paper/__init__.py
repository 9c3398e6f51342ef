"""The paper's own tables and figures, with the measured ones beside them."""
