#!/usr/bin/env bash
# Writes docs/configuration.md from the programs' own --help. Usage: docs/options.sh [FOLDER] > docs/configuration.md
# FOLDER holds the built programs; default: the newest of build/debug, build/release and build/gcc.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-}
if [ -z "$folder" ]; then
	for f in build/{debug,release,gcc}; do
		[ ! -x "$f/apiserver" ] || [ "$f/apiserver" -ot "${folder:-/}/apiserver" ] || folder=$f
	done
	[ -n "$folder" ] || { echo "$0: no program in build/: cmake --preset debug && cmake --build --preset debug" >&2; exit 1; }
fi

# table PROGRAM: its options as a table. Help has two lines for each: the flag, and what it means.
table() {
	printf '| variable | flag | default | meaning |\n|---|---|---|---|\n'
	"$folder/$1" --help | awk '
		/^  --help/ { exit }
		/^  --/ { flag = $1; next }
		flag != "" {
			sub(/^ +/, "")
			dflt = ""
			if (match($0, / Default: .*/)) {
				dflt = substr($0, RSTART + 10)
				$0 = substr($0, 1, RSTART - 1)
				range = ""
				if (match(dflt, /\. From .*/)) {
					range = substr(dflt, RSTART + 2)
					dflt = substr(dflt, 1, RSTART - 1)
					sub(/^From/, " From", range)
				}
				sub(/\.$/, "", dflt)
				dflt = "`" dflt "`"
				$0 = $0 (range != "" ? "." range : "")
			}
			name = flag
			sub(/^--/, "", name); sub(/[=[].*/, "", name)
			gsub(/-/, "_", name)
			gsub(/\|/, "\\|")
			print "| `" toupper(name) "` | `" flag "` | " dflt " | " $0 " |"
			flag = ""
		}'
}

cat << 'END'
# Configuration

<!-- made by docs/options.sh; do not edit -->

Both programs read flags and environment variables: every flag `--foo-bar=VALUE` can be given as the variable `FOO_BAR`
too; the flag wins. A value that does not fit ends the program at its start with a message that names the option. The
chart sets what is needed; `apiserver.extraEnv` and `controller.extraEnv` in its values set the rest.

END
for program in apiserver controller; do
	printf '## %s\n\n' "$program"
	table "$program"
	echo
done
cat << 'END'
## In the cluster

Read live: a change counts at once, for what is created from then on. A new text that does not parse is refused with a
line in the log, and the last good one stays in use.

| object | key | holds |
|---|---|---|
| ConfigMap `agent-sandbox` | `config-templates` | JSON array of templates |
| | `config-sandbox-template` | the blueprint: YAML of one ReplicaSet, a Go text/template; its head explains the data |
| | `config-runtime` | JSON object of settings that can change while the programs run (none yet) |
| Secret `agent-sandbox-keys` | `keys.json` | API keys: `[{"id", "tenant", "role": "system" or "user", "hash": SHA-256 of the key in hex}]` |
| Secret `agent-sandbox-install` | `key` | 32 bytes: signs tokens, seals environment variables. With another one the sandboxes that exist cannot be resumed |

A new API key: make one (`e2b_` and 40 hex digits work with every SDK), add its hash (`printf %s "$key" | sha256sum`) to
`keys.json`. A user sees the sandboxes of its tenant, the role `system` sees all.
END
