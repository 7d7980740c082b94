# Shared by the scripts of this folder, quickstart and test/run: folders, and steps shown with their time.
# shellcheck shell=bash disable=SC2034
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/agent-sandbox   # everything we make outside the source tree
BIN=$CACHE/bin                                        # the programs of Kubernetes
STATE=${AGENT_SANDBOX_STATE:-$CACHE/state}            # one cluster; another folder is another cluster
export DEBIAN_FRONTEND=noninteractive
# pip and npm bring authorities of their own; what this machine trusts is what counts.
if [ -s /etc/ssl/certs/ca-certificates.crt ]; then
	export PIP_CERT=${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt}
	export NODE_EXTRA_CA_CERTS=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}
fi

die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
say() { printf '[%s] %s\n' "$(date +%T)" "$*" >&2; }

# step NAME CMD…: runs CMD (a program or a function) and shows its name before and its time after.
# Not to be used as a condition: CMD runs with errexit, which a condition would switch off.
step() {
	local name=$1 t0=${EPOCHREALTIME/[.,]/} rc=0 ms
	shift
	say "$name"
	local was=$-
	set +e
	(set -e; "$@")
	rc=$?
	[[ $was != *e* ]] || set -e
	ms=$(((${EPOCHREALTIME/[.,]/} - t0) / 1000))
	[ "$rc" = 0 ] || { say "$(printf '%s: failed (%d) after %d.%d s' "$name" "$rc" $((ms / 1000)) $((ms % 1000 / 100)))"; return "$rc"; }
	say "$(printf '%s: %d.%d s' "$name" $((ms / 1000)) $((ms % 1000 / 100)))"
}

# quiet LOG CMD…: sends CMD's output to LOG and shows its end only if CMD fails. A function runs with errexit
# as in step, unless quiet is itself part of a condition.
quiet() {
	local log=$1 rc=0
	shift
	mkdir -p "$(dirname "$log")"
	local was=$-
	set +e
	(set -e; "$@") > "$log" 2>&1 < /dev/null
	rc=$?
	[[ $was != *e* ]] || set -e
	[ "$rc" = 0 ] || { tail -n 40 "$log" >&2; say "the whole output: $log"; }
	return "$rc"
}

need_root() { [ "$(id -u)" = 0 ] || die "must run as root (namespaces, mounts and cgroups)"; }
