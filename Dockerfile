# docker build -t klamm:0.1.0 .
# docker run --read-only -p 19092-19191:19092-19191 klamm:0.1.0 kafka-1:9092 --listen 0.0.0.0:19092-19191 --advertise localhost
ARG PYTHON=3.13.9
ARG DEBIAN=trixie

FROM python:${PYTHON}-${DEBIAN} AS build
WORKDIR /source
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /build && /build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.lock
RUN python -m venv --without-pip /klamm && \
    /build/bin/pip --python /klamm install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
# 0 leaves the session as Python, which takes no C compiler and no minute.
ARG KLAMM_COMPILE=1
RUN /build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . && \
    /build/bin/pip --python /klamm install --no-cache-dir --no-deps /wheels/*.whl

FROM python:${PYTHON}-slim-${DEBIAN}
COPY --from=build /klamm /klamm
RUN install -d -o 10001 -g 10001 -m 700 /var/lib/klamm
# A number, so that Kubernetes can see that it is not root's.
USER 10001:10001
ENV PATH=/klamm/bin:$PATH PYTHONUNBUFFERED=1 STATE_DIRECTORY=/var/lib/klamm
EXPOSE 19092-19191
STOPSIGNAL SIGTERM
# It finds the address in the arguments and in klamm.yaml, or in KLAMM_ADMIN.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["klamm", "health"]
ENTRYPOINT ["klamm", "run"]
CMD ["--help"]
