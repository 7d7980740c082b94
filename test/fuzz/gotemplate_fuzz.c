/*
 * Any text as a template, rendered with data that has every kind of value, and every line of the
 * result resolved both ways. The data's one secret word must never be part of the rendered text.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/json.h"
#include "base/yaml.h"
#include "domain/gotemplate.h"

#define SECRET "Zq9SecretWordZq9"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n);

static json_t *
data(void)
{
	static json_t *tree;
	static const char text[] =
	    "{\"\\u0001struct\":true,\"Namespace\":\"" SECRET "\",\"RawData\":\"{\\\"a\\\": 1}\","
	    "\"Sandbox\":{\"Name\":\"" SECRET "\",\"Port\":8080,\"IsPool\":true,\"CPU\":1.5,"
	    "\"Args\":[\"" SECRET "\",\"b\\n- c: d\",[]],\"Metadata\":{\"k\":\"" SECRET
	    "\",\"a: b\":\"\"},\"Nothing\":null},\"A\":[1,2,3],\"B\":{\"C\":\"d\"}}";

	if (tree == NULL)
		BUG_ON(json_parse(STRV(text), sizeof(text), &tree, NULL) == -1);
	return tree;
}

static json_t *
resolve(struct strv value, bool quoted, bool is_key, void *arg)
{
	return gotemplate_resolve(arg, value, quoted || is_key);
}

int
LLVMFuzzerTestOneInput(const uint8_t *in, size_t n)
{
	struct strv text = { (const char *)in, n };
	struct gotemplate_values *values;
	struct gotemplate *t;
	struct err e = { 0 };
	json_t *tree;
	char *out;

	if (gotemplate_compile(text, &t, &e) == -1) {
		BUG_ON(e.msg[0] == '\0');
		return 0;
	}
	if (gotemplate_render(t, data(), &out, &values, &e) == 0) {
		BUG_ON(strstr(out, SECRET) != NULL && memmem(in, n, SECRET, 16) == NULL);
		json_decref(gotemplate_resolve(values, strv_of(out), false));
		if (yaml_parse_with(
		        strv_of(out), GOTEMPLATE_OUTPUT_MAX, resolve, values, &tree, &e) == 0)
			json_decref(tree);
		gotemplate_values_free(values);
		xfree(out);
	} else {
		BUG_ON(e.msg[0] == '\0');
	}
	gotemplate_free(t);
	return 0;
}
