"""Axe finds nothing on the pages, in light and dark, with what opens on them."""

import html
import importlib.util
import json
import re
from pathlib import Path

import httpx
import pytest
from fastapi.responses import HTMLResponse

from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.service import ServiceSettings, create_app
from deephash_pipeline.service.pages import PAGE
from tests.cli.test_photographs import extractor  # noqa: F401 - a small network in the place of that for photographs
from tests.service.pictures import TOKEN
from tests.service.test_duplicates import found, held, scenes, started  # noqa: F401
from tests.services import dumped, in_a_browser, running

AXE = Path(importlib.util.find_spec("axe_core_python").origin).with_name("axe.min.js")
# Of blink: dark is 0, light is 1.
SCHEMES = {"dark": 0, "light": 1}


def findings(service, address, profile, scheme, dialog=False):
    """What axe finds: rule, what to mend, elements. A dialog is open where there is to be one."""
    dump = dumped(f"{service}{address}", profile, f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}")
    told = json.loads(html.unescape(re.search(r'data-axe="([^"]*)"', dump)[1]))
    assert told["dark"] == (scheme == "dark")
    assert told["dialog"] == dialog
    assert told["passes"] > 10
    return told["findings"]


def watched(page, before):
    """A page on which axe looks once a script is through."""
    script = f"""const wait = milliseconds => new Promise(later => setTimeout(later, milliseconds));
        addEventListener("load", async () => {{
            {before}
            await wait(1000);
            const found = await axe.run();
            document.documentElement.dataset.axe = JSON.stringify({{
                dark: matchMedia("(prefers-color-scheme: dark)").matches, passes: found.passes.length,
                dialog: document.querySelector("dialog[open]") !== null,
                findings: found.violations.map(one => [one.id, one.help, one.nodes.map(node => node.html)])}});
        }});"""
    scripts = "".join(f"<script>{each}</script>" for each in (AXE.read_text(), script))
    return HTMLResponse(page.replace("</body>", f"{scripts}</body>"))


STATES = {
    "pictures": "",
    "codes": "$('codes').click();",
    "large": "document.querySelectorAll('#grid button')[1].click();",
    "adding": """await take(await (await fetch(document.querySelector("#grid img").src)).blob()); $("add").click();""",
}
DIALOGS = ("large", "adding")


@in_a_browser
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_on_the_page_of_searches(build, tmp_path, scheme):
    index = build("photos.index")
    app = create_app({"photos.index": index}, ServiceSettings(token=TOKEN, tells_paths=True))

    @app.get("/watched-{state}")
    def state_of_page(state: str):
        return watched(PAGE.read_text(), f"await started; {STATES[state]}")

    with running(app) as service:
        address = "/watched-{}#index=photos.index&id=photos%2F3%2F0003.png"
        seen = {
            state: findings(service, address.format(state), tmp_path / "profile", scheme, state in DIALOGS)
            for state in STATES
        }
    index.close()
    assert seen == {state: [] for state in STATES}


@in_a_browser
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_on_the_page_of_duplicates(scenes, held, tmp_path, scheme):  # noqa: F811
    settings = ServiceSettings(token=TOKEN)
    app = create_app({"photos": scenes}, settings)

    @app.get("/watched")
    def state_of_page():
        return watched(app.state.service.duplicates.page("photos", scenes, Level.DEFAULT, settings), "")

    with running(app) as service, httpx.Client(base_url=service) as client:
        assert findings(service, "/watched", tmp_path / "profile", scheme) == []
        started(client)
        assert findings(service, "/watched", tmp_path / "profile", scheme) == []


@in_a_browser
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_on_groups_of_copies(scenes, tmp_path, scheme):  # noqa: F811
    app = create_app({"photos": scenes}, ServiceSettings(token=TOKEN))
    with running(app) as service, httpx.Client(base_url=service) as client:
        page = found(client)
        assert "1 group " in page

        @app.get("/watched")
        def state_of_page():
            return watched(page, "")

        assert findings(service, "/watched", tmp_path / "profile", scheme) == []
