# docker run -p 19092-19100:19092-19100 klamm kafka-1:9092 --listen 0.0.0.0:19092-19100 --advertise localhost
FROM python:3.13 AS build
COPY . /source
RUN python -m venv /klamm && KLAMM_COMPILE=1 /klamm/bin/pip install --no-cache-dir /source

FROM python:3.13-slim
COPY --from=build /klamm /klamm
RUN useradd --system --no-create-home klamm && install -d -o klamm -m 700 /var/lib/klamm
USER klamm
ENV PATH=/klamm/bin:$PATH PYTHONUNBUFFERED=1 STATE_DIRECTORY=/var/lib/klamm
EXPOSE 19091 19092-19191
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:19091/healthz', timeout=2)"]
ENTRYPOINT ["klamm", "run"]
CMD ["--help"]
