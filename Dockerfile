# The service in an image: `docker build -t gristmill .`, then docs/containers.md.
#
# Built in one image and run in another, which has no compiler, no package manager's lists
# and nobody but one user without rights.
FROM rust:1-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --release --locked --package gristmill-cli \
    && install -D --mode 0755 target/release/gristmill /out/gristmill \
    && strip /out/gristmill

# Handlers are programs that a shell starts: an image without one could only serve.
FROM debian:bookworm-slim
COPY --from=build /out/gristmill /usr/local/bin/gristmill
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin gristmill \
    && install --directory --owner 10001 --group 0 --mode 0770 /data
USER 10001
WORKDIR /data
VOLUME /data
# Others can reach it, so it wants a token: without one it says so and ends.
ENV GRISTMILL_LISTEN=0.0.0.0:4747
EXPOSE 4747
# Its processes get the signal and have their time: give it 40 seconds (--stop-timeout).
STOPSIGNAL SIGTERM
ENTRYPOINT ["gristmill"]
CMD ["serve"]
