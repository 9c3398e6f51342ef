"""Requests and answers as pydantic models; the OpenAPI description is made of them."""

import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, StringConstraints
from pydantic_core import PydanticCustomError

from deephash_pipeline.retrieval.codes import MAXIMUM_CODE_LENGTH

Name = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Label = Annotated[str, StringConstraints(max_length=200)]
Labels = Annotated[
    list[Label], Field(max_length=1000), BeforeValidator(lambda given: [given] if isinstance(given, str) else given)
]
"""Or one of them."""
MOST_CODES = 1000


def _whole(given: Any) -> Any:
    if isinstance(given, bool):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return given


Whole = Annotated[int, BeforeValidator(_whole)]
"""An integer; a form has it as a text."""
Number = Annotated[float, Strict()]
"""Of JSON, and neither a text nor true."""
Truth = Annotated[bool, Strict()]
Given = Truth | str | Whole | Number | list[str]
"""A value of metadata that is sent."""
Told = Truth | str | int | float | list[str]
"""A value of metadata that is answered."""


class Where(BaseModel):
    """Which index is asked."""

    model_config = ConfigDict(extra="forbid")

    index: Name | None = Field(None, description="Name of an index; the first by default.", examples=["photos.index"])


class Question(Where):
    """How much is asked."""

    k: Whole = Field(20, ge=1, description="How many to find.", examples=[10])
    radius: Whole | None = Field(None, ge=0, le=MAXIMUM_CODE_LENGTH, description="Most bits away.", examples=[8])
    label: Labels | None = Field(None, description="Only of these labels.", examples=[["3"]])
    folder: Name | None = Field(
        None, description="Only pictures in this folder, from the one that all are in.", examples=["2020/trip"]
    )
    rescore: bool = Field(
        False, description="Whether features that the index keeps bring the nearest pictures into order."
    )
    distinct: bool = Field(False, description="Whether to hide copies of pictures that come before.")

    recall: float | None = Field(
        None, gt=0, le=1, description="Share of the exact answers to find, of vectors; by default that of the index."
    )
    code: bool = Field(False, description="Whether answers that are vectors have their codes; pictures have them.")


class Sent(Where):
    """A picture in base64, or a vector."""

    image: str = Field("", description="PNG, JPEG, WebP or BMP in base64, or a data: URL.", examples=["iVBORw0KGgo="])
    vector: list[Number] | None = Field(
        None,
        min_length=1,
        description="Numbers, in place of `image`, where the index has vectors.",
        examples=[[0.1, -0.2, 0.7]],
    )


class ImageQuestion(Question, Sent):
    """A search by a picture in base64, or by a vector."""

    where: dict[str, Any] | None = Field(
        None, description="Conditions on metadata, where the index has vectors.", examples=[{"year": {">=": 2020}}]
    )
    url: str | None = Field(None, description="Of the picture, in place of `image`, where the service allows it.")


class CodesQuestion(Where):
    """A search by codes, for programs that compute them."""

    codes: list[Annotated[str, StringConstraints(pattern="^[01]+$", max_length=MAXIMUM_CODE_LENGTH)]] = Field(
        min_length=1, max_length=MOST_CODES, description="Bits, first to last.", examples=[["011010011100"]]
    )
    k: Whole = Field(20, ge=1, description="How many to find for each.", examples=[10])
    label: Labels | None = Field(None, description="Only of these labels.")


class VectorsQuestion(Where):
    """A search by several vectors, for programs."""

    vectors: list[Annotated[list[Number], Field(min_length=1)]] = Field(
        min_length=1, max_length=MOST_CODES, examples=[[[0.1, -0.2, 0.7]]]
    )
    k: Whole = Field(20, ge=1, description="How many to find for each.", examples=[10])
    label: Labels | None = Field(None, description="Only of these labels.")
    where: dict[str, Any] | None = Field(None, description="Conditions on metadata.")
    recall: float | None = Field(None, gt=0, le=1, description="Share of the exact answers to find.")
    metadata: bool = Field(False, description="Whether answers have their metadata.")


class VectorsAnswers(BaseModel):
    """The nearest of each vector, nearest first."""

    ids: list[list[str]]
    cosines: list[list[float]] | None = Field(description="None of an index that keeps no vectors.")
    metadata: list[list[dict[str, Told]]] | None = None


class CodesAnswers(BaseModel):
    """The nearest of each code."""

    ids: list[list[str]]
    distances: list[list[int]] = Field(description="Bits that differ from the query.")


def addressable(item_id: str) -> str:
    """Return an id that a request can name in its path; others are refused.

    Raises:
        PydanticCustomError: it is a dot or two, which clients take out of paths, has a control character, or ends in
            ``/thumbnail``, an address of its own.
    """
    if any(unicodedata.category(character) == "Cc" for character in item_id):
        raise PydanticCustomError("id", "must not have a control character, such as a newline")
    if item_id in (".", "..") or item_id.endswith("/thumbnail"):
        raise PydanticCustomError("id", "must not be `.` or `..`, nor end in /thumbnail: no request would find it")
    return item_id


def _written(item_id: Any) -> Any:
    return str(item_id) if type(item_id) is int else item_id


class NewItem(Sent):
    """A picture in base64, or a vector, to be added."""

    id: Annotated[Name, BeforeValidator(_written), AfterValidator(addressable)] | None = Field(
        None,
        description="Under which it is found, text or an integer; made up by default.",
        examples=["cats/7"],
    )
    label: Label | None = Field(None, description="Of its class.", examples=["cat"])
    metadata: dict[str, Given] | None = Field(
        None, description="Of a vector, by column.", examples=[{"year": 2020, "tags": ["review"]}]
    )
    replace: bool = Field(False, description="Whether an item of the same id gives way.")


class Item(BaseModel):
    """A picture or vector of an index."""

    id: str
    label: str | None
    path: str | None = Field(
        None, description="Of its file from the folder of the index, if that has it; not of a vector."
    )
    code: str | None = Field(None, description="Bits, first to last; of a vector if asked for.")
    thumbnail: str | None = Field(None, description="Where a small picture of it is; not of a vector.")
    metadata: dict[str, Told] | None = Field(None, description="Of a vector, by column.")


class PictureFile(BaseModel):
    """The file of a picture."""

    name: str
    path: str | None = Field(description="Where it lies, if the service is for its own machine alone.")
    width: int
    height: int
    bytes: int
    changed: str = Field(description="Local time of its last change.", examples=["2020-05-04 12:00:00"])
    taken: str = Field(description="When it was taken, as EXIF says; may be empty.", examples=["2020-05-04 12:00:00"])
    camera: str = Field(description="Maker and model, as EXIF says; may be empty.")


class ItemWithFile(Item):
    """A picture or vector of an index, and the file of the picture."""

    file: PictureFile | None = Field(description="None where no file can be read.")


class Folder(BaseModel):
    """A folder that has pictures itself."""

    folder: str = Field(description="From the folder that all are in; empty for that one.", examples=["2020/trip"])
    pictures: int


class FolderList(BaseModel):
    """The folders of an index, by name, at most 5,000."""

    name: str = Field(description="Of the folder that all are in; empty where no picture is a file.")
    prefix: str = Field(description="What ids begin with.")
    folders: list[Folder]


class Result(Item):
    """A picture or vector that was found."""

    distance: int = Field(description="Bits that differ from the query.")
    cosine: float | None = Field(None, description="Of vectors and with `rescore`, by which they are in order.")
    percent: int | None = Field(None, description="How near a picture is: 100 for the same, 0 for one drawn at random.")
    near: str | None = Field(None, description="The same in words, those of `nearness` or else `different`.")


class Query(BaseModel):
    """What was searched by."""

    id: str | None = Field(description="If by an item of the index.")
    code: str | None = Field(None, description="Bits, first to last; of a vector if asked for.")


class Results(BaseModel):
    """What was found: pictures by distance, among equal distances what was added first; vectors by cosine."""

    index: str
    code_length: int
    query: Query
    results: list[Result]
    more: bool = Field(description="Whether k has cut off others within the radius.")
    approximate: bool = Field(description="Whether near items may be missing.")
    milliseconds: float


class IndexInfo(BaseModel):
    """An index that is served."""

    name: str
    items: int = Field(description="Pictures, or vectors.")
    images: int = Field(description="The same, as clients of earlier versions read it.")
    code_length: int
    hasher: str
    image_shape: tuple[int, int, int] | None = Field(description="Of pictures as they are encoded.")
    width: int = Field(description="Numbers of a vector, 0 if it has pictures.")
    labels: list[str]
    rescores: bool = Field(description="Whether a search of pictures may ask for `rescore`.")
    nearness: dict[str, float] = Field(description="Words, nearest first, and shares of bits that may differ.")
    writable: bool
    urls: bool = Field(description="Whether a search may name its picture by a URL.")
    approximate: bool


class Removed(BaseModel):
    """What was removed."""

    id: str


class Started(BaseModel):
    """Whether a search for copies was started; it may have been at work."""

    started: bool


class Health(BaseModel):
    """That the service answers."""

    status: str
    items: int = Field(description="Pictures and vectors of all indexes.")
    images: int = Field(description="The same, as clients of earlier versions read it.")


class Problem(BaseModel):
    """What was wrong with a request."""

    error: str = Field(description="One line.", examples=["k: Input should be greater than or equal to 1"])
