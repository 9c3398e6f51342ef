"""Jinja templates of pages and cards."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: Path, **values: object) -> str:
    """Fill a template; in HTML what comes from outside cannot become markup."""
    is_html = ".html" in template.suffixes
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=is_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not is_html,
    )
    return environment.get_template(template.name).render(**values)
