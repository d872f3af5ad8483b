# The static binary is all that an image needs: certificates are built in, and as the first process it
# reaps and obeys SIGTERM. There is no shell here, so the model gets the file tools alone.

FROM scratch
COPY uncut /bin/uncut
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/bin/uncut"]
