"""What MkDocs does for this site beside its plugins; no part of the package.

- A link from a page to a file of the repository outside docs/, ``../src/...``, leads to a page with that file, so that
  the same link works here and on a forge.
- The first page is README.
- Formulas between dollars become MathML, which browsers draw themselves.
- Examples in docstrings are shown as code.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
DISPLAYED = re.compile(r"^\$\$\n(.+?)\n\$\$$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"\$(\S(?:[^$\n]*\S)?)\$")
EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *(?:\n|\Z)).*)*", re.MULTILINE)
LANGUAGES = {".py": "python", ".yml": "yaml", ".md": "", ".cff": "yaml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file of the repository that a page links to, directly or by way of another such file."""
    files.append(File.generated(config, "index.md", content=LINK.sub(from_pages, shown("README.md"))))
    waiting = [file for file in files if file.is_documentation_page()]
    while waiting:
        page = waiting.pop()
        for path in linked_from(page):
            name = f"source/{path}" if path.endswith(".md") else f"source/{path}.md"
            if files.get_file_from_path(name) is None:
                made = File.generated(config, name, content=shown(path), inclusion=InclusionLevel.NOT_IN_NAV)
                files.append(made)
                waiting.append(made)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links out of docs/ to those pages, and formulas into MathML."""
    origin = posixpath.dirname(page.file.src_uri)

    def led_inside(link: re.Match[str]) -> str:
        path = in_repository(link[1], page.file)
        if path is None:
            return link[1]
        if path.startswith("docs/"):
            return posixpath.relpath(path.removeprefix("docs/"), origin or ".")
        name = f"source/{path}" if path.endswith(".md") else f"source/{path}.md"
        return posixpath.relpath(name, origin or ".")

    pieces = CODE.split(markdown)
    for place in range(0, len(pieces), 2):
        text = LINK.sub(led_inside, pieces[place])
        text = DISPLAYED.sub(lambda formula: f"<div>{mathml(formula[1], 'block')}</div>", text)
        pieces[place] = INLINE.sub(lambda formula: mathml(formula[1], "inline"), text)
    return "".join(pieces)


def from_pages(link: re.Match[str]) -> str:
    """The same link from the folder of pages."""
    return posixpath.relpath(link[1], "docs")


def linked_from(page: File) -> Iterator[str]:
    """Files of the repository outside docs/ to which a page links."""
    for link in LINK.findall(page.content_string):
        path = in_repository(link, page)
        if path and not path.startswith("docs/") and (ROOT / path).is_file():
            yield path


def in_repository(link: str, page: File) -> str | None:
    """Where a link leads in the repository, if out of the folder of pages; None for other links."""
    of_source = page.src_uri.startswith("source/")
    origin = page.src_uri.removeprefix("source/") if of_source else f"docs/{page.src_uri}"
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    return path if of_source or not path.startswith("docs/") else None


def shown(path: str) -> str:
    """Content of the page that shows a file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"---\nsearch: {{exclude: true}}\n---\n# {Path(path).name}\n\n`{path}`\n\n````{language}\n{text}````\n"


def mathml(formula: str, display: str) -> str:
    """Return a formula as an element of MathML on one line, in one that may begin a line of text."""
    return f"<span>{' '.join(convert(formula, display=display).split())}</span>"


class RunnableExamples(griffe.Extension):
    """Put doctests into fences, which a Markdown text would make quotations of."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that was read."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(
                lambda example: f"{example[1]}```pycon\n{example[0]}\n{example[1]}```", obj.docstring.value
            )
