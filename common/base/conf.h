/*
 * Options: one table per program gives name, type, default, bounds and help, and feeds parsing of
 * flags and environment, checks, --help and the docs. Name FOO_BAR is the environment variable and,
 * as --foo-bar=VALUE, the flag; a flag wins over the environment, which wins over the default.
 */
#ifndef BASE_CONF_H
#define BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bug.h"
#include "err.h"

enum conf_type { CONF_TEXT = 0, CONF_INT, CONF_BOOL };

struct conf_option {
	const char *name; /* FOO_BAR */
	enum conf_type type;
	const char *dflt; /* as text */
	int64_t min, max; /* CONF_INT only */
	bool secret;      /* never shown by conf_dump */
	const char *help;
};

struct conf;

/* Reads environment and argv (argv[0] is skipped). Unknown flags, bad types and values out of
 * bounds are errors that name the option. An empty variable is an empty text, but for an INT or
 * BOOL as good as none. A BOOL flag may stand without "=VALUE". With --help nothing is an error.
 * The table must outlive the result. */
int conf_load(const struct conf_option *table, size_t n, int argc, char **argv, struct conf **ret,
    struct err *e) MUST_USE;
void conf_free(struct conf *c);
/* BUG_ON if the option does not exist in the table or has another type. */
const char *conf_text(const struct conf *c, const char *name); /* "" when empty, never NULL */
int64_t conf_int(const struct conf *c, const char *name);
bool conf_bool(const struct conf *c, const char *name);
/* True when --help or -h was given. */
bool conf_help_asked(const struct conf *c);
/* NAME=value lines; values of secret options are hidden. */
void conf_dump(const struct conf *c, FILE *out);
void conf_print_help(const struct conf_option *table, size_t n, const char *program, FILE *out);

#endif
