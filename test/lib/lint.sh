# Parts of test/run that look at the sources. Sourced by it.
# shellcheck shell=bash

c_files() { git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h'; }

clean_format() { c_files | xargs -0 -r clang-format --dry-run -Werror; }
part_format() { checked clean_format; }

part_banned() { checked test/lint/selftest.sh && checked test/lint/banned.sh; }
part_headers() { checked test/lint/headers.sh; }
part_layers() { checked test/lint/layers.sh; }
part_docs() {
	[ -d build/debug ] || preset debug
	checked test/lint/docs.sh build/debug
}

shell_files() { git ls-files -z --cached --others --exclude-standard | xargs -0 grep -lZE -m 1 '^#!.*\bbash|^# shellcheck shell=bash'; }
clean_shell() { shell_files | xargs -0 -r shellcheck -x -P "$ROOT"; }
part_shell() { checked clean_shell; }

# A source is looked at again when it, any header or the settings changed.
tidy_one() {
	local key stamp
	key=$({ cat .clang-tidy "$1"; cat build/test-results/headers.sum; } | sha256sum | cut -c1-32)
	stamp=build/debug/tidy/$key
	[ ! -e "$stamp" ] || return 0
	clang-tidy -p build/debug --quiet "$1" 2> /dev/null && touch "$stamp"
}
export -f tidy_one

clean_tidy() {
	mkdir -p build/debug/tidy
	c_files | tr '\0' '\n' | grep '\.h$' | xargs sha256sum > "$RESULTS/headers.sum"
	c_files | tr '\0' '\n' | grep -E '^(common|apiserver|controller|envd)/.*\.c$' |
		while read -r f; do ! grep -qF "/$f\"" build/debug/compile_commands.json || echo "$f"; done |
		xargs -r -P 2 -I{} bash -c 'tidy_one {}'
}
part_tidy() {
	[ -d build/debug ] || preset debug
	checked clean_tidy
}
