"""Stage `data_ingestion`: see its README."""
