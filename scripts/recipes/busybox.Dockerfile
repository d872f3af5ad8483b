# The static binary beside busybox, so that the model has a shell.

FROM busybox:1.37-musl
COPY uncut /bin/uncut
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/bin/uncut"]
