"""Search by image over HTTP, for programs and, by a page, for people.

It serves `deephash_pipeline.image_index` and knows neither Kedro nor a command line.
"""
