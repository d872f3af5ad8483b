#!/bin/sh
# What to do next, by exit code: after 75 the same again, later; after 20, 21 and 124 the run goes
# on in its session. Everything else is for a person.

next="The test suite fails. Mend it."
for pause in 60 600 0; do
    uncut -q -m gpt-5-mini --timeout 20m --session s.jsonl --output json -o result.json "$next" >/dev/null
    code=$?
    case $code in
    75) sleep $pause ;;
    20 | 21 | 124) next="Go on." ;;
    *) break ;;
    esac
done
jq -r '.answer // .summary // .message' result.json
exit $code
