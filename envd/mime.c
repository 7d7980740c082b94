/* See mime.h. */
#include "envd/mime.h"

#include <string.h>

static const struct {
	const char *ext, *type;
} types[] = {
	{ "7z", "application/x-7z-compressed" },
	{ "avif", "image/avif" },
	{ "bmp", "image/bmp" },
	{ "bz2", "application/x-bzip2" },
	{ "css", "text/css; charset=utf-8" },
	{ "csv", "text/csv; charset=utf-8" },
	{ "doc", "application/msword" },
	{ "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
	{ "gif", "image/gif" },
	{ "gz", "application/gzip" },
	{ "htm", "text/html; charset=utf-8" },
	{ "html", "text/html; charset=utf-8" },
	{ "ico", "image/vnd.microsoft.icon" },
	{ "jpeg", "image/jpeg" },
	{ "jpg", "image/jpeg" },
	{ "js", "text/javascript; charset=utf-8" },
	{ "json", "application/json" },
	{ "md", "text/markdown; charset=utf-8" },
	{ "mjs", "text/javascript; charset=utf-8" },
	{ "mp3", "audio/mpeg" },
	{ "mp4", "video/mp4" },
	{ "ogg", "audio/ogg" },
	{ "pdf", "application/pdf" },
	{ "png", "image/png" },
	{ "ppt", "application/vnd.ms-powerpoint" },
	{ "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
	{ "svg", "image/svg+xml" },
	{ "tar", "application/x-tar" },
	{ "tif", "image/tiff" },
	{ "tiff", "image/tiff" },
	{ "ttf", "font/ttf" },
	{ "txt", "text/plain; charset=utf-8" },
	{ "wasm", "application/wasm" },
	{ "wav", "audio/wav" },
	{ "webm", "video/webm" },
	{ "webp", "image/webp" },
	{ "woff", "font/woff" },
	{ "woff2", "font/woff2" },
	{ "xls", "application/vnd.ms-excel" },
	{ "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
	{ "xml", "text/xml; charset=utf-8" },
	{ "xz", "application/x-xz" },
	{ "zip", "application/zip" },
	{ "zst", "application/zstd" },
};

static const struct {
	struct strv magic;
	const char *type;
} magics[] = {
	{ { "\x89PNG\r\n\x1a\n", 8 }, "image/png" },
	{ { "\xff\xd8\xff", 3 }, "image/jpeg" },
	{ { "GIF87a", 6 }, "image/gif" },
	{ { "GIF89a", 6 }, "image/gif" },
	{ { "%PDF-", 5 }, "application/pdf" },
	{ { "PK\x03\x04", 4 }, "application/zip" },
	{ { "\x1f\x8b\x08", 3 }, "application/gzip" },
	{ { "\0asm", 4 }, "application/wasm" },
};

const char *
mime_by_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	if (dot == NULL)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (strv_caseis(strv_of(dot + 1), types[i].ext))
			return types[i].type;
	}
	return NULL;
}

/* Bytes that no text has (WHATWG MIME sniffing, "binary data byte"). */
static bool
is_binary(struct strv s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x20 && c != '\t' && c != '\n' && c != '\f' && c != '\r' && c != 0x1b)
			return true;
	}
	return false;
}

const char *
mime_by_content(struct strv start)
{
	for (size_t i = 0; i < ARRAY_LEN(magics); i++) {
		if (strv_prefix(start, magics[i].magic))
			return magics[i].type;
	}
	return is_binary(start) ? "application/octet-stream" : "text/plain; charset=utf-8";
}
