#!/bin/sh
# Build an image and run it by your own id, so that what it writes is yours. Nothing but /work and /tmp
# can be written.

docker build -t uncut .
docker run --rm --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
    -u "$(id -u):$(id -g)" -v "$PWD:/work" -e UNCUT_API_KEY \
    uncut -m gpt-5-mini "Which files are not used?"
