#!/usr/bin/env bash
# Functions that the style forbids, each with what to use in its place. Comments do not count.
# Usage: banned.sh [ROOT]; exit code 1 and one line per place when there is one.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

everywhere='strcpy|strcat|sprintf|vsprintf|strncpy|strtok|atoi|atol|atoll|sscanf|gets|strerror|localtime|gmtime|rand|srand|system|alloca'
memory='malloc|calloc|realloc|reallocarray|strdup|strndup'
ending='exit|abort'
bad=0

# places FILE WORDS: calls of the words, as FILE:LINE: text. Not members, not longer names, not comments.
places() {
	local text
	text=$(gcc -fpreprocessed -dD -E -w "$1") # takes the comments away
	awk -v file="$1" '
		/^# [0-9]+ "/ { line = $2 - 1; next }
		{ line++; print file ":" line ": " $0 }' <<< "$text" |
		grep -P ":\d+: .*(?<![\w.>\"])($2)\s*\(" || true
}

while IFS= read -r -d '' f; do
	words=$everywhere
	[[ $f == */alloc.c ]] || words+="|$memory"
	[[ $f == */main.c || $f == */alloc.c || $f == */bug.[ch] || $f == images/* ]] || words+="|$ending"
	found=$(places "$f" "$words")
	[ -z "$found" ] || { echo "$found"; bad=1; }
done < <(find common apiserver controller envd images -name '*.[ch]' -print0 2> /dev/null)
exit $bad
