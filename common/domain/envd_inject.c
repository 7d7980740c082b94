/*
 * envd as the container's program. Either the image has it, or an init container copies it into an
 * empty volume that the container sees read-only.
 */
#include <string.h>

#include "base/json.h"
#include "domain/blueprint_int.h"

#define INSTALL_PATH ENVD_MOUNT "/envd"
#define NOBODY 65534

/* The list at key, made if it is not there. NULL: it is something else. */
static json_t *
list_at(json_t *object, const char *key)
{
	json_t *list = json_object_get(object, key);

	if (list == NULL || json_is_null(list)) {
		json_set(object, key, json_array());
		list = json_object_get(object, key);
	}
	return json_is_array(list) ? list : NULL;
}

/* Does the list have an object whose member `key` is `value`? */
static bool
list_has(const json_t *list, const char *key, const char *value)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *v = json_string_value(json_object_get(json_array_get(list, i), key));

		if (v != NULL && strcmp(v, value) == 0)
			return true;
	}
	return false;
}

int
envd_set_env(json_t *container, const char *name, const char *value, struct err *e)
{
	json_t *env = list_at(container, "env");

	if (env == NULL)
		return err_set(e, ERR_INVALID, "blueprint: env must be a list");
	for (size_t i = json_array_size(env); i-- > 0;) {
		const char *v = json_string_value(json_object_get(json_array_get(env, i), "name"));

		if (v != NULL && strcmp(v, name) == 0)
			json_array_remove(env, i);
	}
	json_array_append_new(env, json_pack("{s:s, s:s}", "name", name, "value", value));
	return 0;
}

/* Runs as nobody: whatever the pod demands of its containers, this one passes. */
static json_t *
install_container(const char *image)
{
	return json_pack("{s:s, s:s, s:s, s:[s,s,s], s:[{s:s, s:s}],"
	                 " s:{s:{s:s, s:s}, s:{s:s, s:s}},"
	                 " s:{s:b, s:b, s:b, s:i, s:i, s:{s:[s]}, s:{s:s}}}",
	    "name", ENVD_CONTAINER, "image", image, "imagePullPolicy", "IfNotPresent", "command",
	    "/envd", "--install", INSTALL_PATH, "volumeMounts", "name", ENVD_VOLUME, "mountPath",
	    ENVD_MOUNT, "resources", "requests", "cpu", "10m", "memory", "16Mi", "limits", "cpu",
	    "500m", "memory", "64Mi", "securityContext", "allowPrivilegeEscalation", 0,
	    "readOnlyRootFilesystem", 1, "runAsNonRoot", 1, "runAsUser", NOBODY, "runAsGroup",
	    NOBODY, "capabilities", "drop", "ALL", "seccompProfile", "type", "RuntimeDefault");
}

static int
add_volume(json_t *pod_spec, json_t *container, const char *image, struct err *e)
{
	json_t *volumes = list_at(pod_spec, "volumes");
	json_t *init = list_at(pod_spec, "initContainers");
	json_t *mounts = list_at(container, "volumeMounts");

	if (volumes == NULL || init == NULL || mounts == NULL)
		return err_set(e, ERR_INVALID,
		    "blueprint: volumes, initContainers and volumeMounts must be lists");
	if (list_has(volumes, "name", ENVD_VOLUME) || list_has(init, "name", ENVD_CONTAINER) ||
	    list_has(mounts, "mountPath", ENVD_MOUNT))
		return err_set(e, ERR_INVALID, "blueprint: %s, %s and %s are used by envd itself",
		    ENVD_VOLUME, ENVD_CONTAINER, ENVD_MOUNT);
	json_array_append_new(volumes, json_pack("{s:s, s:{}}", "name", ENVD_VOLUME, "emptyDir"));
	json_array_append_new(mounts,
	    json_pack(
	        "{s:s, s:s, s:b}", "name", ENVD_VOLUME, "mountPath", ENVD_MOUNT, "readOnly", 1));
	json_array_insert_new(init, 0, install_container(image));
	return 0;
}

int
envd_inject(
    json_t *pod_spec, json_t *container, enum envd_mode mode, const char *envd_image, struct err *e)
{
	const char *path = mode == ENVD_IN_IMAGE ? ENVD_IMAGE_PATH : INSTALL_PATH;

	if (mode == ENVD_INJECT) {
		if (envd_image == NULL || envd_image[0] == '\0')
			return err_set(e, ERR_INVALID,
			    "ENVD_IMAGE is not set, and the template's image has no envd");
		if (add_volume(pod_spec, container, envd_image, e) == -1)
			return -1;
	}
	json_set(container, "command", json_pack("[s]", path));
	json_object_del(container, "args");
	/* Until it has been told whom it belongs to, envd refuses everything but that. */
	return envd_set_env(container, "ENVD_REQUIRE_INIT", "1", e);
}
