"""Pictures to send, and the token that the tests write with."""

import base64
import io

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

TOKEN = "a-token-of-the-tests"
WRITER = {"Authorization": f"Bearer {TOKEN}"}
ADDRESS = "http://127.0.0.1"
THREE = "photos/3/0003.png"


def picture(row, size=None, form="PNG"):
    """A digit as the bytes of a file."""
    image = Image.fromarray(np.rint(load_digits().images[row] * 255 / 16).astype("uint8"))
    buffer = io.BytesIO()
    (image if size is None else image.resize((size, size))).save(buffer, form)
    return buffer.getvalue()


def in_base64(content):
    return base64.b64encode(content).decode()


def upload(content, **fields):
    return {"files": {"image": ("p.png", content)}, "data": fields}
