#include "t.h"

#include "base/map.h"

/* The test vectors of SipHash's authors: key 00..0f, input 00..3e; the first ones and a long one.
 */
TEST(siphash_vectors)
{
	static const struct {
		size_t n;
		uint64_t want;
	} vectors[] = { { 0, UINT64_C(0x726fdb47dd0e0e31) }, { 1, UINT64_C(0x74f839c593dc67fd) },
		{ 7, UINT64_C(0xab0200f58b01d137) }, { 8, UINT64_C(0x93f5f5799a932462) },
		{ 15, UINT64_C(0xa129ca6149be45e5) } };
	unsigned char in[64], keybytes[16];
	uint64_t key[2];

	for (int i = 0; i < 64; i++)
		in[i] = (unsigned char)i;
	memcpy(keybytes, in, 16);
	memcpy(key, keybytes, 16);
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++)
		assert_true(map_siphash(key, in, vectors[i].n) == vectors[i].want);
}

TEST(set_get_delete)
{
	struct map *m = map_new();
	int a, b;

	assert_int_equal(map_count(m), 0);
	assert_null(map_get(m, STRV("x")));
	assert_null(map_del(m, STRV("x")));
	assert_null(map_set(m, STRV("x"), &a));
	assert_ptr_equal(map_set(m, STRV("x"), &b), &a);
	assert_int_equal(map_count(m), 1);
	assert_ptr_equal(map_get(m, STRV("x")), &b);
	assert_null(map_get(m, STRV("xx")));
	assert_ptr_equal(map_del(m, STRV("x")), &b);
	assert_int_equal(map_count(m), 0);
	map_free(m, NULL);
	map_free(NULL, NULL);
}

TEST(keys_are_bytes_and_copied)
{
	struct map *m = map_new();
	char key[] = "k\0a";
	int a, b, c;

	map_set(m, (struct strv){ key, 3 }, &a);
	map_set(m, (struct strv){ "k\0b", 3 }, &b);
	map_set(m, STRV_NONE, &c);
	memset(key, 'z', 3);
	assert_ptr_equal(map_get(m, (struct strv){ "k\0a", 3 }), &a);
	assert_ptr_equal(map_get(m, (struct strv){ "k\0b", 3 }), &b);
	assert_ptr_equal(map_get(m, STRV("")), &c);
	assert_null(map_get(m, STRV("k")));
	map_free(m, NULL);
}

struct visit {
	struct map *m;
	int n, del_every, stop_at;
	char order[64];
};

static bool
on_entry(struct strv key, void *value, void *arg)
{
	struct visit *v = arg;

	assert_string_equal(value, key.p);
	strncat(v->order, key.p, 4);
	v->n++;
	if (v->del_every && v->n % v->del_every == 0)
		assert_ptr_equal(map_del(v->m, key), value);
	return v->n != v->stop_at;
}

TEST(visit_in_order_with_deletes)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	struct visit v = { .m = map_new() };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		map_set(v.m, strv_of(names[i]), (void *)(uintptr_t)names[i]);
	map_each(v.m, on_entry, &v);
	assert_string_equal(v.order, "abcde");
	v = (struct visit){ .m = v.m, .stop_at = 2 };
	map_each(v.m, on_entry, &v);
	assert_string_equal(v.order, "ab");
	v = (struct visit){ .m = v.m, .del_every = 2 };
	map_each(v.m, on_entry, &v);
	assert_string_equal(v.order, "abcde");
	v = (struct visit){ .m = v.m, .del_every = 1 };
	map_each(v.m, on_entry, &v);
	assert_string_equal(v.order, "ace");
	assert_int_equal(map_count(v.m), 0);
	map_each(v.m, on_entry, &v);
	map_set(v.m, STRV("again"), (void *)(uintptr_t) "again"); /* usable after it was emptied */
	assert_int_equal(map_count(v.m), 1);
	map_free(v.m, NULL);
}

TEST(many_entries_and_free_value)
{
	struct map *m = map_new();
	char key[32];

	for (int i = 0; i < 20000; i++) {
		snprintf(key, sizeof(key), "key-%d", i);
		assert_null(map_set(m, strv_of(key), xstrdup(key)));
	}
	for (int i = 0; i < 20000; i += 2) {
		snprintf(key, sizeof(key), "key-%d", i);
		xfree(map_del(m, strv_of(key)));
	}
	assert_int_equal(map_count(m), 10000);
	for (int i = 0; i < 20000; i++) {
		snprintf(key, sizeof(key), "key-%d", i);
		assert_int_equal(map_get(m, strv_of(key)) != NULL, i % 2);
	}
	map_free(m, xfree);
}

TEST(hash_is_keyed_but_stable)
{
	assert_true(map_hash("abc", 3) == map_hash("abc", 3));
	assert_true(map_hash("abc", 3) != map_hash("abd", 3));
}

static void
set_null(void *m)
{
	map_set(m, STRV("x"), NULL);
}

TEST(null_value_is_a_bug)
{
	struct map *m = map_new();

	assert_true(t_aborts(set_null, m));
	map_free(m, NULL);
}

T_MAIN(T(siphash_vectors), T(set_get_delete), T(keys_are_bytes_and_copied),
    T(visit_in_order_with_deletes), T(many_entries_and_free_value), T(hash_is_keyed_but_stable),
    T(null_value_is_a_bug))
