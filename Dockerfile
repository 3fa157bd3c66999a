# The image of `karpy run`, for any cloud. `python -m tests.image` runs these steps without Docker.
#
#   docker build --tag registry.example.com/karpy:0.1.0 .
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
COPY deploy/requirements.txt deploy/requirements-build.txt deploy/
# Every file that is fetched is checked against its hash, and none is built: there is no compiler.
RUN python -m venv /build \
 && /build/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
      -r deploy/requirements-build.txt
# A package brings the workspace it was built in, 16 MB that nothing imports.
RUN python -m venv --without-pip /opt/karpy \
 && /build/bin/pip --python /opt/karpy/bin/python --quiet --disable-pip-version-check \
      install --require-hashes --only-binary :all: --no-compile -r deploy/requirements.txt \
 && rm -rf /opt/karpy/lib/python3.*/site-packages/bazel-project
# Scanners find what is in it here.
COPY deploy/sbom.cdx.json /opt/karpy/share/karpy/
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /build/bin/uv build --quiet --wheel --out-dir /wheel \
 && /build/bin/pip --python /opt/karpy/bin/python --quiet --disable-pip-version-check \
      install --no-index --no-deps --no-compile /wheel/*.whl \
 && /opt/karpy/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/karpy/lib \
 && chmod -R a+rX,go-w /opt/karpy

FROM ${BASE}
LABEL org.opencontainers.image.title="karpy" \
      org.opencontainers.image.description="A Kubernetes node autoscaler that explains itself; a drop-in for Karpenter." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/karpy /opt/karpy
# What is installed stays as it is: root owns it, and the process is another user.
ENV PATH=/opt/karpy/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["karpy"]
CMD ["--help"]
