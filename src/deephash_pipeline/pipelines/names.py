"""Names of the pipelines that others than the registry speak of."""

from deephash_pipeline.common.cell import SHOWN_CODE_LENGTH

FIELD = "field"
"""The pipeline of all methods. Before the names of what it joins or reports: ``field.map_table``."""
FULL_AT_A_GLANCE, FIELD_AT_A_GLANCE = (f"{name}_at_{SHOWN_CODE_LENGTH}_bits" for name in ("full", FIELD))
"""The same with one code length, as that of the paper's methods."""
LONG_CODES = "long_codes"
"""The pipeline of codes longer than the paper's."""
MEASURED_CELLS = "measured_cells"
"""The pipeline of the cells that are there; before the names of what it reports too."""
INDEXING, TUNING = "indexing", "tuning"
"""The pipelines that make indexes of cells, and search for parameters."""
