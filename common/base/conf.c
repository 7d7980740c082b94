/* The option table at work. Knows no option of any program. */
#include "conf.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "str.h"

#define HELP_INDENT 8

struct value {
	char *text;
	int64_t num; /* CONF_INT and CONF_BOOL */
};

struct conf {
	const struct conf_option *table;
	size_t n;
	bool help;
	struct value values[];
};

static int
parse_bool(struct strv s, int64_t *ret)
{
	static const char *const words[2][4] = { { "false", "0", "no", "off" },
		{ "true", "1", "yes", "on" } };

	for (int v = 0; v < 2; v++) {
		for (size_t i = 0; i < ARRAY_LEN(words[v]); i++) {
			if (strv_caseis(s, words[v][i])) {
				*ret = v;
				return 0;
			}
		}
	}
	return -1;
}

/* The value itself is left out of messages when it is secret. */
static int
set(struct conf *c, size_t i, const char *from, const char *text, struct err *e)
{
	const struct conf_option *o = &c->table[i];
	struct strv s = strv_of(text);
	int64_t num = 0;

	switch (o->type) {
	case CONF_TEXT:
		break;
	case CONF_INT:
		if (strv_i64(s, INT64_MIN, INT64_MAX, &num) == -1)
			return err_set(e, ERR_INVALID, "option %s (%s): '%s' is no whole number",
			    o->name, from, o->secret ? "***" : text);
		if (num < o->min || num > o->max)
			return err_set(e, ERR_INVALID,
			    "option %s (%s): %lld is not between %lld and %lld", o->name, from,
			    (long long)num, (long long)o->min, (long long)o->max);
		break;
	case CONF_BOOL:
		if (parse_bool(s, &num) == -1)
			return err_set(e, ERR_INVALID,
			    "option %s (%s): '%s' is neither true nor false", o->name, from,
			    o->secret ? "***" : text);
		break;
	}
	xfree(c->values[i].text);
	c->values[i].text = xstrdup(text);
	c->values[i].num = num;
	return 0;
}

static int
load_defaults_and_env(struct conf *c, struct err *e)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct conf_option *o = &c->table[i];
		const char *env = getenv(o->name);
		struct err bad;

		/* A wrong default is a bug of the table. */
		BUG_ON(set(c, i, "default", o->dflt ? o->dflt : "", &bad) == -1);
		/* Manifests like to set variables to nothing: that is the default, but an empty
		 * text is a text. */
		if (env == NULL || (env[0] == '\0' && o->type != CONF_TEXT))
			continue;
		if (set(c, i, "environment", env, e) == -1)
			return -1;
	}
	return 0;
}

/* Is flag ("foo-bar") the one of the option NAME ("FOO_BAR")? */
static bool
flag_is(struct strv flag, const char *name)
{
	size_t i = 0;

	for (; i < flag.n && name[i] != '\0'; i++) {
		char want = name[i];

		if (want == '_')
			want = '-';
		else if (want >= 'A' && want <= 'Z')
			want = (char)(want + ('a' - 'A'));
		if (flag.p[i] != want)
			return false;
	}
	return i == flag.n && name[i] == '\0';
}

static int
load_flag(struct conf *c, const char *arg, struct err *e)
{
	struct strv value, flag, s = strv_of(arg);

	if (!strv_prefix(s, STRV("--")) || s.n == 2)
		return err_set(e, ERR_INVALID, "unexpected argument '%.64s'", arg);
	flag = strv_cut((struct strv){ s.p + 2, s.n - 2 }, '=', &value);
	for (size_t i = 0; i < c->n; i++) {
		if (!flag_is(flag, c->table[i].name))
			continue;
		if (value.p)
			return set(c, i, "flag", value.p, e);
		if (c->table[i].type == CONF_BOOL)
			return set(c, i, "flag", "true", e);
		return err_set(e, ERR_INVALID, "flag --" STRV_FMT " needs =VALUE", STRV_ARG(flag));
	}
	return err_set(
	    e, ERR_INVALID, "unknown flag --%.*s", flag.n < 64 ? (int)flag.n : 64, flag.p);
}

static int
load(struct conf *c, int argc, char **argv, struct err *e)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			c->help = true;
			argc = 1; /* help is shown, whatever else is wrong */
		}
	}
	if (load_defaults_and_env(c, c->help ? NULL : e) == -1 && !c->help)
		return -1;
	for (int i = 1; i < argc; i++) {
		if (load_flag(c, argv[i], e) == -1)
			return -1;
	}
	return 0;
}

int
conf_load(const struct conf_option *table, size_t n, int argc, char **argv, struct conf **ret,
    struct err *e)
{
	struct conf *c = xcalloc(1, sizeof(*c) + n * sizeof(c->values[0]));

	c->table = table;
	c->n = n;
	if (load(c, argc, argv, e) == -1) {
		conf_free(c);
		return -1;
	}
	*ret = c;
	return 0;
}

void
conf_free(struct conf *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->n; i++)
		xfree(c->values[i].text);
	xfree(c);
}

static const struct value *
get(const struct conf *c, const char *name, enum conf_type type)
{
	size_t i = 0;

	while (i < c->n && strcmp(c->table[i].name, name) != 0)
		i++;
	BUG_ON(i == c->n || c->table[i].type != type);
	return &c->values[i];
}

const char *
conf_text(const struct conf *c, const char *name)
{
	const char *text = get(c, name, CONF_TEXT)->text;

	return text ? text : "";
}

int64_t
conf_int(const struct conf *c, const char *name)
{
	return get(c, name, CONF_INT)->num;
}

bool
conf_bool(const struct conf *c, const char *name)
{
	return get(c, name, CONF_BOOL)->num != 0;
}

bool
conf_help_asked(const struct conf *c)
{
	return c->help;
}

void
conf_dump(const struct conf *c, FILE *out)
{
	for (size_t i = 0; i < c->n; i++) {
		const char *text = c->values[i].text ? c->values[i].text : "";

		if (c->table[i].secret && text[0] != '\0')
			text = "***";
		fprintf(out, "%s=%s\n", c->table[i].name, text);
	}
}

static void
print_flag(const char *name, FILE *out)
{
	fputs("  --", out);
	for (; *name != '\0'; name++) {
		if (*name == '_')
			fputc('-', out);
		else
			fputc(*name >= 'A' && *name <= 'Z' ? *name + ('a' - 'A') : *name, out);
	}
}

void
conf_print_help(const struct conf_option *table, size_t n, const char *program, FILE *out)
{
	static const char *const values[] = {
		[CONF_TEXT] = "=TEXT", [CONF_INT] = "=N", [CONF_BOOL] = "[=true|false]"
	};

	fprintf(out,
	    "Usage: %s [flags]\n\nEvery flag --foo-bar=VALUE can be given as the environment "
	    "variable FOO_BAR too; the flag wins.\n\n",
	    program);
	for (size_t i = 0; i < n; i++) {
		const struct conf_option *o = &table[i];

		print_flag(o->name, out);
		fprintf(out, "%s\n%*s%s", values[o->type], HELP_INDENT, "", o->help);
		if (o->dflt && o->dflt[0] != '\0' && !o->secret)
			fprintf(out, " Default: %s.", o->dflt);
		if (o->type == CONF_INT)
			fprintf(out, " From %lld to %lld.", (long long)o->min, (long long)o->max);
		fputc('\n', out);
	}
	fprintf(out, "  --help, -h\n%*sShow this text.\n", HELP_INDENT, "");
}
