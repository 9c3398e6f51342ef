# syntax=docker/dockerfile:1
# Search by image, computed by ONNX Runtime: no PyTorch, no Kedro, no MLflow.
#
#   deephash-pipeline export-onnx photos.index/hasher.safetensors -o photos.index/hasher.onnx
#   docker build -t deephash-search .
#   docker run --rm -p 127.0.0.1:8000:8000 --user "$(id -u)" -v "$PWD/photos.index:/index" deephash-search

FROM python:3.12-slim AS wheel
WORKDIR /build
COPY pyproject.toml README.md LICENSE .telemetry ./
COPY conf conf
COPY src src
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY pyproject.toml requirements.lock /tmp/
COPY --from=wheel /wheels /wheels
# The user below may write no bytecode: without it every start compiles all libraries.
RUN python -m venv /uv && sed -n '/^uv==/,/[^\\]$/p' /tmp/requirements.lock > /uv/uv.txt \
    && /uv/bin/pip install --no-cache-dir --require-hashes --no-deps --requirement /uv/uv.txt \
    && /uv/bin/uv pip install --system --no-cache --compile-bytecode --constraints /tmp/requirements.lock --group /tmp/pyproject.toml:serving \
    && /uv/bin/uv pip install --system --no-cache --compile-bytecode --no-deps /wheels/*.whl \
    && rm -r /uv && useradd --uid 1000 search
USER 1000
# Kernels that are compiled at the first search.
ENV NUMBA_CACHE_DIR=/tmp/numba
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz')"]
ENTRYPOINT ["deephash-pipeline", "serve"]
# Within the container it listens everywhere; who reaches it is what `docker run -p` says.
CMD ["/index", "--runtime", "onnx", "--host", "0.0.0.0", "--allowed-host", "localhost"]
