#!/usr/bin/env bash
# Compiles a real Kubernetes, and what it needs beside it, from Go modules into the cache folder.
# Cold about 10 minutes on 2 cores; when all is there, no time. Interrupted, it goes on where it was.
# Every program carries the version that it was built as (NAME.version beside it): another version here rebuilds it.
set -euo pipefail
# shellcheck source=local/packages.sh
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

KUBE=1.36.3 ETCD=3.6.12 HELM=3.22.0 ROUTER=2.1.0 LOCALPATH=0.0.30
kube_programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)

has() { [ -x "$BIN/$1" ] && [ "$(cat "$BIN/$1.version" 2> /dev/null)" = "$2" ]; }

# keep NAME VERSION: moves the finished program from the work folder to its place, the version last.
keep() {
	rm -f "$BIN/$1.version"
	mv -f "$W/out/$1" "$BIN/$1"
	echo "$2" > "$BIN/$1.version"
}

kube_missing() {
	local p
	for p in "${kube_programs[@]}"; do has "$p" "$KUBE" || echo "$p"; done
}

# k8s.io/kubernetes names its staging modules v0.0.0; their real version is 0.<minor>.<patch>.
kube_module() {
	local mod p
	mkdir -p "$W/kube"
	cd "$W/kube"
	mod=$(go mod download -json "k8s.io/kubernetes@v$KUBE" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
	{
		printf 'module localcluster\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$KUBE"
		awk -v v="v0.${KUBE#1.}" '$2 == "v0.0.0" && $1 ~ /^k8s.io\// { print "\t" $1 " => " $1 " " v }' "$mod"
		printf ')\n'
	} > go.mod
	{
		printf '//go:build tools\n\npackage tools\n\nimport (\n'
		for p in "${kube_programs[@]}"; do printf '\t_ "k8s.io/kubernetes/cmd/%s"\n' "$p"; done
		printf ')\n'
	} > tools.go
	go mod tidy
}

kube_program() {
	local v=k8s.io/component-base/version
	cd "$W/kube"
	# the same flags for all of them: another set would compile everything a second time
	go build -ldflags="-s -w -X $v.gitVersion=v$KUBE -X $v.gitMajor=1 -X $v.gitMinor=${KUBE:2:2}" \
		-o "$W/out/$1" "k8s.io/kubernetes/cmd/$1"
	keep "$1" "$KUBE"
}

etcd_program() { # etcd's own command is no module of its own, but its main function can be called
	mkdir -p "$W/etcd"
	cd "$W/etcd"
	printf 'module localetcd\n\ngo 1.26.0\n' > go.mod
	printf 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n' > main.go
	go get "go.etcd.io/etcd/server/v3@v$ETCD"
	go mod tidy
	go build -ldflags='-s -w' -o "$W/out/etcd" .
	keep etcd "$ETCD"
}

module_program() { # NAME VERSION PACKAGE
	cd "$W"
	GOBIN=$W/out go install -ldflags='-s -w' "$3@v$2"
	keep "$1" "$2"
}

build_all() {
	local p
	if [ -n "$(kube_missing)" ]; then
		step "the modules of Kubernetes $KUBE" quiet "$CACHE/log/kube-modules.log" kube_module
		for p in $(kube_missing); do step "$p $KUBE" quiet "$CACHE/log/build-$p.log" kube_program "$p"; done
	fi
	has etcd "$ETCD" || step "etcd $ETCD" quiet "$CACHE/log/build-etcd.log" etcd_program
	has helm "$HELM" || step "helm $HELM" quiet "$CACHE/log/build-helm.log" module_program helm "$HELM" helm.sh/helm/v3/cmd/helm
	has kube-router "$ROUTER" || step "kube-router $ROUTER (enforces NetworkPolicy)" quiet "$CACHE/log/build-kube-router.log" \
		module_program kube-router "$ROUTER" github.com/cloudnativelabs/kube-router/v2/cmd/kube-router
	has local-path-provisioner "$LOCALPATH" || step "local-path-provisioner $LOCALPATH (the default StorageClass)" \
		quiet "$CACHE/log/build-local-path.log" module_program local-path-provisioner "$LOCALPATH" github.com/rancher/local-path-provisioner
}

all_there() {
	[ -z "$(kube_missing)" ] && has etcd "$ETCD" && has helm "$HELM" && has kube-router "$ROUTER" &&
		has local-path-provisioner "$LOCALPATH"
}

mkdir -p "$BIN" "$CACHE/log"
all_there && exit 0
exec 8> "$CACHE/lock.build"
flock -n 8 || { say "another build is running; waiting for it"; flock 8; }
all_there && exit 0
go_path
rm -rf "$CACHE"/build.* # of an interrupted run
W=$(mktemp -d "$CACHE/build.XXXXXX")
trap 'rm -rf "$W"' EXIT
mkdir "$W/out"
build_all
