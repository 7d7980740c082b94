#include "t.h"

#include "base/crypto.h"

static const unsigned char key[32] = "0123456789abcdef0123456789abcde";

static const char *
hex(const unsigned char p[SHA256_LEN])
{
	static char out[2 * SHA256_LEN + 1];

	hex_encode(p, SHA256_LEN, out);
	return out;
}

TEST(sha256_vectors)
{
	unsigned char out[SHA256_LEN];

	crypto_sha256(STRV_NONE, out);
	assert_string_equal(
	    hex(out), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	crypto_sha256(STRV("abc"), out);
	assert_string_equal(
	    hex(out), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* RFC 4231, cases 1, 2 and 6. */
TEST(hmac_vectors)
{
	unsigned char out[SHA256_LEN];
	char k[131];

	memset(k, 0x0b, 20);
	crypto_hmac_sha256((struct strv){ k, 20 }, STRV("Hi There"), out);
	assert_string_equal(
	    hex(out), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	crypto_hmac_sha256(STRV("Jefe"), STRV("what do ya want for nothing?"), out);
	assert_string_equal(
	    hex(out), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(k, 0xaa, sizeof(k));
	crypto_hmac_sha256((struct strv){ k, sizeof(k) },
	    STRV("Test Using Larger Than Block-Size Key - Hash Key First"), out);
	assert_string_equal(
	    hex(out), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	crypto_hmac_sha256(STRV_NONE, STRV_NONE, out);
	assert_string_equal(
	    hex(out), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

/* AES-256-GCM test case 16 of McGrew and Viega, with nonce and tag around it as we store them. */
TEST(opens_a_known_text)
{
	static const char k_hex[] = "feffe9928665731c6d6a8f9467308308"
	                            "feffe9928665731c6d6a8f9467308308";
	static const char box_hex[] =
	    "cafebabefacedbaddecaf888"
	    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
	    "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
	    "76fc6ece0f4e1768cddf8853bb2d551b";
	static const char aad_hex[] = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
	unsigned char k[32], box[88], aad[20];
	char sealed[BASE64_LEN(88) + 1], *text, first[9];
	struct err e;
	size_t n;

	assert_int_equal(hex_decode(STRV(k_hex), k, 32), 0);
	assert_int_equal(hex_decode(STRV(box_hex), box, 88), 0);
	assert_int_equal(hex_decode(STRV(aad_hex), aad, 20), 0);
	base64_encode(box, 88, sealed);
	assert_ok(
	    e, crypto_open(k, strv_of(sealed), (struct strv){ (char *)aad, 20 }, &text, &n, &e));
	assert_int_equal(n, 60);
	hex_encode(text, 4, first);
	assert_string_equal(first, "d9313225");
	xfree(text);
}

TEST(seal_and_open)
{
	for (size_t len = 0; len < 70; len++) {
		CLEANUP(xfreep) char *plain = xcalloc(1, len + 1), *sealed = NULL, *text = NULL;
		struct err e;
		size_t n = 999;

		memset(plain, 'p', len);
		if (len > 2)
			plain[1] = '\0';
		assert_ok(
		    e, crypto_seal(key, (struct strv){ plain, len }, STRV("id1"), &sealed, &e));
		assert_int_equal(strlen(sealed), BASE64_LEN(len + 28));
		assert_ok(e, crypto_open(key, strv_of(sealed), STRV("id1"), &text, &n, &e));
		assert_int_equal(n, len);
		assert_memory_equal(text, plain, len + 1);
	}
}

TEST(every_seal_differs)
{
	CLEANUP(xfreep) char *a = NULL, *b = NULL;
	struct err e;

	assert_ok(e, crypto_seal(key, STRV("x"), STRV("id"), &a, &e));
	assert_ok(e, crypto_seal(key, STRV("x"), STRV("id"), &b, &e));
	assert_string_not_equal(a, b);
}

TEST(any_change_is_noticed)
{
	CLEANUP(xfreep) char *sealed = NULL, *text = NULL;
	unsigned char other[32];
	struct err e;
	size_t n = 5;

	assert_ok(e, crypto_seal(key, STRV("secrets!"), STRV("id1"), &sealed, &e));
	assert_null(strchr(sealed, '=')); /* a decoder does not miss the padding */
	for (size_t i = 0; sealed[i] != '\0'; i++) {
		char keep = sealed[i];

		sealed[i] = keep == 'A' ? 'B' : 'A';
		assert_fails(
		    e, ERR_INVALID, crypto_open(key, strv_of(sealed), STRV("id1"), &text, &n, &e));
		assert_has_not(e.msg, "secret");
		sealed[i] = keep;
	}
	for (size_t len = 0; len < strlen(sealed); len++)
		assert_fails(e, ERR_INVALID,
		    crypto_open(key, (struct strv){ sealed, len }, STRV("id1"), &text, &n, &e));
	assert_fails(e, ERR_INVALID, crypto_open(key, strv_of(sealed), STRV("id2"), &text, &n, &e));
	assert_fails(e, ERR_INVALID, crypto_open(key, strv_of(sealed), STRV_NONE, &text, &n, &e));
	memcpy(other, key, 32);
	other[31] ^= 1;
	assert_fails(
	    e, ERR_INVALID, crypto_open(other, strv_of(sealed), STRV("id1"), &text, &n, &e));
	assert_fails(
	    e, ERR_INVALID, crypto_open(key, STRV("no base64!"), STRV("id1"), &text, &n, &e));
	assert_fails(e, ERR_INVALID, crypto_open(key, STRV_NONE, STRV("id1"), &text, &n, &e));
	assert_null(text);
	assert_int_equal(n, 5);
	assert_ok(e, crypto_open(key, strv_of(sealed), STRV("id1"), &text, &n, &e));
}

TEST(size_limits)
{
	char *sealed = NULL;
	struct err e;
	size_t n;

	assert_fails(e, ERR_TOO_LARGE,
	    crypto_seal(key, (struct strv){ "", 1 << 28 }, STRV_NONE, &sealed, &e));
	assert_fails(e, ERR_TOO_LARGE,
	    crypto_seal(key, STRV("x"), (struct strv){ "", 1 << 20 }, &sealed, &e));
	assert_fails(e, ERR_INVALID,
	    crypto_open(key, (struct strv){ "", (size_t)1 << 40 }, STRV_NONE, &sealed, &n, &e));
	assert_null(sealed);
}

T_MAIN(T(sha256_vectors), T(hmac_vectors), T(opens_a_known_text), T(seal_and_open),
    T(every_seal_differs), T(any_change_is_noticed), T(size_limits))
