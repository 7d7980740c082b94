# The frame of test/run: runs parts, adds up what they counted, and closes with the one line. Sourced after lib.sh.
# shellcheck shell=bash
RESULTS=$ROOT/build/test-results

# count PASSED FAILED SKIPPED: adds to the totals. A part that counts nothing counts as one itself.
count() { echo "$1 $2 $3" >> "$RESULTS/counts"; }

# count_results FILE…: the same from JUnit files (ctest's or pytest's) or outputs of cmocka programs; fails when a
# test failed, or when none ran.
count_results() {
	local n
	n=$(python3 "$ROOT/test/lib/count.py" "$@")
	echo "  passed, failed, skipped: $n"
	# shellcheck disable=SC2086 # three words
	count $n
	[[ $n == *" 0 "* && $n != "0 0 0" ]]
}

# checked CMD…: one check, counted as one.
checked() {
	local rc
	local was=$-
	set +e
	(set -e; "$@")
	rc=$?
	[[ $was != *e* ]] || set -e
	if [ "$rc" = 0 ]; then count 1 0 0; else count 0 1 0; fi
	return "$rc"
}

lines_of_counts() { wc -l < "$RESULTS/counts"; }

# run_part NAME TITLE: returns the part's own exit code. What failed without counting is counted here.
run_part() {
	local before rc=0
	before=$(lines_of_counts)
	local was=$-
	set +e
	step "$1: $2" "part_$1"
	rc=$?
	[[ $was != *e* ]] || set -e
	[ "$rc" = 0 ] || [ "$(tail -n "+$((before + 1))" "$RESULTS/counts" | awk '{ n += $2 } END { print n + 0 }')" -gt 0 ] || count 0 1 0
	[ "$rc" = 0 ] || echo "$1" >> "$RESULTS/failed-parts"
	return "$rc"
}

begin() {
	mkdir -p "$RESULTS"
	: > "$RESULTS/counts"
	: > "$RESULTS/failed-parts"
}

# The closing line, and the exit code of the whole.
close() {
	[ ! -s "$RESULTS/failed-parts" ] || echo "parts that failed: $(tr '\n' ' ' < "$RESULTS/failed-parts")"
	awk '{ p += $1; f += $2; s += $3 } END {
		printf "%d passed, %d failed, %d skipped\n", p, f, s
		exit f > 0 }' "$RESULTS/counts"
}
