#!/bin/sh
# The gate of `trueup rank` for continuous integration; action.yml calls it. Inputs are the variables GATE_...: what is
# in them becomes an argument of the command and never a part of this script. Empty ones are options not given.
# Ends as the command does: 0 passed, 3 failed, 1 undecided or an error, 2 not understood.

set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# A name that begins with a hyphen is still the name of a file.
scores=${GATE_SCORES:-}
case $scores in -*) scores=./$scores ;; esac

set -- "$scores" "--fail-if=${GATE_FAIL_IF:-worse}" \
    ${GATE_BY:+"--by=$GATE_BY"} ${GATE_ITEM:+"--item=$GATE_ITEM"} ${GATE_RUN:+"--run=$GATE_RUN"} \
    ${GATE_WORKER:+"--worker=$GATE_WORKER"} ${GATE_ANSWER:+"--answer=$GATE_ANSWER"} \
    ${GATE_GOLD:+"--gold=$GATE_GOLD"} ${GATE_CLUSTER:+"--cluster=$GATE_CLUSTER"} \
    ${GATE_JUDGES:+"--judges=$GATE_JUDGES"} ${GATE_BASELINE:+"--baseline=$GATE_BASELINE"} \
    ${GATE_MARGIN:+"--margin=$GATE_MARGIN"} ${GATE_LEVEL:+"--level=$GATE_LEVEL"} \
    ${GATE_LOWER_IS_BETTER:+"--lower-is-better=$GATE_LOWER_IS_BETTER"} ${GATE_REPORT:+"--report=$GATE_REPORT"}
# Further options, one to a line.
while IFS= read -r line; do
    [ -z "$line" ] || set -- "$@" "$line"
done <<END
${GATE_OPTIONS:-}
END

"${GATE_COMMAND:-trueup}" rank "$@" >"$work/out" 2>"$work/err"
code=$?

# The line that says it all comes last: on the error output where there was no decision.
cat "$work/out" "$work/err" >"$work/all"
said=$(tail -n 1 "$work/all" | tr -d '\r')
case $code:$(tail -n 1 "$work/out") in
0:*) decision=passed ;;
3:*) decision=failed ;;
1:"Gate undecided: "*) decision=undecided ;;
*) decision=error ;;
esac

# Names in the data may look like commands to the runner, or like the end of a value: it is told a word nobody knows.
word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
[ -n "$word" ] || exit 1
[ -z "${GITHUB_ACTIONS:-}" ] || echo "::stop-commands::$word"
cat "$work/all"
[ -z "${GITHUB_ACTIONS:-}" ] || echo "::$word::"

if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    # Indented text is shown as it is, whatever is in it.
    {
        printf '### trueup: %s\n\n' "$decision"
        tr -d '\r' <"$work/all" | sed 's/^/    /'
        echo
    } >>"$GITHUB_STEP_SUMMARY"
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    {
        printf 'decision=%s\nexit-code=%s\n' "$decision" "$code"
        printf 'said<<%s\n%s\n%s\n' "$word" "$said" "$word"
    } >>"$GITHUB_OUTPUT"
fi
exit "$code"
