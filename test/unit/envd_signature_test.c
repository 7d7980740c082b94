#include "t.h"

#include "envd/signature.h"

TEST(the_published_vector)
{
	char sig[SIGNATURE_LEN + 1];

	signature_make("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", NULL, sig);
	assert_string_equal(sig, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
}

TEST(every_part_counts)
{
	char a[SIGNATURE_LEN + 1], b[SIGNATURE_LEN + 1];

	signature_make("p", "read", "u", "t", NULL, a);
	signature_make("q", "read", "u", "t", NULL, b);
	assert_string_not_equal(a, b);
	signature_make("p", "write", "u", "t", NULL, b);
	assert_string_not_equal(a, b);
	signature_make("p", "read", "", "t", NULL, b);
	assert_string_not_equal(a, b);
	signature_make("p", "read", "u", "T", NULL, b);
	assert_string_not_equal(a, b);
	signature_make("p", "read", "u", "t", "1", b);
	assert_string_not_equal(a, b);
}

T_MAIN(T(the_published_vector), T(every_part_counts))
