#!/bin/sh
# One run for each checkout in repos.txt, a path a line. Each gets a session and a result of its own,
# and a run that ended with 75 is run once more (--retries would repeat every failure).
# Without GNU parallel: xargs -P 4 -d '\n' -n 1 ./each.sh <repos.txt

cat >each.sh <<'EACH'
#!/bin/sh
name=$(basename "$1")
exec uncut -q -m gpt-5-mini --timeout 30m -C "$1" --session "out/$name.jsonl" \
    --output json -o "out/$name.json" -f task.md >/dev/null
EACH
chmod +x each.sh
mkdir -p out
parallel --jobs 4 --joblog out/jobs.tsv ./each.sh :::: repos.txt
awk -F '\t' 'NR == FNR { if ($7 == 75) again[$1]; next } FNR in again' out/jobs.tsv repos.txt >again.txt
parallel --jobs 2 --delay 10 ./each.sh :::: again.txt
jq -r '[.outcome, .session, .message] | @tsv' out/*.json
