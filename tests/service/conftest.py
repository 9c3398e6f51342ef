import pytest
from starlette.testclient import TestClient

from deephash_pipeline import ImageHasher
from deephash_pipeline.photographs import ImageIndex, add_files, list_images
from deephash_pipeline.service import ServiceSettings, create_app
from tests.cli.conftest import write_digits
from tests.service.pictures import ADDRESS, TOKEN


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Sixty digits as files, a folder for each class."""
    folder = tmp_path_factory.mktemp("root") / "photos"
    write_digits(folder, range(60))
    return folder


def index_of(photos, folder):
    """An index of the photos whose ids start at their folder."""
    images, _ = list_images([photos])
    named = [image._replace(id=str(image.path.relative_to(photos.parent))) for image in images]
    index = ImageIndex.create(folder, ImageHasher.pretrained("digits-48", device="cpu"))
    add_files(index, named)
    return index


@pytest.fixture
def build(photos, tmp_path):
    """Make an index of the photos."""
    return lambda name="photos.index": index_of(photos, tmp_path / name)


@pytest.fixture(scope="module")
def module_client(photos, tmp_path_factory):
    """A service that all tests of a file ask and none changes."""
    with index_of(photos, tmp_path_factory.mktemp("indexes") / "photos.index") as index:
        settings = ServiceSettings(token=TOKEN, most_bytes=200_000, most_pixels=250_000)
        yield TestClient(create_app({"photos": index}, settings), base_url=ADDRESS, raise_server_exceptions=False)


@pytest.fixture
def index(build):
    with build() as index:
        yield index


@pytest.fixture
def serve():
    """A client of a service of some indexes."""

    def serve(indexes, **settings):
        return TestClient(create_app(indexes, ServiceSettings(token=TOKEN, **settings)), base_url=ADDRESS)

    return serve


@pytest.fixture
def client(index, serve):
    return serve({"photos": index}, most_bytes=200_000, most_pixels=250_000)
