/*
 * Walks the tree with data and writes text in which values are tokens. Owns the variables and the
 * bounds of one rendering.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "domain/gotemplate_int.h"

struct var {
	struct strv name;
	struct gotemplate_val val;
};

struct run {
	struct gotemplate_exec x;
	json_t *root;
	struct gotemplate_values *values;
	struct strbuf out;
	size_t shown; /* bytes of the values that were written as tokens */
	struct var vars[GOTEMPLATE_VARS_MAX];
	size_t vars_n;
};

static int
fail(struct run *r, size_t at, const char *what)
{
	return gotemplate_fail(r->x.t, at, r->x.e, "%s", what);
}

static int
tick(struct run *r, size_t at)
{
	if (++r->x.steps > GOTEMPLATE_STEPS_MAX)
		return fail(r, at, "the template takes too many steps");
	return 0;
}

static void
val_done(struct gotemplate_val *v)
{
	json_decref(v->j);
	v->j = NULL;
}

static void
val_copy(struct gotemplate_val *to, const struct gotemplate_val *from)
{
	*to = *from;
	json_incref(to->j);
}

/* --- variables --- */

static struct var *
var_find(struct run *r, struct strv name)
{
	for (size_t i = r->vars_n; i-- > 0;) {
		if (strv_eq(r->vars[i].name, name))
			return &r->vars[i];
	}
	return NULL;
}

/* Takes v over. The parser has checked that there is room and that an assigned one exists. */
static void
var_set(struct run *r, struct strv name, bool assign, struct gotemplate_val *v)
{
	struct var *var = assign ? var_find(r, name) : NULL;

	if (var != NULL) {
		val_done(&var->val);
	} else {
		BUG_ON(r->vars_n == GOTEMPLATE_VARS_MAX);
		var = &r->vars[r->vars_n++];
		var->name = name;
	}
	var->val = *v;
}

static void
vars_cut(struct run *r, size_t n)
{
	while (r->vars_n > n)
		val_done(&r->vars[--r->vars_n].val);
}

/* --- values --- */

static int eval_pipe(struct run *r, const struct gotemplate_pipe *p,
    const struct gotemplate_val *dot, struct gotemplate_val *ret) MUST_USE;

/* Replaces *v by its field. */
static int
take_field(struct run *r, const struct gotemplate_field *f, struct gotemplate_val *v)
{
	json_t *in = v->j, *found;

	if (json_is_null(in))
		return 0;
	if (!json_is_object(in))
		return gotemplate_fail(r->x.t, f->at, r->x.e,
		    "." STRV_FMT " of something that has no fields",
		    (int)(f->name.n < 64 ? f->name.n : 64), f->name.p);
	found = json_object_getn(in, f->name.p, f->name.n);
	if (found == NULL && gotemplate_is_struct(in))
		return gotemplate_fail(r->x.t, f->at, r->x.e, "there is no ." STRV_FMT,
		    (int)(f->name.n < 64 ? f->name.n : 64), f->name.p);
	found = found ? json_incref(found) : json_null();
	val_done(v);
	*v = (struct gotemplate_val){ .j = found };
	return 0;
}

static int
eval_operand(struct run *r, const struct gotemplate_operand *o, const struct gotemplate_val *dot,
    struct gotemplate_val *ret)
{
	struct gotemplate_val v = { 0 };
	const struct var *var;

	switch (o->type) {
	case GO_DOT:
		val_copy(&v, dot);
		break;
	case GO_VARIABLE:
		var = o->name.n > 0 ? var_find(r, o->name) : NULL;
		if (var != NULL)
			val_copy(&v, &var->val);
		else if (o->name.n == 0)
			v.j = json_incref(r->root);
		else
			return fail(r, o->at, "variable is not defined");
		break;
	case GO_LITERAL:
		v.j = json_incref(o->literal);
		break;
	case GO_PIPE:
		if (eval_pipe(r, o->pipe, dot, &v) == -1)
			return -1;
		break;
	case GO_FUNCTION:
		return fail(r, o->at, "unexpected function");
	}
	for (const struct gotemplate_field *f = o->fields; f != NULL; f = f->next) {
		if (take_field(r, f, &v) == -1) {
			val_done(&v);
			return -1;
		}
	}
	*ret = v;
	return 0;
}

/* and: the first false one, or the last; or: the first true one, or the last. */
static int
call_lazy(struct run *r, const struct gotemplate_command *c, const struct gotemplate_val *dot,
    const struct gotemplate_val *piped, struct gotemplate_val *ret)
{
	bool until = strcmp(c->operands->function->name, "or") == 0;
	struct gotemplate_val v = { 0 };

	for (const struct gotemplate_operand *o = c->operands->next; o != NULL; o = o->next) {
		if (v.j != NULL)
			val_done(&v);
		if (eval_operand(r, o, dot, &v) == -1)
			return -1;
		if (gotemplate_truth(&v) == until || (o->next == NULL && piped == NULL)) {
			*ret = v;
			return 0;
		}
	}
	if (v.j != NULL)
		val_done(&v);
	BUG_ON(piped == NULL);
	val_copy(ret, piped);
	return 0;
}

static int
call(struct run *r, const struct gotemplate_command *c, const struct gotemplate_val *dot,
    const struct gotemplate_val *piped, struct gotemplate_val *ret)
{
	const struct gotemplate_function *f = c->operands->function;
	struct gotemplate_val args[GOTEMPLATE_ARGS_MAX + 1];
	struct gotemplate_call ctx = { &r->x, c->operands->at, args, 0 };
	struct gotemplate_val result = { 0 };
	int rc = -1;

	if (f->lazy)
		return call_lazy(r, c, dot, piped, ret);
	for (const struct gotemplate_operand *o = c->operands->next; o != NULL; o = o->next) {
		if (eval_operand(r, o, dot, &args[ctx.n]) == -1)
			goto out;
		ctx.n++;
	}
	if (piped != NULL)
		val_copy(&args[ctx.n++], piped);
	rc = f->fn(&ctx, &result);
	if (rc == 0)
		*ret = result;
	else
		json_decref(result.j);
out:
	while (ctx.n > 0)
		val_done(&args[--ctx.n]);
	return rc;
}

static int
eval_pipe(struct run *r, const struct gotemplate_pipe *p, const struct gotemplate_val *dot,
    struct gotemplate_val *ret)
{
	struct gotemplate_val v = { 0 }, after = { 0 };

	for (const struct gotemplate_command *c = p->commands; c != NULL; c = c->next) {
		const struct gotemplate_operand *first = c->operands;
		int rc = tick(r, p->at);

		if (rc == 0)
			rc = first->type == GO_FUNCTION ? call(r, c, dot, v.j ? &v : NULL, &after)
			                                : eval_operand(r, first, dot, &after);
		if (v.j != NULL)
			val_done(&v);
		if (rc == -1)
			return -1;
		v = after;
	}
	*ret = v;
	return 0;
}

/* --- nodes --- */

static int run_list(
    struct run *r, const struct gotemplate_node *list, const struct gotemplate_val *dot) MUST_USE;

/* Sets the variable of a pipe that declares one to (a copy of) its value. */
static void
bind(struct run *r, const struct gotemplate_pipe *p, const struct gotemplate_val *v)
{
	struct gotemplate_val copy;

	if (p->declared == 0)
		return;
	val_copy(&copy, v);
	var_set(r, p->names[0], p->assign, &copy);
}

static int
run_value(struct run *r, const struct gotemplate_node *node, const struct gotemplate_val *dot)
{
	struct strbuf text CLEANUP(strbuf_done) = { 0 };
	struct gotemplate_val v = { 0 };
	int rc = 0;

	if (eval_pipe(r, node->pipe, dot, &v) == -1)
		return -1;
	if (node->pipe->declared > 0) {
		var_set(r, node->pipe->names[0], node->pipe->assign, &v);
		return 0;
	}
	/* The text is made here only to know how much will come out of the token later. */
	strbuf_init(&text, GOTEMPLATE_OUTPUT_MAX - r->shown);
	gotemplate_add_text(&text, &v);
	r->shown += text.n;
	if (text.failed)
		rc = fail(r, node->at, "the rendered values are too long");
	else
		gotemplate_values_put(r->values, &v, &r->out);
	val_done(&v);
	return rc;
}

/* if and with, along their {{else if}} chain. */
static int
run_if(struct run *r, const struct gotemplate_node *node, const struct gotemplate_val *dot)
{
	size_t vars = r->vars_n;
	int rc = 0;

	for (;;) {
		struct gotemplate_val v = { 0 };

		if (eval_pipe(r, node->pipe, dot, &v) == -1)
			return -1;
		bind(r, node->pipe, &v);
		if (gotemplate_truth(&v)) {
			rc = run_list(r, node->body, node->type == GN_WITH ? &v : dot);
			val_done(&v);
			break;
		}
		val_done(&v);
		if (node->otherwise == NULL || !node->otherwise->chained) {
			rc = run_list(r, node->otherwise, dot);
			break;
		}
		node = node->otherwise;
	}
	vars_cut(r, vars);
	return rc;
}

/* One turn of a range; key and item are borrowed. */
static int
run_turn(struct run *r, const struct gotemplate_node *node, json_t *key, json_t *item)
{
	const struct gotemplate_pipe *p = node->pipe;
	struct gotemplate_val k = { .j = json_incref(key) }, v = { .j = json_incref(item) };
	struct gotemplate_val dot;
	size_t vars = r->vars_n;
	int rc;

	val_copy(&dot, &v);
	if (p->declared == 2)
		var_set(r, p->names[0], p->assign, &k);
	else
		val_done(&k);
	if (p->declared > 0)
		var_set(r, p->names[p->declared - 1], p->assign, &v);
	else
		val_done(&v);
	rc = tick(r, node->at);
	if (rc == 0)
		rc = run_list(r, node->body, &dot);
	vars_cut(r, vars);
	val_done(&dot);
	return rc;
}

static int
range_array(struct run *r, const struct gotemplate_node *node, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *key CLEANUP(json_unrefp) = json_integer((json_int_t)i);

		if (run_turn(r, node, key, json_array_get(list, i)) == -1)
			return -1;
	}
	return 0;
}

static int
range_object(struct run *r, const struct gotemplate_node *node, const json_t *object)
{
	const char **keys;
	size_t n = gotemplate_keys(object, &keys);
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		json_t *key CLEANUP(json_unrefp) = json_string(keys[i]);

		rc = run_turn(r, node, key, json_object_get(object, keys[i]));
	}
	xfree(keys);
	return rc;
}

static int
run_range(struct run *r, const struct gotemplate_node *node, const struct gotemplate_val *dot)
{
	struct gotemplate_val v = { 0 };
	int rc;

	if (eval_pipe(r, node->pipe, dot, &v) == -1)
		return -1;
	if (json_is_null(v.j) ||
	    ((json_is_array(v.j) || json_is_object(v.j)) && !gotemplate_truth(&v)))
		rc = run_list(r, node->otherwise, dot);
	else if (json_is_array(v.j))
		rc = range_array(r, node, v.j);
	else if (json_is_object(v.j) && !gotemplate_is_struct(v.j))
		rc = range_object(r, node, v.j);
	else
		rc = fail(r, node->pipe->at, "range needs a list or a map");
	val_done(&v);
	return rc;
}

static int
run_list(struct run *r, const struct gotemplate_node *list, const struct gotemplate_val *dot)
{
	size_t vars = r->vars_n;
	int rc = 0;

	for (const struct gotemplate_node *n = list; n != NULL && rc == 0; n = n->next) {
		if (tick(r, n->at) == -1)
			return -1;
		switch (n->type) {
		case GN_TEXT:
			strbuf_addv(&r->out, n->text);
			break;
		case GN_VALUE:
			rc = run_value(r, n, dot);
			break;
		case GN_IF:
		case GN_WITH:
			rc = run_if(r, n, dot);
			break;
		case GN_RANGE:
			rc = run_range(r, n, dot);
			break;
		}
		if (rc == 0 && r->out.failed)
			rc = fail(r, n->at, "the rendered text is too long");
	}
	vars_cut(r, vars);
	return rc;
}

int
gotemplate_render(const struct gotemplate *t, const json_t *data, char **text,
    struct gotemplate_values **values, struct err *e)
{
	struct run *r = xcalloc(1, sizeof(*r));
	struct gotemplate_val dot;
	int rc = -1;

	r->x.t = t;
	r->x.e = e;
	r->root = (json_t *)(uintptr_t)data; /* only its count of references changes */
	r->values = gotemplate_values_new(t->text);
	strbuf_init(&r->out, GOTEMPLATE_OUTPUT_MAX);
	dot = (struct gotemplate_val){ .j = r->root };
	if (run_list(r, t->root, &dot) == 0 && strbuf_take(&r->out, text, e) == 0) {
		*values = r->values;
		r->values = NULL;
		rc = 0;
	}
	vars_cut(r, 0);
	strbuf_done(&r->out);
	gotemplate_values_free(r->values);
	xfree(r);
	return rc;
}
