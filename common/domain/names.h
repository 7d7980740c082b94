/*
 * Every label, annotation and fixed name that we write to or read from Kubernetes, once.
 */
#ifndef DOMAIN_NAMES_H
#define DOMAIN_NAMES_H

#include "base/envd_wire.h"

#define OWNER_VALUE "agent-sandbox"

/* Labels of ReplicaSet and Pod. */
#define LABEL_OWNER "owner"
#define LABEL_NAME "sandbox"
#define LABEL_ID "sbx-id"
#define LABEL_TENANT "sbx-user"
#define LABEL_TEMPLATE "sbx-template"
#define LABEL_POOL "sbx-pool"
#define SELECTOR_OURS LABEL_OWNER "=" OWNER_VALUE

/* Annotations of the ReplicaSet. */
#define ANNOTATION_DATA "sandbox-data"
#define ANN(x) "agent-sandbox.io/" x
#define ANNOTATION_DESIRED ANN("desired")
#define ANNOTATION_GENERATION ANN("generation")
#define ANNOTATION_STARTED ANN("started-at")  /* last create or resume, RFC 3339 µs */
#define ANNOTATION_END ANN("end-at")          /* RFC 3339 µs, or "never" */
#define ANNOTATION_REMAINING ANN("remaining") /* seconds left while paused, or "never" */
#define ANNOTATION_PAUSED ANN("paused-at")    /* when the last pause was asked, RFC 3339 µs */
#define ANNOTATION_ON_END ANN("on-end")
#define ANNOTATION_IDLE_AFTER ANN("idle-after")
#define ANNOTATION_AUTO_RESUME ANN("auto-resume")
#define ANNOTATION_SEALED ANN("sealed")
#define ANNOTATION_READY ANN("ready") /* "<pod uid>/<restart count>" */
#define ANNOTATION_FAILED ANN("failed")
#define ANNOTATION_REV ANN("rev")

#define NEVER "never"

#define CONTAINER_NAME "sandbox"
#define ENVD_CONTAINER "envd-install"
#define ENVD_VOLUME "agent-sandbox-envd"
#define ENVD_MOUNT "/agent-sandbox"
#define ENVD_IMAGE_PATH "/usr/local/bin/envd"

/* Keys of the ConfigMap. */
#define CONFIG_TEMPLATES "config-templates"
#define CONFIG_BLUEPRINT "config-sandbox-template"
#define CONFIG_RUNTIME "config-runtime"
#define SECRET_KEYS_ENTRY "keys.json"
#define SECRET_INSTALL_ENTRY "key"

#define SANDBOX_ID_LEN 21 /* 'i' and 20 of [a-z0-9] */
#define SANDBOX_ID_MAX 40 /* what we accept from outside: a DNS label with the port must fit */
#define SANDBOX_NAME_MAX 50
#define TENANT_NAME_MAX 40

#endif
