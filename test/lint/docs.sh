#!/usr/bin/env bash
# docs/configuration.md says what the programs say; the documents name no file that is not there, and the table of
# duties in docs/architecture.md leaves no module out.
# Usage: docs.sh [FOLDER with the built programs]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bad=0

docs/options.sh "$@" | diff -u docs/configuration.md - > /dev/null ||
	{ echo "docs/configuration.md is not what docs/options.sh makes of the programs' options"; bad=1; }

# Words in backticks that look like files of ours: with an ending of sources, or in one of our folders.
endings='[A-Za-z0-9_./-]+\.(c|h|sh|md|py|yaml|json)'
folders='(common|apiserver|controller|envd|test|local|charts|docs|images|examples)/[A-Za-z0-9_./-]*'
while IFS=: read -r doc name; do
	[ -e "$name" ] || [ -n "$(git ls-files --cached --others --exclude-standard -- "*/$name" | head -n 1)" ] ||
		{ echo "$doc names $name, which is not there"; bad=1; }
done < <(grep -oE "\`($endings|$folders)\`" README.md docs/architecture.md | tr -d '\`')

# The first column of the table: names of modules, or patterns of them.
mapfile -t modules < <(sed -n '/^## Which duty/,/^## Layers/p' docs/architecture.md | cut -d '|' -f 2 | grep -oE "\`[^\`]+\`" | tr -d '\`')
while IFS= read -r file; do
	name=$(basename "${file%.c}")
	for m in "${modules[@]}"; do
		# shellcheck disable=SC2053 # a pattern
		[[ $name != $m ]] || continue 2
	done
	echo "docs/architecture.md has no duty for $file"
	bad=1
done < <(git ls-files --cached --others --exclude-standard -- ':(glob)common/*/*.c' ':(glob)apiserver/*.c' \
	':(glob)controller/*.c' ':(glob)envd/*.c')
exit $bad
