# Parts of test/run that bring up the whole system and drive it through the SDKs. Sourced by it.
# shellcheck shell=bash
NAMESPACE=agent-sandbox
HTTP_PORT=${TEST_HTTP_PORT:-11000} HTTPS_PORT=${TEST_HTTPS_PORT:-11443}

part_kubernetes() { "$ROOT/local/build.sh"; }
part_cluster() {
	check_names
	[ -z "${CI:-}" ] || part_down # of a run that was cut off
	"$CLUSTER" up
}
part_images() { "$ROOT/local/images.sh"; }

part_install() {
	quiet "$RESULTS/helm.log" install_release "$NAMESPACE" "$HTTPS_PORT"
	publish_release "$NAMESPACE" "$HTTP_PORT" "$HTTPS_PORT"
	access_files "$NAMESPACE" "$HTTPS_PORT"
}

part_chart() {
	checked quiet "$RESULTS/chart-lint.log" "$BIN/helm" lint charts/agent-sandbox --values local/values.yaml
	checked quiet "$RESULTS/chart-render.log" "$BIN/helm" template agent-sandbox charts/agent-sandbox --values local/values.yaml
}

# The Kubernetes client's tests against the real thing.
part_live() {
	local rc=0
	[ -x build/debug/unit/kube_live_test ] || preset debug
	"$CLUSTER" exec env "KUBE_TEST_CONFIG=$STATE/pki/admin.conf" build/debug/unit/kube_live_test > "$RESULTS/live.log" 2>&1 || rc=1
	count_results "$RESULTS/live.log" || rc=1
	[ "$rc" = 0 ] || tail -n 40 "$RESULTS/live.log"
	return "$rc"
}

requirements() { grep -vE '^ *(#|$)' "$1"; }

part_sdk() {
	local pinned newest
	mapfile -t pinned < <(requirements test/e2e/requirements.txt)
	mapfile -t newest < <(requirements test/e2e/requirements-newest.txt)
	quiet "$RESULTS/sdk-pinned.log" python_sdk test-pinned "${pinned[@]}"
	quiet "$RESULTS/sdk-newest.log" python_sdk test-newest newest "${newest[@]}"
	quiet "$RESULTS/sdk-javascript.log" javascript_sdk e2b
}

# What the tests read: see test/e2e/README.md.
e2e_environment() {
	# shellcheck source=/dev/null
	. "$STATE/access/env"
	export AGENT_SANDBOX_API=http://127.0.0.1:$HTTP_PORT SANDBOX_NAMESPACE=$NAMESPACE
	export KUBECTL="$CLUSTER exec kubectl" NODE_EXTRA_CA_CERTS=$STATE/access/ca.crt
	export E2E_JAVASCRIPT=$CACHE/javascript
	E2E_NODE=$(node_folder)/node
	export E2E_NODE
	unset E2B_API_URL E2B_ACCESS_TOKEN E2B_DEBUG
}

# python_tests NAME VENV [pytest argument]…
python_tests() {
	local name=$1 venv=$2 rc=0
	shift 2
	"$CACHE/venv/$venv/bin/python" -m pytest test/e2e --junitxml="$RESULTS/e2e-$name.xml" "$@" > "$RESULTS/e2e-$name.log" 2>&1 < /dev/null || rc=$?
	[ "$rc" = 5 ] && rc=0 # none selected
	[ -s "$RESULTS/e2e-$name.xml" ] && { count_results "$RESULTS/e2e-$name.xml" || rc=1; }
	[ "$rc" = 0 ] || { grep -E '^(FAILED|ERROR)|^E  ' "$RESULTS/e2e-$name.log" | head -n 60; echo "the whole output: $RESULTS/e2e-$name.log"; }
	return "$rc"
}

# shellcheck disable=SC2086 # E2E_ARGS: more arguments, e.g. "-k create -x"
part_e2e() {
	local rc=0
	e2e_environment
	step "Python, pinned" python_tests pinned test-pinned ${E2E_ARGS:-} || rc=1
	step "Python, newest" python_tests newest test-newest -m any_sdk ${E2E_ARGS:-} || rc=1
	[ "$rc" = 0 ] || save_logs
	return "$rc"
}

save_logs() {
	local pod
	for pod in $("$CLUSTER" kubectl -n "$NAMESPACE" get pods -l app.kubernetes.io/name=agent-sandbox -o name); do
		"$CLUSTER" kubectl -n "$NAMESPACE" logs "$pod" > "$RESULTS/$(basename "$pod").log" 2>&1 || true
	done
	"$CLUSTER" kubectl -n "$NAMESPACE" get rs,pods,events > "$RESULTS/objects.log" 2>&1 || true
}

part_down() {
	"$CLUSTER" wipe
	rm -rf "${STATE:?}/access"
	rmdir "$STATE" 2> /dev/null || true
}
