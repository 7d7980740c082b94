#include "t.h"

#include "base/clock.h"
#include "base/fsutil.h"
#include "base/json.h"
#include "domain/blueprint.h"

#define ID "i0123456789abcdefghij"

static const char *const small = "apiVersion: apps/v1\n"
                                 "kind: ReplicaSet\n"
                                 "metadata:\n"
                                 "  name: {{.Sandbox.Name}}\n"
                                 "spec:\n"
                                 "  template:\n"
                                 "    spec:\n"
                                 "      containers:\n"
                                 "      - name: sandbox\n"
                                 "        image: {{.Sandbox.Image}}\n";

static const struct blueprint_env env = { .ns = "ns1", .envd_image = "reg/envd:1", .rev = "r1" };

/* A template to render with, and a spec that uses it. */
struct fixture {
	struct templates *templates;
	json_t *metadata;
	struct sandbox_spec spec;
};

static void
fixture_init(struct fixture *f, const char *template)
{
	struct err e;

	assert_ok(e, templates_parse(strv_of(template), &f->templates, &e));
	f->metadata = json_object();
	f->spec = (struct sandbox_spec){
		.id = ID,
		.name = "sbx-" ID,
		.tenant = "team",
		.template = templates_at(f->templates, 0),
		.template_id = "base",
		.image = "reg/base:1",
		.metadata = f->metadata,
		.started = SECONDS(1700000000) + 5 * NS_PER_US,
		.end_at = TIME_NEVER,
		.timeout = -1,
	};
}

static void
fixture_done(struct fixture *f)
{
	json_decref(f->metadata);
	templates_free(f->templates);
}

#define BASE "[{\"name\":\"base\",\"image\":\"reg/base:1\",\"envd\":\"image\"}]"

static json_t *
render(const char *text, const struct sandbox_spec *spec)
{
	struct blueprint *b;
	struct err e;
	json_t *rs;

	assert_ok(e, blueprint_compile(strv_of(text), &b, &e));
	assert_ok(e, blueprint_render(b, &env, spec, &rs, &e));
	blueprint_free(b);
	return rs;
}

static json_t *
container_of_rs(const json_t *rs, size_t i)
{
	return json_array_get(json_get_arr(rs, "spec.template.spec.containers"), i);
}

static const char *
annotation(const json_t *rs, const char *key)
{
	return json_member_str(json_get_obj(rs, "metadata.annotations"), key);
}

static const char *
env_value(const json_t *container, const char *name)
{
	const json_t *list = json_get_arr(container, "env");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);

		if (strcmp(json_get_str(item, "name"), name) == 0)
			return json_get_str(item, "value");
	}
	return NULL;
}

TEST(what_holds_whatever_the_blueprint_says)
{
	struct fixture f;
	const json_t *labels;
	json_t *rs;

	fixture_init(&f, BASE);
	rs = render(
	    "apiVersion: apps/v1\nkind: ReplicaSet\n"
	    "metadata:\n  name: wrong\n  namespace: wrong\n  generateName: wrong\n"
	    "  labels: {owner: wrong, mine: 5, sbx-id: wrong}\n"
	    "  annotations: {x: true, agent-sandbox.io/desired: deleted}\n"
	    "spec:\n  replicas: 7\n  selector: {matchLabels: {app: x}}\n"
	    "  template:\n    metadata:\n      name: wrong\n      labels: {team: 1.5}\n"
	    "      annotations: {n: 1}\n"
	    "    spec:\n      nodeSelector: {disk: 1}\n      containers:\n"
	    "      - name: side\n        env: [{name: A, value: 1}]\n"
	    "      - name: sandbox\n        command: [x]\n        args: [y]\n"
	    "        env: [{name: T, value: true}, {name: ENVD_REQUIRE_INIT, value: \"0\"}]\n"
	    "status: {replicas: 9}\n",
	    &f.spec);
	assert_string_equal(json_get_str(rs, "metadata.name"), "sbx-" ID);
	assert_string_equal(json_get_str(rs, "metadata.namespace"), "ns1");
	assert_null(json_get(rs, "metadata.generateName"));
	assert_null(json_get(rs, "status"));
	labels = json_get_obj(rs, "metadata.labels");
	assert_string_equal(json_member_str(labels, LABEL_OWNER), "agent-sandbox");
	assert_string_equal(json_member_str(labels, LABEL_ID), ID);
	assert_string_equal(json_member_str(labels, LABEL_NAME), "sbx-" ID);
	assert_string_equal(json_member_str(labels, LABEL_TENANT), "team");
	assert_string_equal(json_member_str(labels, LABEL_TEMPLATE), "base");
	assert_string_equal(json_member_str(labels, LABEL_POOL), "false");
	assert_string_equal(json_member_str(labels, "mine"), "5");
	labels = json_get_obj(rs, "spec.template.metadata.labels");
	assert_string_equal(json_member_str(labels, LABEL_ID), ID);
	assert_string_equal(json_member_str(labels, LABEL_POOL), "false");
	assert_string_equal(json_member_str(labels, "team"), "1.5");
	assert_null(json_get(rs, "spec.template.metadata.name"));
	assert_string_equal(json_get_str(rs, "spec.template.metadata.annotations.n"), "1");
	assert_string_equal(json_get_str(rs, "spec.template.spec.nodeSelector.disk"), "1");
	assert_int_equal(json_get_int(rs, "spec.replicas", 0), 1);
	assert_int_equal(json_object_size(json_get(rs, "spec.selector")), 1);
	assert_int_equal(json_object_size(json_get(rs, "spec.selector.matchLabels")), 1);
	assert_string_equal(
	    json_member_str(json_get(rs, "spec.selector.matchLabels"), LABEL_ID), ID);
	assert_string_equal(annotation(rs, ANNOTATION_DESIRED), "running");
	assert_string_equal(annotation(rs, "x"), "true");
	assert_true(json_is_false(json_get(rs, "spec.template.spec.automountServiceAccountToken")));
	assert_int_equal(
	    json_get_int(rs, "spec.template.spec.terminationGracePeriodSeconds", 0), 2);
	assert_string_equal(env_value(container_of_rs(rs, 0), "A"), "1");
	assert_string_equal(env_value(container_of_rs(rs, 1), "T"), "true");
	assert_string_equal(env_value(container_of_rs(rs, 1), "ENVD_REQUIRE_INIT"), "1");
	assert_int_equal(json_array_size(json_get(container_of_rs(rs, 1), "env")), 2);
	assert_string_equal(json_get_str(container_of_rs(rs, 1), "image"), "reg/base:1");
	assert_null(json_get(container_of_rs(rs, 1), "args"));
	assert_int_equal(json_array_size(json_get(container_of_rs(rs, 1), "command")), 1);
	assert_string_equal(json_get_str(container_of_rs(rs, 1), "resources.limits.cpu"), "2000m");
	json_decref(rs);
	fixture_done(&f);
}

TEST(what_the_blueprint_may_choose)
{
	struct fixture f;
	json_t *rs;

	fixture_init(&f, BASE);
	rs = render("apiVersion: apps/v1\nkind: ReplicaSet\nspec:\n  template:\n    spec:\n"
	            "      automountServiceAccountToken: true\n"
	            "      terminationGracePeriodSeconds: 30\n      hostNetwork: true\n"
	            "      containers:\n      - name: sandbox\n        image: other\n"
	            "        resources: {}\n",
	    &f.spec);
	assert_true(json_get_bool(rs, "spec.template.spec.automountServiceAccountToken", false));
	assert_true(json_get_bool(rs, "spec.template.spec.hostNetwork", false));
	assert_int_equal(
	    json_get_int(rs, "spec.template.spec.terminationGracePeriodSeconds", 0), 30);
	assert_string_equal(json_get_str(container_of_rs(rs, 0), "image"), "other");
	assert_int_equal(json_object_size(json_get(container_of_rs(rs, 0), "resources")), 0);
	json_decref(rs);
	fixture_done(&f);
}

TEST(annotations_and_data)
{
	struct fixture f;
	json_t *rs, *data, *network, *mcp, *yes = json_true();
	struct err e;

	fixture_init(&f,
	    "[{\"name\":\"base\",\"image\":\"reg/base:1\",\"envd\":\"image\","
	    "\"port\":49983,\"user\":\"user\",\"workdir\":\"/w\",\"readyCmd\":\"true\","
	    "\"metadata\":{\"a\":\"template\",\"b\":\"template\"}}]");
	assert_ok(e,
	    json_parse(STRV("{\"allowOut\":[\"x.io\"],\"egressProxy\":{\"address\":\"p:1\","
	                    "\"username\":\"u\",\"password\":\"hush-proxy\"},\"rules\":{\"x.io\":"
	                    "[{\"transform\":{\"headers\":{\"Authorization\":\"hush-rule\"}}}]}}"),
	        4096, &network, &e));
	assert_ok(e, json_parse(STRV("{\"github\":{\"token\":\"hush-mcp\"}}"), 4096, &mcp, &e));
	json_set_str(f.metadata, "b", "request");
	f.spec.end_at = f.spec.started + SECONDS(300);
	f.spec.timeout = 300;
	f.spec.on_end = ON_END_PAUSE;
	f.spec.auto_resume = true;
	f.spec.secure = true;
	f.spec.idle_after = 90;
	f.spec.sealed = "id.sealed";
	f.spec.network = network;
	f.spec.mcp = mcp;
	f.spec.allow_internet = yes;
	rs = render(small, &f.spec);
	assert_string_equal(annotation(rs, ANNOTATION_DESIRED), "running");
	assert_string_equal(annotation(rs, ANNOTATION_GENERATION), "1");
	assert_string_equal(annotation(rs, ANNOTATION_STARTED), "2023-11-14T22:13:20.000005Z");
	assert_string_equal(annotation(rs, ANNOTATION_END), "2023-11-14T22:18:20.000005Z");
	assert_string_equal(annotation(rs, ANNOTATION_ON_END), "pause");
	assert_string_equal(annotation(rs, ANNOTATION_IDLE_AFTER), "90");
	assert_string_equal(annotation(rs, ANNOTATION_AUTO_RESUME), "true");
	assert_string_equal(annotation(rs, ANNOTATION_SEALED), "id.sealed");
	assert_string_equal(annotation(rs, ANNOTATION_REV), "r1");
	assert_has_not(annotation(rs, ANNOTATION_DATA), "hush");
	assert_ok(e, json_parse(strv_of(annotation(rs, ANNOTATION_DATA)), 1 << 20, &data, &e));
	assert_string_equal(json_get_str(data, "metadata.a"), "template");
	assert_string_equal(json_get_str(data, "metadata.b"), "request");
	assert_string_equal(json_get_str(data, "template"), "base");
	assert_string_equal(json_get_str(data, "image"), "reg/base:1");
	assert_int_equal(json_get_int(data, "port", 0), 49983);
	assert_string_equal(json_get_str(data, "resources.memoryLimit"), "4000Mi");
	assert_string_equal(json_get_str(data, "lifecycle.onEnd"), "pause");
	assert_true(json_get_bool(data, "lifecycle.autoResume", false));
	assert_int_equal(json_get_int(data, "lifecycle.timeout", 0), 300);
	assert_true(json_get_bool(data, "secure", false));
	assert_true(json_get_bool(data, "allowInternetAccess", false));
	assert_string_equal(json_get_str(data, "network.egressProxy.username"), "u");
	assert_int_equal(json_object_size(json_get(data, "mcp.github")), 0);
	assert_non_null(json_get(data, "mcp.github"));
	assert_string_equal(json_get_str(data, "user"), "user");
	assert_string_equal(json_get_str(data, "workdir"), "/w");
	assert_string_equal(json_get_str(data, "readyCmd"), "true");
	assert_null(json_get(data, "startCmd"));
	assert_null(json_get(data, "volumeMounts"));
	/* What was given is not changed. */
	assert_string_equal(json_get_str(network, "egressProxy.password"), "hush-proxy");
	assert_null(json_get(f.spec.template->metadata, "c"));
	assert_string_equal(json_get_str(f.spec.template->metadata, "b"), "template");
	json_decref(data);
	json_decref(rs);
	json_decref(network);
	json_decref(mcp);
	fixture_done(&f);
}

/* What is written is what sandbox_decode reads. */
TEST(the_result_decodes_to_what_was_asked)
{
	struct sandbox *s;
	struct fixture f;
	struct err e;
	json_t *rs;

	fixture_init(&f, BASE);
	json_set_str(f.metadata, "k", "v");
	f.spec.template_id = "team/base:1.0";
	f.spec.end_at = SECONDS(1800000000);
	f.spec.on_end = ON_END_PAUSE;
	f.spec.secure = true;
	rs = render(small, &f.spec);
	assert_string_equal(
	    json_member_str(json_get(rs, "metadata.labels"), LABEL_TEMPLATE), "team-base-1.0");
	assert_ok(e, sandbox_decode(rs, &s, &e));
	assert_string_equal(s->id, ID);
	assert_string_equal(s->name, "sbx-" ID);
	assert_string_equal(s->tenant, "team");
	assert_string_equal(s->template_id, "team/base:1.0");
	assert_int_equal(s->desired, DESIRED_RUNNING);
	assert_true(s->started == f.spec.started);
	assert_true(s->end_at == f.spec.end_at);
	assert_int_equal(s->on_end, ON_END_PAUSE);
	assert_int_equal(s->idle_after, 0);
	assert_true(s->secure);
	assert_int_equal(s->metadata_n, 1);
	assert_string_equal(s->metadata[0].value, "v");
	assert_int_equal(sandbox_state(s, NULL, 0), SANDBOX_CREATING);
	sandbox_free(s);
	json_decref(rs);
	f.spec.pool = true;
	f.spec.tenant = NULL;
	f.spec.end_at = TIME_NEVER;
	rs = render(small, &f.spec);
	assert_ok(e, sandbox_decode(rs, &s, &e));
	assert_true(s->pool);
	assert_int_equal(s->desired, DESIRED_WARM);
	assert_true(s->end_at == TIME_NEVER);
	assert_string_equal(s->tenant, "");
	sandbox_free(s);
	json_decref(rs);
	fixture_done(&f);
}

TEST(envd_in_the_image)
{
	struct fixture f;
	json_t *rs;

	fixture_init(&f, BASE);
	rs = render(small, &f.spec);
	assert_int_equal(json_array_size(json_get(container_of_rs(rs, 0), "command")), 1);
	assert_string_equal(
	    json_string_value(json_array_get(json_get(container_of_rs(rs, 0), "command"), 0)),
	    "/usr/local/bin/envd");
	assert_null(json_get(rs, "spec.template.spec.initContainers"));
	assert_null(json_get(rs, "spec.template.spec.volumes"));
	json_decref(rs);
	fixture_done(&f);
}

TEST(envd_injected)
{
	const json_t *init, *mount, *command;
	struct fixture f;
	json_t *rs;

	fixture_init(&f, "[{\"name\":\"t\",\"image\":\"x\"}]");
	rs = render("apiVersion: apps/v1\nkind: ReplicaSet\nspec:\n  template:\n    spec:\n"
	            "      volumes: [{name: v, emptyDir: {}}]\n"
	            "      initContainers: [{name: first, image: i, env: [{name: A, value: 1}]}]\n"
	            "      containers:\n      - name: sandbox\n"
	            "        volumeMounts: [{name: v, mountPath: /v}]\n",
	    &f.spec);
	assert_string_equal(
	    json_string_value(json_array_get(json_get(container_of_rs(rs, 0), "command"), 0)),
	    "/agent-sandbox/envd");
	mount = json_array_get(json_get(container_of_rs(rs, 0), "volumeMounts"), 1);
	assert_string_equal(json_get_str(mount, "name"), "agent-sandbox-envd");
	assert_string_equal(json_get_str(mount, "mountPath"), "/agent-sandbox");
	assert_true(json_get_bool(mount, "readOnly", false));
	init = json_array_get(json_get(rs, "spec.template.spec.initContainers"), 0);
	assert_string_equal(json_get_str(init, "name"), "envd-install");
	assert_string_equal(json_get_str(init, "image"), "reg/envd:1");
	command = json_get(init, "command");
	assert_int_equal(json_array_size(command), 3);
	assert_string_equal(json_string_value(json_array_get(command, 0)), "/envd");
	assert_string_equal(json_string_value(json_array_get(command, 1)), "--install");
	assert_string_equal(json_string_value(json_array_get(command, 2)), "/agent-sandbox/envd");
	assert_false(json_get_bool(init, "securityContext.allowPrivilegeEscalation", true));
	assert_non_null(json_get_str(init, "resources.limits.memory"));
	assert_string_equal(
	    env_value(json_array_get(json_get(rs, "spec.template.spec.initContainers"), 1), "A"),
	    "1");
	assert_int_equal(json_array_size(json_get(rs, "spec.template.spec.volumes")), 2);
	json_decref(rs);
	fixture_done(&f);
}

static char *
start_cmd(const char *template, const char *cmd, const char *args)
{
	json_t *rs, *data, *c = NULL, *a = NULL;
	struct fixture f;
	struct err e;
	char *ret;

	fixture_init(&f, template);
	if (cmd != NULL)
		assert_ok(e, json_parse(strv_of(cmd), 4096, &c, &e));
	if (args != NULL)
		assert_ok(e, json_parse(strv_of(args), 4096, &a, &e));
	f.spec.cmd = c;
	f.spec.args = a;
	rs = render(small, &f.spec);
	assert_null(json_get(container_of_rs(rs, 0), "args"));
	assert_ok(e, json_parse(strv_of(annotation(rs, ANNOTATION_DATA)), 1 << 20, &data, &e));
	ret = xstrdup(json_get_str(data, "startCmd"));
	json_decref(data);
	json_decref(rs);
	json_decref(c);
	json_decref(a);
	fixture_done(&f);
	return ret;
}

#define TPL(fields) "[{\"name\":\"t\",\"image\":\"x\",\"envd\":\"image\"" fields "}]"

TEST(commands_become_the_start_command)
{
	char *s = start_cmd(TPL(""), NULL, NULL);

	assert_null(s);
	s = start_cmd(
	    TPL(",\"cmd\":[\"python3\",\"-m\",\"http.server\"],\"args\":[\"80\"]"), NULL, NULL);
	assert_string_equal(s, "python3 -m http.server 80");
	xfree(s);
	s = start_cmd(TPL(",\"cmd\":[\"a\"],\"args\":[\"b\"]"), "[\"sh\",\"-c\"]",
	    "[\"echo it's $HOME; rm -rf /\",\"\"]");
	assert_string_equal(s, "sh -c 'echo it'\\''s $HOME; rm -rf /' ''");
	xfree(s);
	s = start_cmd(TPL(",\"cmd\":[\"a\"],\"startCmd\":\"exec me && more\""), "[\"b\"]", NULL);
	assert_string_equal(s, "exec me && more");
	xfree(s);
}

/* Values from a request cannot become structure, wherever the blueprint puts them. */
TEST(values_stay_values)
{
	static const char *const evil[] = { "x\nkind: Pod", "a: b", "- x", "{a: b}", "[x]", "# c",
		"&a", "*a", "!!int 5", "|", ">\n x", "\"", "'", "x\n---\ny", "%YAML 1.1", "\\n",
		"~", "null", "true", "0x10", "1e3", "{{.Sandbox.ID}}", "\xe2\x80\xa8x", "\x7f",
		"" };
	struct fixture f;
	json_t *rs, *vars = json_object();

	fixture_init(&f, BASE);
	for (size_t i = 0; i < ARRAY_LEN(evil); i++) {
		const json_t *ann;

		json_object_clear(f.metadata);
		json_object_clear(vars);
		json_set_str(f.metadata, "v", evil[i]);
		json_set_str(f.metadata, evil[i][0] ? evil[i] : "k", "as key");
		json_set_str(vars, "V", evil[i]);
		f.spec.env_vars = vars;
		rs = render("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata:\n  annotations:\n"
		            "    raw: {{.RawData}}\n"
		            "    plain: {{.Sandbox.Metadata.v}}\n"
		            "    in: a {{.Sandbox.Metadata.v}} b\n"
		            "    q: {{printf \"%q\" .Sandbox.Metadata.v}}\n"
		            "    dq: \"{{.Sandbox.Metadata.v}}\"\n"
		            "    sq: '{{.Sandbox.Metadata.v}}'\n"
		            "    block: |-\n      {{.Sandbox.Metadata.v}}\n"
		            "    {{- range $k, $v := .Sandbox.Metadata}}\n"
		            "    {{$k}}: {{$v}}\n"
		            "    {{- end}}\n"
		            "spec:\n  template:\n    spec:\n      containers:\n"
		            "      - name: sandbox\n        env:\n"
		            "        {{- range $k, $v := .Sandbox.EnvVars}}\n"
		            "        - name: {{$k}}\n          value: {{$v}}\n"
		            "        {{- end}}\n"
		            "        ports: [{containerPort: {{.Sandbox.Port}}}]\n",
		    &f.spec);
		ann = json_get_obj(rs, "metadata.annotations");
		assert_string_equal(json_member_str(ann, "plain"), evil[i]);
		assert_string_equal(json_member_str(ann, "q"), evil[i]);
		assert_string_equal(json_member_str(ann, "dq"), evil[i]);
		assert_string_equal(json_member_str(ann, "sq"), evil[i]);
		assert_string_equal(json_member_str(ann, "block"), evil[i]);
		assert_string_equal(json_member_str(ann, "raw"), annotation(rs, ANNOTATION_DATA));
		assert_memory_equal(json_member_str(ann, "in"), "a ", 2);
		assert_string_equal(json_member_str(ann, evil[i][0] ? evil[i] : "k"), "as key");
		assert_string_equal(json_get_str(rs, "kind"), "ReplicaSet");
		assert_string_equal(env_value(container_of_rs(rs, 0), "V"), evil[i]);
		assert_int_equal(
		    json_get_int(json_array_get(json_get(container_of_rs(rs, 0), "ports"), 0),
		        "containerPort", 0),
		    8080);
		json_decref(rs);
	}
	json_decref(vars);
	fixture_done(&f);
}

/* Metadata may not overwrite what we enforce, even when it is used as keys of annotations. */
TEST(keys_of_a_request_lose_against_ours)
{
	struct fixture f;
	json_t *rs;

	fixture_init(&f, BASE);
	json_set_str(f.metadata, ANNOTATION_END, "forged");
	json_set_str(f.metadata, LABEL_TENANT, "other");
	rs = render("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata:\n  annotations:\n"
	            "    {{- range $k, $v := .Sandbox.Metadata}}\n    {{$k}}: {{$v}}\n"
	            "    {{- end}}\n  labels:\n    {{- range $k, $v := .Sandbox.Metadata}}\n"
	            "    {{$k}}: {{$v}}\n    {{- end}}\n"
	            "spec: {template: {spec: {containers: [{name: sandbox}]}}}\n",
	    &f.spec);
	assert_string_equal(annotation(rs, ANNOTATION_END), "never");
	assert_string_equal(json_member_str(json_get(rs, "metadata.labels"), LABEL_TENANT), "team");
	json_decref(rs);
	fixture_done(&f);
}

TEST(mistakes_in_blueprints)
{
#define HEAD "apiVersion: apps/v1\nkind: ReplicaSet\n"
	static const struct {
		const char *text, *part;
	} bad[] = {
		{ "kind: ReplicaSet", "must be one object of apiVersion" },
		{ "apiVersion: v1\nkind: Pod", "must be one object of apiVersion" },
		{ "- a", "must be one object of apiVersion" },
		{ "a: [", "as rendered: line" },
		{ HEAD "---\nx: y\n", "more than one document" },
		{ HEAD, "no container is named 'sandbox'" },
		{ HEAD "spec: {template: {spec: {containers: [{name: main}]}}}",
		    "no container is named 'sandbox'" },
		{ HEAD "spec: [1]", "'spec' must be a mapping" },
		{ HEAD "metadata: {labels: {a: [1]}}", "'a' of 'labels' must be a text" },
		{ HEAD "metadata: {annotations: 5}", "'annotations' must be a mapping" },
		{ HEAD "spec: {template: {spec: {containers: [{name: sandbox, env: 5}]}}}",
		    "env must be a list" },
		{ HEAD "spec: {template: {spec: {containers: [{name: sandbox, env: [{name: A, "
		       "value: []}]}]}}}",
		    "values of env" },
		{ HEAD "x: \"\\{{.Namespace}}\"", "as rendered" },
		{ HEAD "x: &{{.Namespace}} 1", "anchors are not supported" },
		{ HEAD "x: *{{.Namespace}}", "aliases are not supported" },
		{ HEAD "x: !{{.Namespace}} 1", "tags are not supported" },
		{ HEAD "x: {{.Sandbox.Imgae}}", "line 3, column 14: there is no .Imgae" },
	};
	struct blueprint *b;
	struct fixture f;
	struct err e;
	json_t *rs;

	fixture_init(&f, BASE);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_ok(e, blueprint_compile(strv_of(bad[i].text), &b, &e));
		assert_fails(e, ERR_INVALID, blueprint_render(b, &env, &f.spec, &rs, &e));
		assert_has(e.msg, "blueprint");
		assert_has(e.msg, bad[i].part);
		blueprint_free(b);
	}
	assert_fails(e, ERR_INVALID, blueprint_compile(STRV("{{if}}"), &b, &e));
	assert_has(e.msg, "blueprint: line 1, column 5");
	blueprint_free(NULL);
	fixture_done(&f);
}

TEST(mistakes_with_envd)
{
	static const char *const bad[] = { "volumes: [{name: agent-sandbox-envd}]",
		"initContainers: [{name: envd-install}]", "volumes: 5" };
	struct blueprint_env no_image = { .ns = "n", .envd_image = "" };
	struct blueprint *b;
	struct fixture f;
	char text[512];
	struct err e;
	json_t *rs;

	fixture_init(&f, "[{\"name\":\"t\",\"image\":\"x\"}]");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(text, sizeof(text),
		    HEAD "spec:\n  template:\n    spec:\n      %s\n"
		         "      containers: [{name: sandbox}]\n",
		    bad[i]);
		assert_ok(e, blueprint_compile(strv_of(text), &b, &e));
		assert_fails(e, ERR_INVALID, blueprint_render(b, &env, &f.spec, &rs, &e));
		blueprint_free(b);
	}
	assert_ok(e, blueprint_compile(strv_of(small), &b, &e));
	assert_fails(e, ERR_INVALID, blueprint_render(b, &no_image, &f.spec, &rs, &e));
	assert_has(e.msg, "ENVD_IMAGE");
	blueprint_free(b);
	fixture_done(&f);
}

TEST(annotations_are_bounded)
{
	char *big = xcalloc(1, 200 * 1024 + 1);
	struct blueprint *b;
	struct fixture f;
	struct err e;
	json_t *rs;

	memset(big, 'x', 200 * 1024);
	fixture_init(&f, BASE);
	json_set_str(f.metadata, "k", big);
	assert_ok(e, blueprint_compile(strv_of(small), &b, &e));
	assert_ok(e, blueprint_render(b, &env, &f.spec, &rs, &e));
	json_decref(rs);
	f.spec.sealed = big;
	assert_fails(e, ERR_TOO_LARGE, blueprint_render(b, &env, &f.spec, &rs, &e));
	blueprint_free(b);
	fixture_done(&f);
	xfree(big);
}

TEST(labels_and_annotations_for_a_claim)
{
	json_t *labels, *ann, *rs, *all;
	struct fixture f;

	fixture_init(&f, BASE);
	labels = blueprint_labels(&f.spec);
	ann = blueprint_annotations(&env, &f.spec);
	rs = render(small, &f.spec);
	assert_true(json_equal(labels, json_get(rs, "metadata.labels")));
	all = json_object_get(json_object_get(rs, "metadata"), "annotations");
	assert_true(json_equal(ann, all));
	json_decref(labels);
	json_decref(ann);
	json_decref(rs);
	fixture_done(&f);
}

static char *
shipped(const char *name)
{
	char path[128], *text, *at;
	struct err e;

	snprintf(path, sizeof(path), "charts/agent-sandbox/files/%s", name);
	if (access(path, R_OK) != 0)
		return NULL;
	assert_ok(e, file_read(path, 1 << 20, &text, NULL, &e));
	while ((at = strstr(text, "@BASE_IMAGE@")) != NULL)
		memcpy(at, "example/base", 12);
	return text;
}

/* Every template that the chart brings, rendered with the blueprint that it brings. */
TEST(shipped_blueprint)
{
	char *text = shipped("blueprint.yaml"), *templates = shipped("templates.json");
	struct fixture f;

	if (text == NULL || templates == NULL) {
		xfree(text);
		xfree(templates);
		skip();
	}
	fixture_init(&f, templates);
	for (size_t i = 0; i < templates_count(f.templates); i++) {
		const json_t *c, *pod;
		json_t *rs;

		f.spec.template = templates_at(f.templates, i);
		f.spec.image = f.spec.template->pattern ? "example/x:1" : f.spec.template->image;
		rs = render(text, &f.spec);
		pod = json_get_obj(rs, "spec.template.spec");
		c = container_of_rs(rs, 0);
		assert_string_equal(json_get_str(c, "name"), "sandbox");
		assert_string_equal(json_get_str(c, "image"), f.spec.image);
		assert_string_equal(
		    json_get_str(c, "resources.requests.cpu"), f.spec.template->resources.cpu);
		assert_string_equal(json_get_str(c, "resources.limits.memory"),
		    f.spec.template->resources.memory_limit);
		assert_true(json_is_false(json_get(pod, "automountServiceAccountToken")));
		json_decref(rs);
	}
	fixture_done(&f);
	xfree(text);
	xfree(templates);
}

TEST(check_finds_what_a_rendering_would)
{
	static const char *const bad[] = { "- a\n- b\n", "kind: Pod\napiVersion: v1\n",
		"apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: {{.Sandbox.Imgae}}}\n" };
	char *text = NULL;
	struct blueprint *b;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_ok(e, blueprint_compile(strv_of(bad[i]), &b, &e));
		assert_fails(e, ERR_INVALID, blueprint_check(b, &e));
		blueprint_free(b);
	}
	assert_ok(
	    e, file_read("charts/agent-sandbox/files/blueprint.yaml", 1 << 20, &text, NULL, &e));
	assert_ok(e, blueprint_compile(strv_of(text), &b, &e));
	assert_ok(e, blueprint_check(b, &e));
	blueprint_free(b);
	xfree(text);
}

T_MAIN(T(check_finds_what_a_rendering_would), T(what_holds_whatever_the_blueprint_says),
    T(what_the_blueprint_may_choose), T(annotations_and_data),
    T(the_result_decodes_to_what_was_asked), T(envd_in_the_image), T(envd_injected),
    T(commands_become_the_start_command), T(values_stay_values),
    T(keys_of_a_request_lose_against_ours), T(mistakes_in_blueprints), T(mistakes_with_envd),
    T(annotations_are_bounded), T(labels_and_annotations_for_a_claim), T(shipped_blueprint))
