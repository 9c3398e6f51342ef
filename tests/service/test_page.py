"""The page, in a browser without network but for the service."""

import re
from html.parser import HTMLParser

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from deephash_pipeline.photographs import nearness
from deephash_pipeline.service import ServiceSettings, create_app
from deephash_pipeline.service.pages import FILES, PAGE
from tests.service.pictures import THREE, TOKEN, in_base64, picture
from tests.services import dumped, in_a_browser, running

SEVEN = in_base64(picture(70, size=40))


class Tiles(HTMLParser):
    """What the page shows: attributes of each tile, and of every element by its id."""

    def __init__(self, page):
        super().__init__()
        self.tiles, self.ids, self.differing, self.text = [], {}, [], {}
        self._inside = None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "data-id" in values:
            self.tiles.append(values)
        elif self.tiles and values.get("class") == "bits" and len(self.differing) < len(self.tiles):
            self.differing.append(values["aria-label"])
        elif self.tiles and values.get("class") == "near":
            self._inside = f"near {len(self.tiles) - 1}"
            self.text[self._inside] = ""
        if "id" in values:
            self.ids[values["id"]] = values
            self._inside = values["id"]
            self.text[self._inside] = ""

    def handle_data(self, text):
        if self._inside is not None:
            self.text[self._inside] += text


@pytest.fixture
def browse(build, tmp_path):
    """Open the page of a service of two indexes in Chromium, run a script in it and return its elements."""
    first, second = build("first.index"), build("second.index")
    app = create_app({"first.index": first, "second.index": second}, ServiceSettings(token=TOKEN, allow_urls=True))
    script = ""

    @app.get("/scripted")
    def scripted():
        return HTMLResponse(PAGE.read_text().replace("</body>", f"<script>{script}</script></body>"))

    @app.get("/phone")
    def phone():
        # Chromium's window is at least 500 pixels wide, a frame in it may be narrower.
        return HTMLResponse("""<iframe src="/scripted" style="width: 390px; height: 900px" onload="setTimeout(() => {
            const inside = this.contentDocument.documentElement.outerHTML; this.remove();
            document.body.appendChild(document.createElement('template')).innerHTML = inside; }, 5000)"></iframe>""")

    with running(app) as service:

        def browse(address, during=""):
            nonlocal script
            script = during
            dump = dumped(f"{service}{address}", tmp_path / "profile")
            return Tiles(re.sub(r"<script.*?</script>", "", dump, flags=re.DOTALL))

        yield browse
    first.close()
    second.close()


def test_the_page_names_no_other_address():
    page = "".join(file.read_text() for file in (PAGE, *FILES.values()))
    assert set(re.findall(r"https?://[^\s\"']+", page)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in page
    assert "url(" not in page


def test_the_page_may_load_nothing_from_elsewhere(client):
    response = client.get("/")
    assert response.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert not re.search(r"https?:|unsafe", response.headers["content-security-policy"])
    files = re.findall(r'(?:src|href)="(page/[^"]+)"', response.text)
    assert files and all(client.get(f"/{name}").status_code == 200 for name in files)
    assert client.get("/page/__init__.py").status_code == 404


@in_a_browser
def test_a_link_to_an_item_shows_what_is_most_like_it(browse):
    shown = browse("/#index=second.index&id=photos%2F3%2F0003.png")
    assert len(shown.tiles) == 24
    distances = [int(tile["data-distance"]) for tile in shown.tiles]
    assert distances == sorted(distances)
    assert shown.differing == []
    nearest = round(100 * (1 - 2 * distances[0] / 48))
    assert shown.text["near 0"].startswith(f"{nearest} %, {nearness.word(distances[0] / 48)}")
    assert shown.tiles[0]["data-id"].startswith("photos/3/")
    assert shown.text["said"].startswith("The first 24 of 60 pictures")


@in_a_browser
def test_only_what_is_near_enough_in_words_is_shown(browse):
    shown = browse("/#index=second.index&id=photos%2F3%2F0003.png&near=similar")
    assert 0 < len(shown.tiles) < 24
    assert all(int(tile["data-distance"]) <= 0.25 * 48 for tile in shown.tiles)
    assert "pictures, similar or nearer" in shown.text["said"]


@in_a_browser
def test_codes_are_shown_where_that_is_wanted_also_the_next_time(browse):
    address = "/scripted#index=second.index&id=photos%2F3%2F0003.png"
    chosen = browse(address, "started.then(() => $('codes').click());")
    # The browser keeps it, as a profile of its own.
    for shown in (chosen, browse(address)):
        distances = [tile["data-distance"] for tile in shown.tiles]
        assert shown.differing == [f"{distance} of 48 bits differ" for distance in distances]


@in_a_browser
def test_a_folder_is_chosen_and_stands_in_the_address(browse):
    shown = browse(
        "/scripted#index=first.index",
        """started.then(async () => {
            const wait = () => new Promise(later => setTimeout(later, 50));
            while (!document.querySelector("#tree [data-folder]")) await wait();
            document.querySelector('#tree [data-folder="3"]').click();
            setTimeout(() => { document.body.id = location.hash; }, 3000);
        });""",
    )
    assert shown.tiles and all(tile["data-id"].startswith("photos/3/") for tile in shown.tiles)
    assert shown.text["said"].startswith(f"{len(shown.tiles)} pictures in 3")
    assert "#index=first.index&folder=3" in shown.ids
    linked = browse("/#index=first.index&folder=3&id=photos%2F3%2F0003.png")
    assert {tile["data-id"] for tile in linked.tiles} == {tile["data-id"] for tile in shown.tiles} - {THREE}


@in_a_browser
def test_scrolling_shows_more_and_going_back_what_was_before(browse):
    shown = browse(
        "/scripted#index=first.index&id=photos%2F3%2F0003.png",
        """started.then(() => {
            scrollTo(0, document.documentElement.scrollHeight);
            setTimeout(() => { $("tree").dataset.counted = shown.length; go({folder: "4"}); }, 3000);
            setTimeout(() => { $("tree").dataset.then = shown.length; history.back(); }, 6000);
        });""",
    )
    assert int(shown.ids["tree"]["data-counted"]) > 24
    assert int(shown.ids["tree"]["data-then"]) < 24
    assert shown.text["said"].startswith("The first 24 of 60 pictures")


@in_a_browser
def test_a_click_shows_a_picture_large_and_keys_the_next_and_away(browse):
    script = """started.then(async () => {
        const key = name => $("large").dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
        document.querySelectorAll("#grid button")[1].click();
        key("ArrowRight");
        key("ArrowRight");
        key("ArrowLeft");
        setTimeout(() => { $("tree").dataset.at = [largePlace, location.hash, $("facts").innerText]; END }, 3000);
    });"""
    shown = browse("/scripted#index=first.index", script.replace("END", ""))
    place, address, facts = shown.ids["tree"]["data-at"].split(",", 2)
    assert place == "2" and "&open=photos" in address
    assert "8 \N{MULTIPLICATION SIGN} 8" in facts
    assert "open" in shown.ids["large"]
    assert shown.text["large-path"] == shown.tiles[2]["data-id"]
    assert (
        "open" not in browse("/scripted#index=first.index", script.replace("END", "$('close').click();")).ids["large"]
    )
    more = browse("/scripted#index=first.index", script.replace("END", "$('more').click();"))
    assert "open" not in more.ids["large"] and all("data-distance" in tile for tile in more.tiles)


@in_a_browser
def test_it_works_below_a_path_of_a_proxy(index, tmp_path):
    outer = FastAPI()
    outer.mount("/below/it", create_app({"photos.index": index}))
    with running(outer) as service:
        dump = dumped(f"{service}/below/it/#index=photos.index&id=photos%2F3%2F0003.png", tmp_path / "profile")
    shown = Tiles(re.sub(r"<script.*?</script>", "", dump, flags=re.DOTALL))
    assert len(shown.tiles) == 24
    assert shown.text["said"].startswith("The first 24 of 60 pictures")
    assert shown.ids["duplicates"]["href"] == "duplicates?index=photos.index"
    # A picture that cannot be loaded is taken out of its tile.
    assert len(re.findall(r'<img [^>]*src="v1/items/[^"]+"', dump)) == 25


@in_a_browser
def test_a_picture_is_searched_by_added_and_found(browse):
    shown = browse(
        "/scripted",
        f"""started.then(async () => {{
            const image = await (await fetch("data:image/png;base64,{SEVEN}")).blob();
            await take(image);
            $("add").click();
            $("new-label").value = "mine";
            $("new-id").value = "added one";
            $("token").value = "{TOKEN}";
            $("send").click();
        }});""",
    )
    assert "added one" in {tile["data-id"] for tile in shown.tiles}
    assert [tile["data-distance"] for tile in shown.tiles if tile["data-id"] == "added one"] == ["0"]
    assert shown.text["said"].startswith("Added as added one. The first 24 of 61 pictures")
    assert not shown.text["adding-said"].strip()


TYPED = """$("url").value = "http://127.0.0.1/photo.png"; $("url").dispatchEvent(new Event("change"));"""
DROPPED = """dataTransfer.setData("text/html", '<a href="ftp://a/"><img src="http://127.0.0.1/photo.png"></a>');
    document.body.dispatchEvent(new DragEvent("drop", {dataTransfer, bubbles: true}));"""
PASTED = """dataTransfer.setData("text/plain", "http://127.0.0.1/photo.png");
    document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData: dataTransfer, bubbles: true}));"""


# It is asked for, and refused, because the address is no public one.
@in_a_browser
@pytest.mark.parametrize(
    ("given", "said"),
    [(TYPED, "public"), (DROPPED, "public"), (PASTED, "public"), (f"current.urls = false; {PASTED}", "--allow-urls")],
)
def test_a_picture_may_be_named_by_its_url_where_that_is_allowed(browse, given, said):
    shown = browse("/scripted", f"started.then(() => {{ const dataTransfer = new DataTransfer(); {given} }});")
    assert "hidden" not in shown.ids["url-row"]
    assert shown.ids["said"]["class"] == "bad"
    assert said in shown.text["said"]


@in_a_browser
def test_copies_are_hidden_where_that_is_marked(browse):
    shown = browse(
        "/scripted#index=first.index&id=photos%2F3%2F0003.png",
        """started.then(() => {
            $("distinct").click();
            const names = () => performance.getEntries().map(entry => entry.name);
            setTimeout(() => { $("known-labels").dataset.asked = names(); }, 3000);
        });""",
    )
    [asked] = [one for one in shown.ids["known-labels"]["data-asked"].split(",") if "distinct=true" in one]
    assert "/v1/search/photos%2F3%2F0003.png?" in asked
    assert len(shown.tiles) == 24


@in_a_browser
def test_keys_move_from_picture_to_picture(browse):
    shown = browse(
        "/scripted#index=first.index",
        """started.then(async () => {
            for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"])
                document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
            const tiles = [...document.querySelectorAll("#grid button")];
            document.body.dataset.focused = tiles.indexOf(document.activeElement);
            document.body.id = "focus";
        });""",
    )
    assert shown.ids["focus"]["data-focused"] == "1"


@in_a_browser
def test_a_phone_shows_three_pictures_side_by_side_and_nothing_beyond_its_edge(browse):
    shown = browse(
        "/phone",
        """started.then(() => {
            const root = document.documentElement, beyond = root.scrollWidth - root.clientWidth;
            const columns = getComputedStyle($("grid")).gridTemplateColumns.split(" ").length;
            document.querySelector("main").id = `beyond-${beyond}-columns-${columns}`;
        });""",
    )
    assert [name for name in shown.ids if name.startswith("beyond")] == ["beyond-0-columns-3"]
