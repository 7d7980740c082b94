/*
 * Text to tree. Everything that can be known before there are values is checked here: syntax,
 * nesting, names of functions and variables, numbers of arguments.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "domain/gotemplate_int.h"

/* Memory of a tree: freed all at once. */
struct gotemplate_chunk {
	struct gotemplate_chunk *next;
	max_align_t data[];
};

enum ending { END_OF_TEXT = 0, END_WORD, END_ELSE };

struct parser {
	struct gotemplate *t;
	struct err *e;
	size_t at;
	bool trim; /* the last action ended in " -}}" */
	struct gotemplate_tok tok;
	unsigned depth;
	struct strv vars[GOTEMPLATE_VARS_MAX];
	size_t vars_n;
	/* What ended the last list of nodes. */
	enum ending ending;
	size_t ending_at;
};

static void *
make(struct gotemplate *t, size_t size)
{
	struct gotemplate_chunk *c = xcalloc(1, sizeof(*c) + size);

	c->next = t->chunks;
	t->chunks = c;
	return c->data;
}

static int
next(struct parser *p)
{
	return gotemplate_lex(p->t, &p->at, &p->tok, &p->trim, p->e);
}

static int
fail_here(struct parser *p, const char *what)
{
	return gotemplate_fail(p->t, p->tok.at, p->e, "%s", what);
}

static int
enter(struct parser *p, size_t at)
{
	if (++p->depth > GOTEMPLATE_DEPTH_MAX)
		return gotemplate_fail(
		    p->t, at, p->e, "nested deeper than %d levels", GOTEMPLATE_DEPTH_MAX);
	return 0;
}

static bool
var_known(const struct parser *p, struct strv name)
{
	if (name.n == 0)
		return true;
	for (size_t i = p->vars_n; i-- > 0;) {
		if (strv_eq(p->vars[i], name))
			return true;
	}
	return false;
}

static int
var_add(struct parser *p, struct strv name, size_t at)
{
	if (name.n == 0)
		return gotemplate_fail(p->t, at, p->e, "$ cannot be set");
	if (p->vars_n == GOTEMPLATE_VARS_MAX)
		return gotemplate_fail(
		    p->t, at, p->e, "more than %d variables", GOTEMPLATE_VARS_MAX);
	p->vars[p->vars_n++] = name;
	return 0;
}

static int parse_pipe(struct parser *p, enum gotemplate_tok_type end, bool range,
    struct gotemplate_pipe **ret) MUST_USE;

/* --- operands, commands, pipes --- */

static int
parse_fields(struct parser *p, struct gotemplate_operand *o)
{
	struct gotemplate_field **tail = &o->fields;

	while (*tail != NULL)
		tail = &(*tail)->next;
	while (p->tok.type == GT_FIELD && !p->tok.space) {
		struct gotemplate_field *f = make(p->t, sizeof(*f));

		f->name = p->tok.text;
		f->at = p->tok.at;
		*tail = f;
		tail = &f->next;
		if (next(p) == -1)
			return -1;
	}
	return 0;
}

static int
parse_word(struct parser *p, struct gotemplate_operand *o)
{
	struct strv word = p->tok.text;

	o->type = GO_LITERAL;
	if (strv_is(word, "true")) {
		o->literal = json_true();
	} else if (strv_is(word, "false")) {
		o->literal = json_false();
	} else if (strv_is(word, "nil")) {
		o->literal = json_null();
	} else {
		o->type = GO_FUNCTION;
		o->function = gotemplate_function_find(word);
		if (o->function == NULL)
			return gotemplate_fail(p->t, p->tok.at, p->e,
			    "'" STRV_FMT "' is not supported here",
			    (int)(word.n < 64 ? word.n : 64), word.p);
	}
	return 0;
}

static int
parse_parens(struct parser *p, struct gotemplate_operand *o)
{
	if (enter(p, o->at) == -1 || next(p) == -1 ||
	    parse_pipe(p, GT_CLOSE, false, &o->pipe) == -1)
		return -1;
	p->depth--;
	o->type = GO_PIPE;
	return 0;
}

static int
parse_operand(struct parser *p, struct gotemplate_operand **ret)
{
	struct gotemplate_operand *o = make(p->t, sizeof(*o));
	struct gotemplate_tok tok = p->tok;

	o->at = tok.at;
	switch ((int)tok.type) {
	case GT_DOT:
		break;
	case GT_FIELD:
		/* The dot's field: read again, as the first of its chain. */
		p->tok.space = false;
		*ret = o;
		return parse_fields(p, o);
	case GT_VARIABLE:
		if (!var_known(p, tok.text))
			return gotemplate_fail(p->t, tok.at, p->e,
			    "variable $" STRV_FMT " is not defined",
			    (int)(tok.text.n < 64 ? tok.text.n : 64), tok.text.p);
		o->type = GO_VARIABLE;
		o->name = tok.text;
		break;
	case GT_WORD:
		if (parse_word(p, o) == -1)
			return -1;
		break;
	case GT_LITERAL:
		o->type = GO_LITERAL;
		o->literal = tok.literal;
		break;
	case GT_OPEN:
		if (parse_parens(p, o) == -1)
			return -1;
		break;
	default:
		return fail_here(p, "a value is missing here");
	}
	if (next(p) == -1)
		return -1;
	*ret = o;
	if (tok.type == GT_VARIABLE || tok.type == GT_OPEN)
		return parse_fields(p, o);
	return 0;
}

/* Checks the number of arguments; piped: one more comes from the command before. */
static int
check_command(struct parser *p, const struct gotemplate_operand *first, size_t args, bool piped)
{
	const struct gotemplate_function *f = first->function;

	if (first->type != GO_FUNCTION) {
		if (piped)
			return gotemplate_fail(p->t, first->at, p->e, "a function must follow '|'");
		if (args > 0)
			return gotemplate_fail(
			    p->t, first->at, p->e, "only a function takes arguments");
		return 0;
	}
	args += piped;
	if (args < f->min || args > f->max)
		return gotemplate_fail(
		    p->t, first->at, p->e, "wrong number of arguments for %s: %zu", f->name, args);
	return 0;
}

static int
parse_command(struct parser *p, bool piped, struct gotemplate_command **ret)
{
	struct gotemplate_command *c = make(p->t, sizeof(*c));
	struct gotemplate_operand **tail = &c->operands;
	size_t n = 0;

	for (;;) {
		if (n > 0 && !p->tok.space && p->tok.type != GT_OPEN)
			return fail_here(p, "a blank is missing before this");
		if (n > GOTEMPLATE_ARGS_MAX)
			return fail_here(p, "too many arguments");
		if (parse_operand(p, tail) == -1)
			return -1;
		if (n > 0 && (*tail)->type == GO_FUNCTION)
			return gotemplate_fail(
			    p->t, (*tail)->at, p->e, "a function as an argument needs parentheses");
		tail = &(*tail)->next;
		n++;
		if (p->tok.type == GT_END || p->tok.type == GT_PIPE || p->tok.type == GT_CLOSE)
			break;
		if (p->tok.type == GT_DECLARE || p->tok.type == GT_ASSIGN ||
		    p->tok.type == GT_COMMA)
			return fail_here(p, "unexpected here");
	}
	*ret = c;
	return check_command(p, c->operands, n - 1, piped);
}

/* "$x :=", "$x =", "$k, $v :=": looks ahead and stays where it was if it is none of them. */
static int
parse_declaration(struct parser *p, bool range, struct gotemplate_pipe *pipe)
{
	struct parser before = *p;
	unsigned n = 0;

	while (n < 2 && p->tok.type == GT_VARIABLE) {
		pipe->names[n++] = p->tok.text;
		if (next(p) == -1)
			return -1;
		if (p->tok.type != GT_COMMA)
			break;
		if (next(p) == -1)
			return -1;
	}
	if (n == 0 || (p->tok.type != GT_DECLARE && p->tok.type != GT_ASSIGN)) {
		p->at = before.at;
		p->tok = before.tok;
		p->trim = before.trim;
		return 0;
	}
	if (n == 2 && !range)
		return fail_here(p, "two variables are for range only");
	pipe->declared = n;
	pipe->assign = p->tok.type == GT_ASSIGN;
	return next(p);
}

/* Variables become known after the pipe that sets them. */
static int
declare(struct parser *p, const struct gotemplate_pipe *pipe)
{
	for (unsigned i = 0; i < pipe->declared; i++) {
		if (!pipe->assign) {
			if (var_add(p, pipe->names[i], pipe->at) == -1)
				return -1;
		} else if (pipe->names[i].n == 0 || !var_known(p, pipe->names[i])) {
			return gotemplate_fail(
			    p->t, pipe->at, p->e, "the variable that is set is not defined");
		}
	}
	return 0;
}

/* From the current token up to (and not behind) `end`. */
static int
parse_pipe(struct parser *p, enum gotemplate_tok_type end, bool range, struct gotemplate_pipe **ret)
{
	struct gotemplate_pipe *pipe = make(p->t, sizeof(*pipe));
	struct gotemplate_command **tail = &pipe->commands;

	pipe->at = p->tok.at;
	if (end == GT_END && parse_declaration(p, range, pipe) == -1)
		return -1;
	for (;;) {
		if (parse_command(p, tail != &pipe->commands, tail) == -1)
			return -1;
		tail = &(*tail)->next;
		if (p->tok.type != GT_PIPE)
			break;
		if (next(p) == -1)
			return -1;
	}
	if (p->tok.type != end)
		return fail_here(p, end == GT_END ? "unexpected ')'" : "')' is missing");
	if (declare(p, pipe) == -1)
		return -1;
	*ret = pipe;
	return 0;
}

/* --- nodes --- */

static bool
blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The text up to the next action or the end; *left: an action follows ({{ is passed). */
static struct strv
take_text(struct parser *p, bool *left)
{
	struct strv all = p->t->text;
	const char *found = all.n > p->at ? memmem(all.p + p->at, all.n - p->at, "{{", 2) : NULL;
	size_t end = found ? (size_t)(found - all.p) : all.n;
	struct strv text = { all.p + p->at, end - p->at };

	*left = found != NULL;
	if (p->trim) {
		while (text.n > 0 && blank(text.p[0])) {
			text.p++;
			text.n--;
		}
	}
	p->trim = false;
	p->at = end + (found ? 2 : 0);
	if (found && p->at + 1 < all.n && all.p[p->at] == '-' && blank(all.p[p->at + 1])) {
		p->at++;
		while (text.n > 0 && blank(text.p[text.n - 1]))
			text.n--;
	}
	return text;
}

/* At the start of an action: passes a whole comment. 1: passed, 0: none. */
static int
skip_comment(struct parser *p)
{
	struct strv all = p->t->text;
	size_t start = p->at, at = p->at;
	const char *found;

	while (at < all.n && blank(all.p[at]))
		at++;
	if (all.n - at < 2 || memcmp(all.p + at, "/*", 2) != 0)
		return 0;
	found = memmem(all.p + at + 2, all.n - at - 2, "*/", 2);
	if (found == NULL)
		return gotemplate_fail(p->t, start, p->e, "comment without its end");
	p->at = (size_t)(found - all.p) + 2;
	if (next(p) == -1 || p->tok.type != GT_END)
		return gotemplate_fail(p->t, start, p->e, "a comment must be alone in its {{ }}");
	return 1;
}

static int parse_list(struct parser *p, struct gotemplate_node **ret) MUST_USE;

/* One branch: pipe, "}}" and body; then p->ending tells what came. */
static int
parse_branch(struct parser *p, struct gotemplate_node *node)
{
	if (next(p) == -1 || parse_pipe(p, GT_END, node->type == GN_RANGE, &node->pipe) == -1)
		return -1;
	return parse_list(p, &node->body);
}

/* Behind {{else: " if …", " with …" or "}}". Adds to *node and moves it when a branch follows. */
static int
parse_else(struct parser *p, struct gotemplate_node **node)
{
	const char *again = (*node)->type == GN_IF ? "if" : "with";
	struct gotemplate_node *branch;

	if (p->tok.type == GT_END) {
		if (parse_list(p, &(*node)->otherwise) == -1)
			return -1;
		if (p->ending == END_ELSE)
			return gotemplate_fail(p->t, p->ending_at, p->e, "a second else");
		return 0;
	}
	if (p->tok.type != GT_WORD || !strv_is(p->tok.text, again) || (*node)->type == GN_RANGE)
		return fail_here(p, "unexpected after else");
	branch = make(p->t, sizeof(*branch));
	branch->type = (*node)->type;
	branch->chained = true;
	branch->at = p->tok.at;
	(*node)->otherwise = branch;
	*node = branch;
	return parse_branch(p, branch);
}

static int
parse_block(struct parser *p, struct gotemplate_node *node)
{
	size_t vars = p->vars_n;

	if (enter(p, node->at) == -1 || parse_branch(p, node) == -1)
		return -1;
	while (p->ending == END_ELSE) {
		if (parse_else(p, &node) == -1)
			return -1;
	}
	if (p->ending != END_WORD)
		return gotemplate_fail(p->t, node->at, p->e, "block without its {{end}}");
	p->vars_n = vars;
	p->depth--;
	return 0;
}

/* The first token of an action is at hand. 1: the list ends here. */
static int
parse_action(struct parser *p, struct gotemplate_node *node)
{
	static const struct {
		const char *word;
		enum gotemplate_node_type type;
	} blocks[] = { { "if", GN_IF }, { "with", GN_WITH }, { "range", GN_RANGE } };
	struct gotemplate_tok tok = p->tok;

	node->at = tok.at;
	for (size_t i = 0; tok.type == GT_WORD && i < ARRAY_LEN(blocks); i++) {
		if (!strv_is(tok.text, blocks[i].word))
			continue;
		node->type = blocks[i].type;
		return parse_block(p, node);
	}
	p->ending_at = tok.at;
	if (tok.type == GT_WORD && (strv_is(tok.text, "end") || strv_is(tok.text, "else"))) {
		p->ending = strv_is(tok.text, "end") ? END_WORD : END_ELSE;
		if (next(p) == -1)
			return -1;
		if (p->ending == END_WORD && p->tok.type != GT_END)
			return fail_here(p, "unexpected after end");
		return 1;
	}
	node->type = GN_VALUE;
	return parse_pipe(p, GT_END, false, &node->pipe);
}

/* Nodes up to {{end}}, {{else or the end of the text. A list is the scope of its variables. */
static int
parse_list(struct parser *p, struct gotemplate_node **ret)
{
	struct gotemplate_node **tail = ret;
	size_t vars = p->vars_n;
	bool left = true;
	int r = 0;

	while (r == 0) {
		struct strv text = take_text(p, &left);
		struct gotemplate_node *node;

		if (text.n > 0) {
			node = make(p->t, sizeof(*node));
			node->text = text;
			*tail = node;
			tail = &node->next;
		}
		if (!left) {
			p->ending = END_OF_TEXT;
			break;
		}
		r = skip_comment(p);
		if (r == 1) {
			r = 0;
			continue;
		}
		if (r == -1 || next(p) == -1)
			return -1;
		node = make(p->t, sizeof(*node));
		r = parse_action(p, node);
		if (r == 0) {
			*tail = node;
			tail = &node->next;
		}
	}
	p->vars_n = vars;
	return r == -1 ? -1 : 0;
}

static int
check_text(const struct gotemplate *t, struct err *e)
{
	if (memchr(t->text.p, '\0', t->text.n) != NULL)
		return err_set(e, ERR_INVALID, "the template has a zero byte");
	if (!utf8_valid(t->text))
		return err_set(e, ERR_INVALID, "the template is not UTF-8");
	return 0;
}

int
gotemplate_compile(struct strv text, struct gotemplate **ret, struct err *e)
{
	struct gotemplate *t;
	struct parser p = { .e = e };

	if (text.n > GOTEMPLATE_TEXT_MAX)
		return err_set(
		    e, ERR_TOO_LARGE, "the template has more than %d bytes", GOTEMPLATE_TEXT_MAX);
	t = xcalloc(1, sizeof(*t));
	t->text = (struct strv){ strv_dup(text), text.n };
	t->literals = json_array();
	p.t = t;
	if (check_text(t, e) == -1 || parse_list(&p, &t->root) == -1)
		goto fail;
	if (p.ending != END_OF_TEXT) {
		gotemplate_fail(
		    t, p.ending_at, e, "%s without a block", p.ending == END_ELSE ? "else" : "end");
		goto fail;
	}
	*ret = t;
	return 0;
fail:
	gotemplate_free(t);
	return -1;
}

void
gotemplate_free(struct gotemplate *t)
{
	struct gotemplate_chunk *c, *after;

	if (t == NULL)
		return;
	for (c = t->chunks; c != NULL; c = after) {
		after = c->next;
		xfree(c);
	}
	json_decref(t->literals);
	xfree((char *)(uintptr_t)t->text.p);
	xfree(t);
}
