/*
 * The parts of gotemplate among themselves: tokens of an action, the tree that the parser makes and
 * the executor walks, values while executing. Private to gotemplate_*.c.
 */
#ifndef DOMAIN_GOTEMPLATE_INT_H
#define DOMAIN_GOTEMPLATE_INT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "domain/gotemplate.h"

#define GOTEMPLATE_DEPTH_MAX 32                /* nested blocks and parentheses together */
#define GOTEMPLATE_VARS_MAX 64                 /* variables in sight at one place */
#define GOTEMPLATE_ARGS_MAX 32                 /* operands of one command */
#define GOTEMPLATE_WORK_MAX (16 * 1024 * 1024) /* bytes of text made while rendering */

/* --- tokens (gotemplate_lex.c) --- */

enum gotemplate_tok_type {
	GT_END = 0, /* the right delimiter */
	GT_DOT,
	GT_FIELD,    /* .Name; text is the name */
	GT_VARIABLE, /* $name; text is the name without '$', empty for the root */
	GT_WORD,
	GT_LITERAL, /* text or number */
	GT_PIPE,
	GT_OPEN,
	GT_CLOSE,
	GT_DECLARE, /* := */
	GT_ASSIGN,  /* = */
	GT_COMMA,
};

struct gotemplate_tok {
	enum gotemplate_tok_type type;
	size_t at;  /* offset in the text */
	bool space; /* blanks before it */
	struct strv text;
	json_t *literal; /* owned by the template */
};

/* Reads the token at *at of the text and moves *at behind it. GT_END: *trim tells whether it was
 * " -}}". */
int gotemplate_lex(struct gotemplate *t, size_t *at, struct gotemplate_tok *ret, bool *trim,
    struct err *e) MUST_USE;
/* "line L, column C: …" for an offset. Returns -1. */
int gotemplate_fail(const struct gotemplate *t, size_t at, struct err *e, const char *fmt, ...)
    PRINTF(4, 5);

/* --- tree (gotemplate_parse.c); everything in it lives as long as the template --- */

struct gotemplate_pipe;

enum gotemplate_operand_type {
	GO_DOT = 0,
	GO_VARIABLE, /* name */
	GO_LITERAL,  /* literal */
	GO_PIPE,     /* ( pipe ) */
	GO_FUNCTION, /* function; only as the first of a command */
};

struct gotemplate_field {
	struct strv name;
	size_t at;
	struct gotemplate_field *next;
};

struct gotemplate_operand {
	enum gotemplate_operand_type type;
	size_t at;
	struct strv name;
	json_t *literal;
	struct gotemplate_pipe *pipe;
	const struct gotemplate_function *function;
	struct gotemplate_field *fields; /* looked up in the value, in order */
	struct gotemplate_operand *next;
};

struct gotemplate_command {
	struct gotemplate_operand *operands; /* at least one */
	struct gotemplate_command *next;
};

struct gotemplate_pipe {
	size_t at;
	unsigned declared; /* 0, 1, or (range) 2 */
	struct strv names[2];
	bool assign; /* '=' instead of ':=' */
	struct gotemplate_command *commands;
};

enum gotemplate_node_type {
	GN_TEXT = 0,
	GN_VALUE, /* a pipe whose value is written, unless it declares */
	GN_IF,
	GN_WITH,
	GN_RANGE,
};

struct gotemplate_node {
	enum gotemplate_node_type type;
	bool chained; /* the whole of the else of the node before: {{else if}} */
	size_t at;
	struct strv text;
	struct gotemplate_pipe *pipe;
	struct gotemplate_node *body, *otherwise;
	struct gotemplate_node *next;
};

struct gotemplate {
	struct strv text; /* own copy */
	struct gotemplate_node *root;
	json_t *literals; /* array that owns them */
	struct gotemplate_chunk *chunks;
};

/* --- values while executing (gotemplate_func.c) --- */

/* A value: j is never NULL (null = absent). quoted: the result of printf "%q", still without its
 * quotes, so that YAML quoting can be undone when it stands alone. */
struct gotemplate_val {
	json_t *j; /* a reference */
	bool quoted;
};

struct gotemplate_exec {
	const struct gotemplate *t;
	struct err *e;
	size_t steps, work;
};

struct gotemplate_call {
	struct gotemplate_exec *x;
	size_t at;
	const struct gotemplate_val *args;
	size_t n;
};

struct gotemplate_function {
	const char *name;
	unsigned min, max; /* arguments */
	bool lazy;         /* and, or: the executor evaluates the arguments one by one */
	int (*fn)(const struct gotemplate_call *call, struct gotemplate_val *ret);
};

/* NULL: there is none. */
const struct gotemplate_function *gotemplate_function_find(struct strv name);
bool gotemplate_truth(const struct gotemplate_val *v);
/* The value's text as Go prints it, with its quotes if quoted. */
void gotemplate_add_text(struct strbuf *b, const struct gotemplate_val *v);
/* Members in Go's order: *ret is an array (xfree) of borrowed keys. */
size_t gotemplate_keys(const json_t *object, const char ***ret);
/* Is it a struct, where an unknown field is a mistake, and not a map? */
bool gotemplate_is_struct(const json_t *v);

/* --- values behind tokens (gotemplate_values.c) --- */

/* avoid: text in which no token of the new set occurs. */
struct gotemplate_values *gotemplate_values_new(struct strv avoid);
/* Keeps the value and writes its token. */
void gotemplate_values_put(
    struct gotemplate_values *v, const struct gotemplate_val *val, struct strbuf *out);

#endif
