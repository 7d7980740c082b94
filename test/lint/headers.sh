#!/usr/bin/env bash
# Every header compiles alone, and twice in a row. Usage: headers.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"
libraries="libevent_core jansson openssl libcurl yaml-0.1 libpcre2-8 uuid"
# shellcheck disable=SC2086 # one word each
flags="-std=gnu17 -D_GNU_SOURCE -Icommon -I. -isystem /usr/share/include/llhttp -Wall -Wextra -Werror -fsyntax-only
	$(pkg-config --cflags $libraries)"
bad=0

while IFS= read -r -d '' h; do
	# shellcheck disable=SC2086 # one word each
	printf '#include "%s"\n#include "%s"\n' "$h" "$h" | gcc $flags -x c - || { echo "$h does not compile alone"; bad=1; }
done < <(find common apiserver controller envd -name '*.h' -print0 2> /dev/null | LC_ALL=C sort -z)
exit $bad
