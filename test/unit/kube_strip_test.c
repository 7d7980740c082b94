#include "t.h"

#include "kube/kube_strip.h"

static void
becomes(const char *in, const char *out)
{
	struct strbuf scratch;

	strbuf_init(&scratch, 4096);
	strbuf_adds(&scratch, "left over");
	assert_strv(kube_strip(strv_of(in), &scratch), out);
	strbuf_done(&scratch);
}

TEST(the_member_goes_with_one_comma)
{
	becomes("{\"a\":1,\"managedFields\":[],\"b\":2}", "{\"a\":1,\"b\":2}");
	becomes("{\"managedFields\":[{\"x\":[1,{}]}],\"b\":2}", "{\"b\":2}");
	becomes("{\"a\":1,\"managedFields\":[1]}", "{\"a\":1}");
	becomes("{\"managedFields\":[\"]\",\"\\\"]\",\"\\\\\"]}", "{}");
	becomes("{\"m\":{\"n\":1,\"managedFields\":[[]]},\"s\":[]}", "{\"m\":{\"n\":1},\"s\":[]}");
}

TEST(everything_else_stays)
{
	static const char *const same[] = {
		"",
		"{}",
		"\"managedFields\":[]",
		"{\"a\":\",\\\"managedFields\\\":[\"}",
		"{\"a\":\"{\\\"managedFields\\\":[]}\"}",
		"{\"managedFields\":null}",
		"{\"managedFields\":{\"a\":[]}}",
		"{\"xmanagedFields\":[]}",
		"{\"managedFields\":[",
		"{\"managedFields\":[\"",
		"{\"managedFields\":[\"\\",
		"{\"managedFields\":[{}",
	};

	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		becomes(same[i], same[i]);
}

T_MAIN(T(the_member_goes_with_one_comma), T(everything_else_stays))
