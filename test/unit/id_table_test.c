#include "t.h"

#include "domain/id_table.h"

struct thing {
	char name[16];
};

static struct strv
name_of(const void *object)
{
	return strv_of(((const struct thing *)object)->name);
}

static void
drop(void *object)
{
	xfree(object);
}

static struct thing *
make(unsigned i)
{
	struct thing *t = xcalloc(1, sizeof(*t));

	snprintf(t->name, sizeof(t->name), "k%u", i);
	return t;
}

TEST(add_get_delete)
{
	struct id_table t;
	struct thing *a = make(1);

	id_table_init(&t, name_of);
	assert_null(id_table_get(&t, STRV("k1")));
	id_table_add(&t, a);
	assert_ptr_equal(id_table_get(&t, STRV("k1")), a);
	assert_null(id_table_get(&t, STRV("k")));
	assert_null(id_table_get(&t, STRV("k11")));
	id_table_del(&t, a);
	assert_null(id_table_get(&t, STRV("k1")));
	id_table_add(&t, a);
	id_table_done(&t, drop);
}

/* Against an array: growing, shrinking, closing of gaps. */
TEST(random_use)
{
	enum { N = 3000 };
	static struct thing *model[N];
	struct id_table t;
	unsigned seed = 7, n = 0;
	char key[16];

	id_table_init(&t, name_of);
	for (unsigned step = 0; step < 60000; step++) {
		unsigned i;

		seed = seed * 1103515245 + 12345;
		i = seed / 65536 % N;
		/* The first half fills, the second empties. */
		if (model[i] == NULL && (step < 30000 || seed / 7 % 4 == 0)) {
			model[i] = make(i);
			id_table_add(&t, model[i]);
			n++;
		} else if (model[i] != NULL && (step >= 30000 || seed / 7 % 4 == 0)) {
			id_table_del(&t, model[i]);
			xfree(model[i]);
			model[i] = NULL;
			n--;
		}
		assert_int_equal(t.n, n);
		if (step % 1000 != 0)
			continue;
		for (unsigned j = 0; j < N; j++) {
			snprintf(key, sizeof(key), "k%u", j);
			assert_ptr_equal(id_table_get(&t, strv_of(key)), model[j]);
		}
	}
	for (unsigned j = 0; j < N; j++) {
		if (model[j] == NULL)
			continue;
		id_table_del(&t, model[j]);
		xfree(model[j]);
	}
	assert_int_equal(t.n, 0);
	assert_true(t.cap <= 128);
	id_table_done(&t, drop);
}

T_MAIN(T(add_get_delete), T(random_use))
