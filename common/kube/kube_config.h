/*
 * Where the Kubernetes API is and how to authenticate: in-cluster (service account) or a
 * kubeconfig. Values only; kube_client.h uses them.
 */
#ifndef KUBE_CONFIG_H
#define KUBE_CONFIG_H

#include "base/bug.h"
#include "base/err.h"
#include "base/fsutil.h"
#include "base/str.h"

struct kube_config {
	char *server;             /* "https://10.96.0.1:443", no trailing slash */
	char *ns;                 /* namespace of the service account or context; NULL: not said */
	char *ca_pem;             /* PEM text; NULL: the system's */
	char *cert_pem, *key_pem; /* client certificate; NULL: none */
	char *token;              /* bearer token; NULL: none */
	char *token_file;         /* re-read when it changes and after a 401; NULL: fixed token */
	struct file_stamp token_stamp;
	bool insecure; /* kubeconfig's insecure-skip-tls-verify */
};

/* kubeconfig: path, or NULL/"" for in-cluster when KUBERNETES_SERVICE_HOST is set, else
 * $HOME/.kube/config. Supports inline data and files for CA, certificate, key and token, and the
 * current context. exec and auth-provider plugins are refused with a clear message. */
int kube_config_load(const char *kubeconfig, struct kube_config **ret, struct err *e) MUST_USE;
/* Its two halves, for tests: dir is where relative file names start, or where the service account's
 * files are. */
int kube_config_parse(
    struct strv text, const char *dir, struct kube_config **ret, struct err *e) MUST_USE;
int kube_config_in_cluster(const char *dir, const char *host, const char *port,
    struct kube_config **ret, struct err *e) MUST_USE;
void kube_config_free(struct kube_config *c);
/* The bearer token to send now (re-reads a rotated file), or NULL. force: re-read whatever the
 * stamp says. */
const char *kube_config_token(struct kube_config *c, bool force);

#endif
