"""The pages of the service for people, and the files that they are made of."""

from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response, Security
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.security import HTTPAuthorizationCredentials

from deephash_pipeline.photographs import LOOK, ImageIndex
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.service import schemas
from deephash_pipeline.service.requests import require_same_site, require_token
from deephash_pipeline.service.routes import BEARER
from deephash_pipeline.service.service import Service

PAGE_FOLDER = Path(__file__).with_name("page")
PAGE = PAGE_FOLDER / "search.html"
FILES = {file.name: file for file in (LOOK, *PAGE_FOLDER.glob("*.css"), *PAGE_FOLDER.glob("*.js"))}
COMMON = "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
POLICY = f"{COMMON}img-src 'self' blob: data:; style-src 'self'; script-src 'self'"
INLINE = f"{COMMON}img-src 'self' data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""Of the page of duplicates, which is one file, as the command writes it too."""


class DuplicatesOf(schemas.Where):
    """What the page of duplicates is asked."""

    level: Level = Level.DEFAULT


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the page of searches and the page of duplicates."""

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse(PAGE.read_text("utf-8"), headers={"Content-Security-Policy": POLICY})

    @app.get("/page/{name}", include_in_schema=False)
    def file_of_page(name: str) -> Response:
        if name not in FILES:
            raise HTTPException(404, "the page has no such file")
        # A browser asks whether it has changed, as it does with the next version.
        return FileResponse(FILES[name], headers={"Cache-Control": "no-cache"})

    def of_pictures(where: schemas.Where) -> tuple[str, ImageIndex]:
        name, images = service.named(where)
        if not isinstance(images, ImageIndex):
            raise HTTPException(422, f"index: {name} has vectors; duplicates are of pictures")
        return name, images

    @app.get("/duplicates", include_in_schema=False)
    async def duplicates(where: Annotated[DuplicatesOf, Query()]) -> Response:
        arguments = (*of_pictures(where), where.level, service.settings)
        content = await service.showing.run(service.duplicates.page, *arguments)
        return HTMLResponse(content, headers={"Content-Security-Policy": INLINE})

    @app.get("/duplicates/progress", include_in_schema=False)
    def progress_of_duplicates(where: Annotated[DuplicatesOf, Query()]) -> dict[str, Any]:
        name, _ = of_pictures(where)
        told: dict[str, Any] = service.duplicates.progress(name, where.level)
        return told

    @app.post("/duplicates", include_in_schema=False, status_code=202)
    def look_for_duplicates(
        request: Request,
        where: Annotated[DuplicatesOf, Query()],
        sent: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)],
    ) -> schemas.Started:
        require_same_site(request)
        # It takes all cores for minutes; a service that nobody may write is for who can reach it.
        if service.settings.token is not None:
            require_token(sent, service.settings)
        started = service.duplicates.start(*of_pictures(where), where.level)
        service.metrics.duplicates.inc(started)
        return schemas.Started(started=started)
