#include "t.h"

#include "envd/media.h"
#include "envd/mime.h"

static void
param(const char *value, const char *name, const char *want)
{
	CLEANUP(xfreep) char *got = media_param(strv_of(value), name);

	if (want == NULL) {
		assert_null(got);
	} else {
		assert_non_null(got);
		assert_string_equal(got, want);
	}
}

TEST(parameters)
{
	param("multipart/form-data; boundary=abc", "boundary", "abc");
	param("multipart/form-data;boundary=\"a b;c\"; x=1", "boundary", "a b;c");
	param("multipart/form-data; BOUNDARY = abc ", "boundary", "abc");
	param("multipart/form-data", "boundary", NULL);
	param("", "boundary", NULL);
	param("form-data; name=file; filename=\"/a/b c.txt\"", "filename", "/a/b c.txt");
	param("form-data; name=\"file\"; filename=\"/a/b.txt\"", "name", "file");
	param("x; a; b=2", "a", "");
}

TEST(quotes_and_backslashes)
{
	param("form-data; filename=\"a\\\"b\"", "filename", "a\"b");
	param("form-data; filename=\"C:\\dir\\file\"", "filename", "C:\\dir\\file");
	param("form-data; filename=\"a\\\\b\"", "filename", "a\\b");
	param("form-data; filename=\"open", "filename", "open");
	param("form-data; filename=\"a%22b\"", "filename", "a%22b");
	param("form-data; filename=\"\xc3\xa4.txt\"", "filename", "\xc3\xa4.txt");
}

TEST(extended_values)
{
	param("form-data; filename=x; filename*=utf-8''%c3%a4%20b", "filename", "\xc3\xa4 b");
	param("form-data; filename*=UTF-8'en'a.txt; filename=x", "filename", "a.txt");
	param("form-data; filename*=koi8-r''a; filename=x", "filename", "x");
	param("form-data; filename*=utf-8''%zz; filename=x", "filename", "x");
	param("form-data; filename*=utf-8''a%00b", "filename", NULL);
}

TEST(types)
{
	assert_strv(media_type(STRV(" text/plain ; x=y")), "text/plain");
	assert_string_equal(mime_by_name("a.PNG"), "image/png");
	assert_string_equal(mime_by_name("a.b.json"), "application/json");
	assert_null(mime_by_name("Makefile"));
	assert_null(mime_by_name("x."));
	assert_string_equal(mime_by_content(STRV("\x89PNG\r\n\x1a\nxx")), "image/png");
	assert_string_equal(mime_by_content(STRV("hello\n")), "text/plain; charset=utf-8");
	assert_string_equal(mime_by_content(STRV("a\0b")), "application/octet-stream");
	assert_string_equal(mime_by_content(STRV_NONE), "text/plain; charset=utf-8");
}

T_MAIN(T(parameters), T(quotes_and_backslashes), T(extended_values), T(types))
