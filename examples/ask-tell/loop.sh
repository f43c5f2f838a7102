#!/bin/sh
# Ask and tell in shell: run as many of these side by side as you like.
#
#     sh loop.sh SWEEP [NAME]               while `assay up` runs, or with ASSAY_SERVER and ASSAY_TOKEN_FILE set
#
# NAME is whose trials these are. Start the loop again under the same name and it goes on with the trial it had begun;
# two loops that run at the same time need two names, or they would be handed the same trials.
sweep=$1
export ASSAY_CLIENT="${2:-loop-sh}"

while :; do
    # Exit code 8: the sweep is over. 6: nothing was free within --wait. Anything else is an error.
    lines=$(assay ask "$sweep" --shell --lease 1m --wait 10m)
    code=$?
    [ $code -eq 6 ] && continue
    [ $code -eq 0 ] || break
    eval "$lines" # ASSAY_NUMBER, ASSAY_PARAM_lr, … quoted by assay: safe whatever the values hold

    # Yours goes here: a program that prints a number.
    loss=$(awk -v lr="$ASSAY_PARAM_lr" -v width="$ASSAY_PARAM_width" -v kind="$ASSAY_PARAM_kind" 'BEGIN {
        a = log(lr / 0.03) / log(10); b = log(width / 128) / log(2)
        printf "%.17g", a * a + b * b / 8 + (kind == "plain" ? 0.1 : 0)
    }') || { assay tell "$sweep" "$ASSAY_NUMBER" --failed "exit code $?"; continue; }
    # 5: somebody else has the trial now. Anything else: it printed no number, and that is worth knowing, too.
    assay tell "$sweep" "$ASSAY_NUMBER" "loss=$loss" || [ $? -eq 5 ] ||
        assay tell "$sweep" "$ASSAY_NUMBER" --failed "it printed '$loss'" || [ $? -eq 5 ] || break
done
[ $code -eq 8 ]
