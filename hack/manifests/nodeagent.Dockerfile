# The image of the node agent, from what `make build` made. From the root of the repository:
#
#   docker build -f hack/manifests/nodeagent.Dockerfile -t federation-nodeagent .                     mode nftables: the program, nothing else
#   docker build -f hack/manifests/nodeagent.Dockerfile --target iptables -t federation-nodeagent .   both modes
FROM debian:bookworm-slim AS iptables
RUN apt-get update && apt-get install -y --no-install-recommends iptables && rm -rf /var/lib/apt/lists/*
COPY _output/bin/federation-nodeagent /
ENTRYPOINT ["/federation-nodeagent"]

FROM scratch
COPY _output/bin/federation-nodeagent /
ENTRYPOINT ["/federation-nodeagent"]
