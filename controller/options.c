/* The controller's option table: flags, environment, --help and docs come from it. */
#include "controller/app.h"

const struct conf_option controller_options[] = {
	{ "METRICS_ADDR", CONF_TEXT, "0.0.0.0:10002", 0, 0, false,
	    "address of /metrics and the probes" },
	{ "SANDBOX_NAMESPACE", CONF_TEXT, "", 0, 0, false,
	    "namespace of everything; empty: our own" },
	{ "CONFIGMAP_NAME", CONF_TEXT, "agent-sandbox", 0, 0, false,
	    "ConfigMap with templates and blueprint" },
	{ "INSTALL_SECRET", CONF_TEXT, "agent-sandbox-install", 0, 0, false,
	    "Secret with the installation key" },
	{ "KUBECONFIG", CONF_TEXT, "", 0, 0, false, "kubeconfig; empty: in-cluster" },
	{ "LEADER_NAME", CONF_TEXT, "agent-sandbox-leader", 0, 0, false, "Lease of the leader" },
	{ "POD_NAME", CONF_TEXT, "", 0, 0, false, "our pod's name, for the Lease and Events" },
	{ "LOG_LEVEL", CONF_TEXT, "info", 0, 0, false, "debug, info, warn or error" },
};
const size_t controller_options_n = ARRAY_LEN(controller_options);
