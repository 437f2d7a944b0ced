# PgBouncer of Debian, in transaction mode, for compose.yaml.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update -q \
  && apt-get install -y -q --no-install-recommends pgbouncer \
  && rm -rf /var/lib/apt/lists/*
COPY pgbouncer.sh /usr/local/bin/start-pgbouncer
USER postgres
EXPOSE 6432
ENTRYPOINT ["/usr/local/bin/start-pgbouncer"]
