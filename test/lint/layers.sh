#!/usr/bin/env bash
# Layers point one way: base < http < kube < domain < the programs, and no program includes another's files.
# uthash is included by common/base/map.c alone. Usage: layers.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"
declare -A rank=([common/base]=1 [common/http]=2 [common/kube]=3 [common/domain]=4 [apiserver]=5 [controller]=5 [envd]=5)
bad=0

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]+)[">]'

# layer_of PATH → $layer: common/http/x.h → common/http, apiserver/x.h → apiserver
layer_of() {
	layer=${1%/*}
	case $1 in
	common/*/*) ;;
	*) layer=${1%%/*} ;;
	esac
}

complain() { echo "$1"; bad=1; }

while IFS=: read -r file line text; do
	[[ $text =~ $include ]] || continue
	name=${BASH_REMATCH[1]}
	[[ $name != uthash.h || $file == common/base/map.c ]] || complain "$file:$line: uthash outside of map.c"
	[[ $name != *../* ]] || complain "$file:$line: include by a name from the top or from common/, without .."
	target=''
	for t in "${file%/*}/$name" "common/$name" "$name"; do
		[ ! -e "$t" ] || { target=$t; break; }
	done
	[ -n "$target" ] || continue # a library's
	layer_of "$file"
	from=$layer
	layer_of "$target"
	[ "$from" != "$layer" ] || continue
	if [ -z "${rank[$from]:-}" ] || [ -z "${rank[$layer]:-}" ]; then
		complain "$file:$line: $layer is no layer that $from may include ($name)"
	elif [ "${rank[$layer]}" -ge "${rank[$from]}" ]; then
		complain "$file:$line: $from includes $name of $layer"
	fi
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' --include='*.[ch]' common apiserver controller envd 2> /dev/null)
exit $bad
