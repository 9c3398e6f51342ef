"""Jinja templates of pages."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(name: str, **values: object) -> str:
    """Fill a template of this package; what comes from outside cannot become markup."""
    environment = Environment(
        loader=PackageLoader("deephash_pipeline.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values)
