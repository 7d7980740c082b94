#!/usr/bin/env bash
# The checks beside this file find what they are there to find: each is run on a tree with one fault.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
bad=0

# finds CHECK FILE TEXT: the check must complain of a tree that holds just this file (and a harmless header).
# passes CHECK FILE TEXT: it must not.
tree() {
	rm -rf "${W:?}"/*
	mkdir -p "$W"/{common/base,common/http,apiserver,controller,envd,"$(dirname "$1")"}
	echo '#pragma once' | tee "$W/common/base/ok.h" "$W/common/http/ok.h" "$W/apiserver/ok.h" > /dev/null
	printf '%b\n' "$2" > "$W/$1"
}
finds() {
	tree "$2" "$3"
	! "$here/$1.sh" "$W" > /dev/null 2>&1 || { echo "$1 does not find: $3"; bad=1; }
}
passes() {
	tree "$2" "$3"
	"$here/$1.sh" "$W" > /dev/null 2>&1 || { echo "$1 complains of: $3"; bad=1; }
}

finds banned common/base/x.c 'void f(char *a) { strcpy(a, "x"); }'
finds banned envd/x.c 'char *f(void) { return strdup("x"); }'
finds banned controller/x.c 'void f(void) { exit (1); }'
passes banned controller/main.c 'int main(void) { exit(1); }'
passes banned common/base/x.c '/* strcpy(a, b) */ void f(void) { x->system(1); my_exit(2); _exit(1); } // system("x")'
passes banned common/base/alloc.c 'void *f(void) { return malloc(1); }'
finds headers common/base/x.h 'size_t f(void);'
passes headers common/base/x.h '#pragma once\n#include <stddef.h>\nsize_t f(void);'
finds headers common/base/x.h 'struct s { int a; };'
finds layers common/base/x.c '#include "http/ok.h"'
finds layers common/http/x.c '#include "apiserver/ok.h"'
finds layers controller/x.c '#include "apiserver/ok.h"'
finds layers apiserver/x.c '#include <uthash.h>'
passes layers apiserver/x.c '#include "http/ok.h"\n#include "apiserver/ok.h"\n#include "ok.h"'
exit $bad
