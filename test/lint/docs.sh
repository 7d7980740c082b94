#!/usr/bin/env bash
# docs/configuration.md says what the programs say, and the documents name no file that is not there.
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
exit $bad
