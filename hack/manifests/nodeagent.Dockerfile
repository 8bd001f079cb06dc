# The image of the node agent, from what `make build` made. From the root of the repository:
#
#   docker build -f hack/manifests/nodeagent.Dockerfile -t federation-nodeagent .                     mode nftables: the program, nothing else
#   docker build -f hack/manifests/nodeagent.Dockerfile --target iptables -t federation-nodeagent .   both modes
#
# The second one has a distribution below it, and is what that was on the day. To have looked at it, name it by its digest:
# --build-arg BASE=debian@sha256:… (docker buildx imagetools inspect debian:bookworm-slim shows the present one).
ARG BASE=debian:bookworm-slim
FROM $BASE AS iptables
RUN apt-get update && apt-get install -y --no-install-recommends iptables && rm -rf /var/lib/apt/lists/*
COPY _output/bin/federation-nodeagent /
ENTRYPOINT ["/federation-nodeagent"]

FROM scratch
COPY _output/bin/federation-nodeagent /
ENTRYPOINT ["/federation-nodeagent"]
