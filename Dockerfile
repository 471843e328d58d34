# SPDX-License-Identifier: Apache-2.0
# The image: the program, its loader, its libraries and their licences on nothing. No shell, no package manager.
#   scripts/image.sh                         with buildah, from a Debian made here; two builds give the same digest
#   docker build -t rayhook:0.1.0 .          the same from a published Debian
# --platform linux/arm64 compiles for that processor on this one, without emulation.
ARG BUILDPLATFORM
FROM --platform=$BUILDPLATFORM debian:bookworm-slim AS build
ARG TARGETARCH
WORKDIR /src

COPY scripts/install-deps.sh scripts/
RUN scripts/install-deps.sh "build:$TARGETARCH"

COPY CMakeLists.txt CMakePresets.json ./
COPY cmake cmake
COPY lib lib
COPY certs certs
COPY server server
COPY scripts/image-root.sh scripts/
# A folder of the machine's can be mounted there, so that a later build compiles only what changed.
ENV CCACHE_DIR=/ccache
ARG SOURCE_DATE_EPOCH=0
# Another value: compile anew.
ARG AGAIN=no
RUN scripts/image-root.sh "$TARGETARCH" /image

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rayhook" \
      org.opencontainers.image.description="Makes Ray head Services headless and lets everything that reads their variables go on working" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/rayhook"]
CMD ["--help"]
