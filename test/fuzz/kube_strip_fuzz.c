/* What parses still parses without managedFields, and nothing else of the top object is lost. */
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/json.h"
#include "kube/kube_strip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(strbuf_done) struct strbuf scratch;
	CLEANUP(json_unrefp) json_t *before = NULL;
	CLEANUP(json_unrefp) json_t *after = NULL;
	struct strv text = { (const char *)data, size }, short_text;
	json_t *value;
	const char *key;
	struct err e;

	strbuf_init(&scratch, 1 << 20);
	short_text = kube_strip(text, &scratch);
	BUG_ON(short_text.n > size);
	if (json_parse(text, 1 << 20, &before, &e) == -1)
		return 0;
	BUG_ON(json_parse(short_text, 1 << 20, &after, &e) == -1);
	json_object_foreach (before, key, value) {
		if (!json_is_array(value) && !json_is_object(value))
			BUG_ON(!json_equal(value, json_object_get(after, key)));
	}
	return 0;
}
