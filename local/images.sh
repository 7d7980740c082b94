#!/usr/bin/env bash
# Builds the container images from the shipped Dockerfiles, without a container engine, and loads them into the
# cluster when it runs. What an image is made of decides whether it is built again: with nothing changed, no time.
# Usage: local/images.sh [NAME…]   names: apiserver controller envd base (default: these four), node
#        local/images.sh purge     removes all images and what builds them
#   AGENT_SANDBOX_TAG=dev          tag of the images
set -euo pipefail
# shellcheck source=local/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_root
# In a mount namespace of its own: what the image store mounts is gone with this process.
[ -n "${IMAGES_OWN_MOUNTS:-}" ] || IMAGES_OWN_MOUNTS=1 exec unshare --mount --propagation private "${BASH_SOURCE[0]}" "$@"
export BUILDAH_ISOLATION=chroot TMPDIR=${TMPDIR:-/tmp}
TAG=${AGENT_SANDBOX_TAG:-dev}
OUT=$CACHE/images
CONTEXT=$CACHE/context # a copy of what images are made of: nothing changes between a hash and its image
DEBIAN=docker.io/library/debian:bookworm-slim

bh() { buildah --root "$CACHE/containers/store" --runroot "$CACHE/containers/run" --storage-driver "$driver" "$@"; }

# overlay where the kernel and the file system can, else plain copies
pick_driver() {
	local d=$CACHE/containers/driver
	mkdir -p "$CACHE/containers"
	if [ ! -s "$d" ]; then
		driver=overlay
		bh info > /dev/null 2>&1 || driver=vfs
		echo "$driver" > "$d"
	fi
	driver=$(cat "$d")
}

hash_of() { sha256sum | cut -c1-16; }
files_of() { (cd "$CONTEXT" && find "$@" -type f ! -name '*~' ! -name '*.swp' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum); }

snapshot() {
	rm -rf "$CONTEXT"
	mkdir -p "$CONTEXT"
	cp -a "$ROOT"/{Dockerfile.apiserver,Dockerfile.controller,.dockerignore,CMakeLists.txt,CMakePresets.json} \
		"$ROOT"/{common,apiserver,controller,envd,images} "$CONTEXT"
}

# fresh NAME HASH: the archive is here and was made from these inputs.
fresh() { [ -s "$OUT/$1.tar" ] && [ "$(cat "$OUT/$1.hash" 2> /dev/null)" = "$2" ]; }

# archive NAME REFERENCE HASH: the finished image as an archive that keeps layers as they are (an OCI archive would be
# compressed, which takes longer than all the rest).
archive() {
	rm -f "$OUT/$1".{tar.new,hash}
	bh push -q "$2" "docker-archive:$OUT/$1.tar.new:$2"
	mv -f "$OUT/$1.tar.new" "$OUT/$1.tar"
	echo "$3" > "$OUT/$1.hash"
}

# --- Debian itself --------------------------------------------------------------------------------------------------

# What this machine needs to reach its package mirrors (proxy, clock checks, another mirror) goes into our stand-in for
# debian:bookworm-slim, never into a Dockerfile.
apt_settings() { apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-Valid-Until|Check-Date|Retries)\b.* "..*";$' || true; }
# shellcheck disable=SC2016 # apt's own variables
apt_sources() {
	apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
		grep -E ' bookworm(-updates|-security)? main$' | sort -u || true
}

make_debian() {
	local c line opts=()
	printf '%s;\n' 'Dir::Cache::pkgcache ""' 'Dir::Cache::srcpkgcache ""' 'Acquire::Languages "none"' \
		'APT::Keep-Downloaded-Packages "false"' > "$OUT/clean"
	while IFS= read -r line; do [ -z "$line" ] || opts+=("--aptopt=$line"); done < <(apt_settings)
	for line in doc man info locale lintian groff linda; do opts+=("--dpkgopt=path-exclude=/usr/share/$line/*"); done
	opts+=("--dpkgopt=path-include=/usr/share/doc/*/copyright")
	apt_sources > "$OUT/sources.list"
	opts+=(bookworm "$OUT/debian.tar")
	[ ! -s "$OUT/sources.list" ] || opts+=("$OUT/sources.list") # else mmdebstrap's own choice
	rm -f "$OUT/debian.tar"
	bh rmi --all --force > /dev/null 2>&1 || true # all that was built on the earlier one
	mmdebstrap --quiet --variant=minbase --include=usr-is-merged --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr "${opts[@]}"
	c=$(bh from scratch)
	bh add -q "$c" "$OUT/debian.tar" /
	# as in the published image: apt keeps nothing that it can fetch or make again
	bh add -q "$c" "$OUT/clean" /etc/apt/apt.conf.d/clean
	bh config --cmd /bin/bash "$c"
	bh commit -q "$c" "$DEBIAN"
	bh rm "$c"
	rm -f "$OUT/debian.tar" "$OUT/sources.list" "$OUT/clean"
}

need_debian() {
	local h files
	files=$(grep -rls bookworm /etc/apt/sources.list /etc/apt/sources.list.d || true)
	# shellcheck disable=SC2086 # one word each
	h=$({ declare -f make_debian; apt_settings; cat $files < /dev/null; } | hash_of)
	[ "$(cat "$OUT/debian.hash" 2> /dev/null)" = "$h" ] && return 0
	step "Debian (mmdebstrap)" quiet "$CACHE/log/debian.log" make_debian
	echo "$h" > "$OUT/debian.hash"
}

# --- ours -----------------------------------------------------------------------------------------------------------

dockerfile_of() {
	case $1 in
	apiserver | controller) echo "Dockerfile.$1" ;;
	*) echo "images/$1/Dockerfile" ;;
	esac
}

inputs_of() {
	case $1 in
	apiserver | controller | envd) files_of "$(dockerfile_of "$1")" .dockerignore CMakeLists.txt CMakePresets.json common apiserver controller envd ;;
	base) files_of images/base/Dockerfile; cat "$OUT/envd-$TAG.hash" ;;
	esac
	cat "$OUT/debian.hash"
}

build_image() { # NAME REFERENCE
	local args=()
	[ "$1" != base ] || args=(--build-arg "ENVD_IMAGE=localhost/agent-sandbox-envd:$TAG")
	mkdir -p "$CACHE/ccache"
	bh bud --layers --force-rm --pull-never --network host --volume "$CACHE/ccache:/ccache" "${args[@]}" \
		-t "$2" -f "$CONTEXT/$(dockerfile_of "$1")" "$CONTEXT"
}

need_image() {
	local ref=localhost/agent-sandbox-$1:$TAG h
	h=$({ echo "$ref"; inputs_of "$1"; } | hash_of)
	fresh "$1-$TAG" "$h" && return 0
	step "image $1" quiet "$CACHE/log/image-$1.log" build_image "$1" "$ref"
	archive "$1-$TAG" "$ref" "$h"
}

# --- the node's own two, made without a network ---------------------------------------------------------------------

make_small() { # NAME FILE PATH CMD
	local c
	c=$(bh from scratch)
	bh add -q "$c" "$2" "$3"
	[ "$1" != busybox ] || small_links "$c"
	bh config --cmd "$4" "$c"
	bh commit -q "$c" "localhost/$1:1"
	bh rm "$c"
}

small_links() { # every applet by its name, as in any busybox image
	local m
	m=$(bh mount "$1")
	mkdir -p "$m/tmp" "$m/etc" "$m/root"
	chmod 1777 "$m/tmp"
	echo 'root:x:0:0:root:/root:/bin/sh' > "$m/etc/passwd"
	echo 'root:x:0:' > "$m/etc/group"
	chroot "$m" /bin/busybox --install -s /bin
	bh umount "$1"
}

need_node_images() {
	local h bin
	h=$(files_of images/node/pause.c | hash_of)
	if ! fresh pause "$h"; then
		bin=$(mktemp)
		gcc -static -Os -s -o "$bin" "$CONTEXT/images/node/pause.c"
		chmod 0755 "$bin"
		step "image pause" quiet "$CACHE/log/image-pause.log" make_small pause "$bin" /pause '["/pause"]'
		rm -f "$bin"
		archive pause localhost/pause:1 "$h"
	fi
	bin=$(command -v busybox)
	h=$(sha256sum < "$bin" | hash_of)
	if ! fresh busybox "$h"; then
		step "image busybox" quiet "$CACHE/log/image-busybox.log" make_small busybox "$bin" /bin/busybox '["/bin/sh"]'
		archive busybox localhost/busybox:1 "$h"
	fi
}

main() {
	local name archives=()
	[ $# -gt 0 ] || set -- apiserver controller envd base
	if [ "$1" = purge ]; then
		pick_driver
		bh rm --all > /dev/null 2>&1 || true
		bh umount --all > /dev/null 2>&1 || true
		umount "$CACHE/containers/store/overlay" 2> /dev/null || true # the store binds its own folder
		rm -rf "$CACHE/containers" "$OUT" "$CACHE/ccache" "$CONTEXT"
		return
	fi
	mkdir -p "$OUT" "$CACHE/log"
	exec 8> "$CACHE/lock.images"
	flock 8
	pick_driver
	! compgen -G "$CACHE/containers/store/*-containers/*/" > /dev/null || bh rm --all > /dev/null # of an interrupted build
	snapshot
	[ "$*" = node ] || need_debian
	for name; do
		case $name in
		node)
			need_node_images
			archives+=("$OUT/pause.tar" "$OUT/busybox.tar")
			;;
		apiserver | controller | envd | base)
			[ "$name" != base ] || need_image envd
			need_image "$name"
			archives+=("$OUT/$name-$TAG.tar")
			;;
		*) die "no such image: $name" ;;
		esac
	done
	"$ROOT/local/cluster" status > /dev/null || return 0
	"$ROOT/local/cluster" load "${archives[@]}"
}
main "$@"
