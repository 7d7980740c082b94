# Installs the chart into the local cluster and tells how to reach it. Sourced after lib.sh.
# shellcheck shell=bash
CLUSTER=$ROOT/local/cluster

# Changes when an image does, so that its pods are made anew (the tag stays the same).
image_digest() { tar -xOf "$CACHE/images/$1-dev.tar" manifest.json | sed 's/.*"Config":"\([0-9a-f]\{16\}\).*/\1/'; }

# install_release NAMESPACE HTTPS_PORT [helm argument]…
install_release() {
	local ns=$1 port=$2 p args=()
	shift 2
	for p in apiserver controller; do
		args+=(--set-string "$p.podAnnotations.agent-sandbox\.io/image=$(image_digest "$p")")
	done
	"$CLUSTER" helm upgrade --install agent-sandbox "$ROOT/charts/agent-sandbox" --namespace "$ns" --create-namespace \
		--values "$ROOT/local/values.yaml" --set "domain=sandbox.localhost:$port" "${args[@]}" --wait --timeout 180s "$@" ||
		{ release_trouble "$ns"; return 1; }
}

release_trouble() { # what a person would look at first
	"$CLUSTER" kubectl -n "$1" get pods -o wide
	"$CLUSTER" kubectl -n "$1" get events --sort-by=.lastTimestamp | tail -n 20
	local pod
	for pod in $("$CLUSTER" kubectl -n "$1" get pods -l app.kubernetes.io/name=agent-sandbox -o name); do
		echo "--- $pod"
		"$CLUSTER" kubectl -n "$1" logs --tail=20 "$pod"
	done
}

# publish_release NAMESPACE HTTP_PORT HTTPS_PORT
publish_release() { "$CLUSTER" publish "$2" "$1/agent-sandbox:80" "$3" "$1/agent-sandbox:443"; }

secret() { "$CLUSTER" kubectl -n "$1" get secret "$2" -o "jsonpath={.data.${3//./\\.}}" | base64 -d; }

# access_files NAMESPACE HTTPS_PORT: writes $STATE/access/{ca.crt,ca-bundle.crt,env}; env holds what a client needs.
# The bundle is the machine's own authorities and ours, so that other https still works with it.
access_files() {
	local dir=$STATE/access key
	(umask 077; mkdir -p "$dir")
	key=$(secret "$1" agent-sandbox-admin api-key)
	[ -n "$key" ] || die "the chart made no first key"
	secret "$1" agent-sandbox-tls ca.crt > "$dir/ca.crt"
	cat /etc/ssl/certs/ca-certificates.crt "$dir/ca.crt" > "$dir/ca-bundle.crt"
	printf 'export %s\n' "E2B_API_KEY=$key" "E2B_DOMAIN=sandbox.localhost:$2" "SSL_CERT_FILE=$dir/ca-bundle.crt" > "$dir/env"
}

# *.localhost must resolve; Debian's libnss-myhostname (or systemd-resolved) does it.
check_names() {
	local got
	got=" $(getent ahosts any-name.sandbox.localhost | awk '{ print $1 }' | sort -u | tr '\n' ' ' || true)"
	case $got in
	*" 127.0.0.1 "* | *" ::1 "*) return 0 ;;
	esac
	grep -q '^hosts:.*\(myhostname\|resolve\)' /etc/nsswitch.conf ||
		die "names like x.sandbox.localhost do not resolve: add myhostname to the line hosts: of /etc/nsswitch.conf (package libnss-myhostname)"
	die "names like x.sandbox.localhost do not resolve to this machine (got: ${got# })"
}
