/*
 * Decodes sandbox-data once per distinct text. A small direct-mapped table of weak pointers finds
 * an equal text that is alive; a miss only costs memory, so the table never grows and never needs
 * to be right. It is per process and used by the loop's thread alone.
 */
#include "domain/sandbox_data.h"

#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/map.h"

#define TABLE_SIZE 1024 /* a power of two */

static struct sandbox_data *table[TABLE_SIZE];

static struct sandbox_data **
slot_of(const char *text)
{
	return &table[map_hash(text, strlen(text)) & (TABLE_SIZE - 1)];
}

/* Room for the texts of the metadata; counts the members that are texts. */
static size_t
metadata_size(json_t *metadata, size_t *n)
{
	const char *key;
	json_t *value;
	size_t size = 0;

	json_object_foreach (metadata, key, value) {
		if (!json_is_string(value))
			continue;
		size += strlen(key) + 1 + strlen(json_string_value(value)) + 1;
		(*n)++;
	}
	return size;
}

static const char *
put(char **to, const char *text)
{
	size_t size = strlen(text) + 1;
	char *at = *to;

	if (size == 1)
		return "";
	memcpy(at, text, size);
	*to += size;
	return at;
}

static void
metadata_fill(struct kv *kv, json_t *metadata, char **to)
{
	const char *key;
	json_t *value;

	json_object_foreach (metadata, key, value) {
		if (!json_is_string(value))
			continue;
		kv->key = put(to, key);
		kv->value = put(to, json_string_value(value));
		kv++;
	}
}

static const char *
or_empty(const char *text)
{
	return text ? text : "";
}

/* One allocation: the struct with its text, the metadata's pairs, the texts that they point to. */
static struct sandbox_data *
decode(const char *text)
{
	json_t *tree CLEANUP(json_unrefp) = NULL;
	const char *template_id, *mask_host;
	struct sandbox_data *d;
	json_t *metadata;
	size_t n = 0, head, size;
	struct kv *kv;
	char *to;

	if (json_parse(strv_of(text), SANDBOX_DATA_MAX, &tree, NULL) == -1)
		tree = json_object();
	metadata = json_object_get(tree, "metadata");
	template_id = or_empty(json_get_str(tree, "template"));
	mask_host = or_empty(json_get_str(tree, "network.maskRequestHost"));
	head = sizeof(*d) + strlen(text) + 1;
	head = (head + alignof(struct kv) - 1) / alignof(struct kv) * alignof(struct kv);
	size = metadata_size(metadata, &n) + strlen(template_id) + strlen(mask_host) + 2;
	d = xmalloc(head + n * sizeof(*kv) + size);
	kv = (struct kv *)(void *)((char *)d + head);
	to = (char *)(kv + n);
	*d = (struct sandbox_data){
		.refs = 1,
		.secure = json_get_bool(tree, "secure", false),
		.private_traffic = !json_get_bool(tree, "network.allowPublicTraffic", true),
		.metadata_n = n,
		.metadata = kv,
	};
	memcpy(d->text, text, strlen(text) + 1);
	metadata_fill(kv, metadata, &to);
	d->template_id = put(&to, template_id);
	d->mask_host = put(&to, mask_host);
	return d;
}

struct sandbox_data *
sandbox_data_get(const char *text)
{
	struct sandbox_data **slot = slot_of(text);

	if (*slot != NULL && strcmp((*slot)->text, text) == 0)
		(*slot)->refs++;
	else
		*slot = decode(text);
	return *slot;
}

void
sandbox_data_unref(struct sandbox_data *d)
{
	struct sandbox_data **slot;

	if (d == NULL || --d->refs > 0)
		return;
	slot = slot_of(d->text);
	if (*slot == d)
		*slot = NULL;
	xfree(d);
}
