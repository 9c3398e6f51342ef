"""The routes of the service for programs: searches, items, and how it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from numpy.typing import NDArray
from PIL import Image
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field

from deephash_pipeline.hamming import ItemId
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.service import schemas
from deephash_pipeline.service.answering import Asked, answer, answer_codes, answer_vectors, described, index_info
from deephash_pipeline.service.pictures import Thumbnails, picture_file
from deephash_pipeline.service.requests import read_fields, require_token
from deephash_pipeline.service.service import Service

if TYPE_CHECKING:
    from deephash_pipeline.embeddings import VectorIndex

BEARER = HTTPBearer(scheme_name="token", auto_error=False)
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": schemas.Problem} for code in (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503, 507)
}


def _body(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of a body that is JSON or a form."""
    schema = model.model_json_schema()
    properties = {**schema["properties"], "image": {"type": "string", "format": "binary"}}
    form = {"type": "object", "required": ["image"], "properties": properties}
    content = {"application/json": {"schema": schema}, "multipart/form-data": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}


def add_search(app: FastAPI, service: Service) -> None:
    """Add the routes of searches."""
    told: dict[str, Any] = {"responses": PROBLEMS, "response_model_exclude_unset": True}

    @app.post("/v1/search", openapi_extra=_body(schemas.ImageQuestion), **told)
    async def search_by_image(request: Request) -> schemas.Results:
        """Find the pictures most like one that is sent."""
        with service.admitted():
            content, question = await read_fields(request, schemas.ImageQuestion, service.settings, service.fetching)
            service.check_count(question)
            name, items = service.named(question)
            asked: Asked
            if question.vector is None:
                asked, _ = await service.encoded(name, items, content)
            else:
                asked = service.vector_of(name, items.width, question)
            if question.where is not None and "where" not in items.takes:
                raise HTTPException(422, "where: it is for vectors; send a `label`")
            return await service.searching.run(
                lambda: answer(name, items, question, asked, service.in_folder(name, items, question.folder))
            )

    @app.post("/v1/search/codes", responses=PROBLEMS)
    async def search_by_codes(question: schemas.CodesQuestion) -> schemas.CodesAnswers:
        """Find the items nearest to each of some codes, without what is known of them."""
        with service.admitted("asked"):
            service.check_count(question)
            _, items = service.named(question)
            return await service.searching.run(answer_codes, items, question)

    @app.post("/v1/search/vectors", **told)
    async def search_by_vectors(question: schemas.VectorsQuestion) -> schemas.VectorsAnswers:
        """Find the vectors nearest to each of some."""
        with service.admitted("asked"):
            service.check_count(question)
            name, items = service.named(question)
            return await service.searching.run(answer_vectors, name, items, question)

    @app.get("/v1/search/{item_id:path}", **told)
    async def search_by_id(item_id: str, question: Annotated[schemas.Question, Query()]) -> schemas.Results:
        """Find the pictures most like one of the index."""

        def found() -> schemas.Results:
            name, items, known = service.with_item(question, item_id)
            within = service.in_folder(name, items, question.folder)
            return answer(name, items, question, known, within)

        with service.admitted("asked"):
            service.check_count(question)
            return await service.searching.run(found)


class Size(schemas.Where):
    """How large a picture is asked for."""

    size: int = Field(default=192, ge=16, le=2048, description="Pixels of the longer side, at most.")


def add_items(app: FastAPI, service: Service) -> None:
    """Add the routes of items: added, removed, looked at."""

    def writer(sent: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]) -> None:
        require_token(sent, service.settings)

    writing: dict[str, Any] = {
        "dependencies": [Depends(writer)],
        "responses": PROBLEMS,
        "response_model_exclude_unset": True,
    }

    @app.post("/v1/items", status_code=201, openapi_extra=_body(schemas.NewItem), **writing)
    async def add_item(request: Request) -> schemas.Item:
        """Add a picture or vector; when this is answered, it is stored for good and found by the next search."""
        with service.admitted():
            content, new = await read_fields(request, schemas.NewItem, service.settings, service.fetching)
            name, items = service.named(new)
            if new.vector is not None:
                vector = service.vector_of(name, items.width, new)
                return await service.writing.run(_add_vector, name, items, new, vector)
            if new.metadata is not None:
                raise HTTPException(422, "metadata: it is for vectors; send a `label`")
            coded = await service.encoded(name, items, content, keep=True)
            assert isinstance(items, ImageIndex)
            return await service.writing.run(_add, service, name, items, new, coded)

    @app.delete("/v1/items/{item_id:path}", **writing)
    async def remove_item(item_id: str, where: Annotated[schemas.Where, Query()]) -> schemas.Removed:
        """Remove a picture or vector from an index; files outside the index stay."""
        with service.admitted():
            await service.writing.run(_remove, service, where, item_id)
            return schemas.Removed(id=item_id)

    class Sample(schemas.Where):
        count: int = Field(default=24, ge=1, le=1000, description="How many.")
        seed: int = Field(default=0, ge=0, le=2**32, description="Equal seeds draw equal pictures.")
        folder: str | None = Field(default=None, max_length=1024, description="All of this folder, by path, in turn.")
        start: int = Field(default=0, ge=0, description="Those of a folder from this one on.")

    @app.get("/v1/items", responses=PROBLEMS, response_model_exclude_unset=True)
    def some_items(sample: Annotated[Sample, Query()]) -> list[schemas.Item]:
        """Some pictures, drawn at random, or those of a folder in turn."""
        name, items = service.named(sample)
        if sample.folder is None:
            drawn = items.index.sample(sample.count, sample.seed)
        else:
            listed = service.folders.of(items).ids_in(sample.folder)
            drawn = [items.id_of(text) for text in listed[sample.start : sample.start + sample.count]]
        ids = [item_id for item_id in drawn if item_id in items.index]
        return [described(name, items, item) for item in items.index.items(ids)]

    @app.get("/v1/folders", responses=PROBLEMS)
    def list_folders(where: Annotated[schemas.Where, Query()]) -> schemas.FolderList:
        """The folders that pictures of an index lie in."""
        files = service.folders.of(service.named(where)[1])
        return schemas.FolderList(name=Path(files.root).name, prefix=files.prefix, folders=files.folders())

    @app.get("/v1/items/{item_id:path}/thumbnail", responses=PROBLEMS, response_class=Response)
    async def item_thumbnail(item_id: str, where: Annotated[Size, Query()], request: Request) -> Response:
        """A small picture of an item."""
        return await service.showing.run(_shown, service, item_id, where, request.headers.get("If-None-Match", ""))

    @app.get("/v1/items/{item_id:path}", responses=PROBLEMS, response_model_exclude_unset=True)
    def get_item(item_id: str, where: Annotated[schemas.Where, Query()]) -> schemas.ItemWithFile:
        """A picture of the index: label, code, and its file."""
        name, items, known = service.with_item(where, item_id)
        item = items.index.get(known)
        path = None if items.width else items.path_of(item.metadata)
        file = None if path is None else picture_file(path, str(item.id), service.settings.tells_paths)
        return schemas.ItemWithFile(**described(name, items, item).model_dump(), file=file)


def _shown(service: Service, item_id: str, where: Size, known_key: str) -> Response:
    _, items, known = service.with_item(where, item_id)
    path = items.path_of(items.index.get(known).metadata)
    if path is None:
        raise HTTPException(404, "this item has no picture, only its code")
    key = Thumbnails.key(path, where.size)
    # An id may get another picture: a browser asks whether its own is still the one, which takes no decoding.
    headers = {"Cache-Control": "private, max-age=60", "ETag": f'"{key}"'}
    if key in known_key:
        return Response(status_code=304, headers=headers)
    content, kind = service.thumbnails.of(path, where.size, key)
    return Response(content, media_type=kind, headers=headers)


def _id_of(name: str, items: CodedItems, new: schemas.NewItem) -> ItemId:
    """The id of a new item; one that is there is only for items that replace it."""
    item_id = items.new_id() if new.id is None else items.id_of(new.id)
    if item_id in items.index and not new.replace:
        raise HTTPException(409, f"id: `{str(item_id)[:200]}` is in {name}; send replace=true, or another id")
    return item_id


def _add_vector(name: str, items: CodedItems, new: schemas.NewItem, vector: NDArray[Any]) -> schemas.Item:
    # A service of pictures has none of the packages of hash functions.
    vectors = cast("VectorIndex", items)
    item_id = _id_of(name, vectors, new)
    metadata = {column: [value] for column, value in (new.metadata or {}).items()}
    labels = None if new.label is None else [new.label]
    vectors.add(vector, [item_id], metadata, labels=labels, replace=new.replace)
    return described(name, vectors, vectors.index.get(item_id))


def _add(
    service: Service,
    name: str,
    items: ImageIndex,
    new: schemas.NewItem,
    coded: tuple[EncodedPixels, Image.Image | None],
) -> schemas.Item:
    encoded, picture = coded
    assert picture is not None
    path = items.keep_picture(picture)
    try:
        with service.changing:
            item_id = _id_of(name, items, new)
            before = items.index.get(item_id).metadata.get("path") if item_id in items.index else None
            items.add_codes([item_id], encoded, [path], [new.label], new.replace)
    except BaseException:
        items.forget_picture(path)
        raise
    items.forget_picture(before)
    return described(name, items, items.index.get(item_id))


def _remove(service: Service, where: schemas.Where, text: str) -> None:
    _, items, item_id = service.with_item(where, text)
    with service.changing:
        items.remove([item_id])


def add_state(app: FastAPI, service: Service) -> None:
    """Add what says what is served, and how the service is."""

    @app.get("/v1/indexes", responses=PROBLEMS)
    def list_indexes() -> list[schemas.IndexInfo]:
        """The indexes that are served."""
        return [index_info(name, items, service.settings) for name, items in service.indexes.items()]

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz")
    async def health() -> schemas.Health:
        """Whether the service answers."""
        images = await service.watching.run(lambda: sum(map(len, service.indexes.values())))
        return schemas.Health(status="ok", items=images, images=images)

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Numbers in Prometheus's text format."""
        content = await service.watching.run(generate_latest, service.metrics.registry)
        return Response(content, media_type=CONTENT_TYPE_LATEST)
