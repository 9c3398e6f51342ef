"""Reports: from metrics, curves and images to tables, Plotly figures, a gallery and one HTML page."""

from deephash_pipeline.common.extras import required

required("plotly", "pipeline")
