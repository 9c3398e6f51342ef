"""Search by image over HTTP, for programs and, by a page, for people.

It serves `deephash_pipeline.photographs` and knows neither Kedro nor a command line.
"""

from deephash_pipeline.common.extras import missing

try:
    from deephash_pipeline.service.app import create_app
    from deephash_pipeline.service.settings import ServiceSettings, read_token
except ModuleNotFoundError as error:
    raise missing(error, "serve") from error

__all__ = ["ServiceSettings", "create_app", "read_token"]
