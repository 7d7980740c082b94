# Parts of test/run that compile, and those that run what is compiled. Sourced by it.
# shellcheck shell=bash

part_packages() { install_groups build cluster test; }

# preset NAME [cmake argument]…: configures and builds build/NAME.
preset() {
	local name=$1
	shift
	quiet "$RESULTS/configure-$name.log" cmake --preset "$name" "$@"
	quiet "$RESULTS/build-$name.log" cmake --build --preset "$name"
}

part_build() { preset debug; }
part_gcc() { checked preset gcc; }
part_release() { checked preset release; }

part_unit() {
	local rc=0
	[ -d build/debug ] || preset debug
	ctest --test-dir build/debug --output-junit "$RESULTS/unit.xml" --output-on-failure -j 2 --timeout 300 \
		--test-output-size-passed 10000000 --test-output-size-failed 10000000 > "$RESULTS/unit.log" 2>&1 || rc=$?
	count_results "$RESULTS/unit.xml" || rc=1
	[ "$rc" = 0 ] || { grep -E '^\[  (FAILED|ERROR)|ERROR: |runtime error|Test +#' "$RESULTS/unit.log" | tail -n 60; }
	return "$rc"
}

# Leaks, use of uninitialised memory and the like that sanitizers do not see; built by gcc without sanitizers.
valgrind_one() {
	local log
	log=$RESULTS/valgrind-$(basename "$1").log
	UNDER_VALGRIND=1 valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,possible \
		"$1" > "$log" 2>&1 < /dev/null || { echo "valgrind: $1"; grep -E '^\[  FAILED|^==' "$log" | head -n 20; return 1; }
}

all_valgrind() {
	export -f valgrind_one
	export RESULTS
	printf '%s\0' build/gcc/unit/*_test | xargs -0 -P 2 -I{} bash -c 'valgrind_one {}'
}

part_valgrind() {
	preset gcc
	checked all_valgrind
}

# FUZZ_SECONDS each (default 10), from the corpus in the tree.
part_fuzz() {
	local f name rc=0 work
	preset fuzz
	for f in build/fuzz/fuzz/*_fuzz; do
		name=$(basename "$f")
		work=build/fuzz/corpus/$name
		mkdir -p "$work" "test/fuzz/corpus/${name%_fuzz}"
		quiet "$RESULTS/$name.log" "$f" -max_total_time="${FUZZ_SECONDS:-10}" -rss_limit_mb=2048 -timeout=10 -verbosity=0 \
			-artifact_prefix="$RESULTS/$name-" "$work" "test/fuzz/corpus/${name%_fuzz}" || { echo "fuzz: $name"; rc=1; }
	done
	checked test "$rc" = 0
}
