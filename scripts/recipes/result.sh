#!/bin/sh
# Read a result and the events of a run with jq.

jq -e '.outcome == "ok"' result.json >/dev/null || echo "no answer"
jq -r '[.outcome, .steps, .tokens.prompt, .tokens.completion, .message] | @tsv' result.json
uncut -q -m gpt-5-mini --output jsonl "Which files are not used?" |
    jq -r 'select(.type == "tool_result") | "\(.name) took \(.duration_ms) ms: \(.summary)"'
