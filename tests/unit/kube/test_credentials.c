/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials: kubeconfigs of all shapes, a Pod's files, and what happens when files are replaced.
 */
#include "kube/credentials.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/base64.h"
#include "kube/kubeconfig.h"
#include "kube/transport.h"
#include "net/tls.h"

#include "fake_transport.h"
#include "test.h"
#include "test_pem.h"

struct fixture {
    struct sw_loop *loop;
    struct fake_log log;
    char *folder;
    struct sw_credentials *credentials;
    unsigned changes;
    struct sw_error error;
};

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->loop = sw_loop_virtual_new(INT64_C(1767225600000000), 3);
    fake_log_init(&f->log, f->loop);
    f->folder = test_folder_new();
}

static void close_credentials(struct fixture *f)
{
    sw_credentials_close(f->credentials);
    f->credentials = NULL;
}

static void teardown(struct fixture *f)
{
    close_credentials(f);
    fake_log_done(&f->log);
    test_folder_done(f->folder);
    assert_int_equal(sw_loop_close(f->loop), 0);
}

static void write_text(struct fixture *f, const char *name, const char *text)
{
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/%s", f->folder, name);
    test_write_file(path, text, strlen(text));
}

static void on_change(void *arg)
{
    ((struct fixture *)arg)->changes++;
}

static int parse(struct fixture *f, const char *text)
{
    close_credentials(f);
    memset(&f->error, 0, sizeof(f->error));
    int rc = sw_credentials_parse(f->loop, "some/config", text, strlen(text), f->folder,
                                  &f->log.log, &f->credentials, &f->error);
    if (!rc) {
        sw_credentials_on_change(f->credentials, on_change, f);
    }
    return rc;
}

/* A kubeconfig with these keys of cluster and user, each "  key: value\n". */
static int parse_with(struct fixture *f, const char *cluster, const char *user)
{
    SW_AUTO(char, sw_free)
    text = sw_asprintf(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
        "contexts:\n- name: here\n  context:\n    cluster: c\n    user: u\n    namespace: web\n"
        "clusters:\n- name: c\n  cluster:\n%s"
        "users:\n- name: u\n  user:\n    unknown: {deeply: [nested, 1]}\n%s",
        cluster, user);
    return parse(f, text);
}

#define HTTP "    server: http://127.0.0.1:8080\n"
#define HTTPS "    server: https://api.example:6443/prefix\n"

#define EXEC(command, more)                                         \
    "    exec: {apiVersion: client.authentication.k8s.io/v1beta1, " \
    "command: " command more "}\n"

static void assert_error(struct fixture *f, int rc, int want, const char *text)
{
    assert_int_equal(rc, want);
    assert_int_equal(f->error.code, want);
    if (!strstr(f->error.text, text)) {
        fail_msg("\"%s\" does not say \"%s\"", f->error.text, text);
    }
}

/* ---- base64 ---- */

static void check_base64(const char *text, const char *want)
{
    char *bytes = NULL;
    size_t len = 0;
    int rc = sw_base64_decode(text, strlen(text), &bytes, &len);
    assert_int_equal(rc, want ? 0 : -EINVAL);
    if (want) {
        assert_int_equal(len, strlen(want));
        assert_string_equal(bytes, want);
    }
    sw_free(bytes);
}

TEST(base64_is_written_with_padding)
{
    static const char *const texts[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"~~~\x7f??", "fn5+fz8/"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(texts); i++) {
        struct sw_buf out;
        sw_buf_init(&out, SIZE_MAX);
        assert_int_equal(sw_base64_encode(&out, texts[i][0], strlen(texts[i][0])), 0);
        assert_string_equal(out.bytes, texts[i][1]);
        sw_buf_done(&out);
    }
    struct sw_buf small;
    sw_buf_init(&small, 3);
    assert_int_equal(sw_base64_encode(&small, "f", 1), -ENOBUFS);
    assert_int_equal(small.len, 0);
    sw_buf_done(&small);
}

TEST(base64_is_read_in_both_alphabets)
{
    check_base64("", "");
    check_base64("Zg==", "f");
    check_base64("Zg", "f");
    check_base64("Zm8=", "fo");
    check_base64("Zm9v", "foo");
    check_base64("Zm9vYg==", "foob");
    check_base64("Zm 9v\nYm\tFy\r\n", "foobar");
    check_base64("fn5-fz8_", "~~~\x7f??");
    check_base64("fn5+fz8/", "~~~\x7f??");
    check_base64("Z", NULL);
    check_base64("Zg=", NULL);
    check_base64("Zg===", NULL);
    check_base64("Zm9v=", NULL);
    check_base64("Zg==Zg==", NULL);
    check_base64("Zm9*", NULL);
    check_base64("=", NULL);
}

/* ---- kubeconfig ---- */

TEST(a_kubeconfig_with_a_token)
{
    struct fixture f;
    setup(&f);
    assert_int_equal(parse_with(&f, HTTP, "    token: abc.def\n"), 0);
    const struct sw_url *server = sw_credentials_server(f.credentials);
    assert_false(server->is_https);
    assert_string_equal(server->host, "127.0.0.1");
    assert_int_equal(server->port, 8080);
    assert_null(sw_credentials_tls(f.credentials));
    assert_null(sw_credentials_tls_name(f.credentials));
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer abc.def");
    assert_string_equal(sw_credentials_namespace(f.credentials), "web");
    assert_null(sw_credentials_subject(f.credentials));
    assert_false(sw_credentials_reload(f.credentials));
    teardown(&f);
}

TEST(a_kubeconfig_may_be_json)
{
    struct fixture f;
    setup(&f);
    assert_int_equal(
        parse(&f, "{\"current-context\":\"x\",\"contexts\":[{\"name\":\"y\",\"context\":null},"
                  "{\"name\":\"x\",\"context\":{\"cluster\":\"c\",\"user\":\"\"}}],"
                  "\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"http://[::1]:1\","
                  "\"certificate-authority\":\"\",\"proxy-url\":\"\"}}],\"users\":null}"),
        0);
    assert_string_equal(sw_credentials_server(f.credentials)->host, "::1");
    assert_null(sw_credentials_authorization(f.credentials));
    assert_string_equal(sw_credentials_namespace(f.credentials), "default");
    teardown(&f);
}

TEST(username_and_password_are_basic)
{
    struct fixture f;
    setup(&f);
    assert_int_equal(parse_with(&f, HTTP, "    username: Aladdin\n    password: open sesame\n"), 0);
    assert_string_equal(sw_credentials_authorization(f.credentials),
                        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_int_equal(parse_with(&f, HTTP, "    username: ab\n    password: \"?>\\xFF\"\n"), 0);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Basic YWI6Pz7Dvw==");
    assert_int_equal(parse_with(&f, HTTP, "    username: u\n"), 0);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Basic dTo=");
    teardown(&f);
}

/* base64 without line breaks, by the tool that people use. */
static char *base64_of(const char *text)
{
    char *folder = test_folder_new();
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/x", folder);
    SW_AUTO(char, sw_free) command = sw_asprintf("base64 -w0 %s", path);
    test_write_file(path, text, strlen(text));
    char *out = sw_malloc(16384);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_true(fread(out, 1, 16383, pipe) > 0);
    assert_int_equal(pclose(pipe), 0);
    test_folder_done(folder);
    return out;
}

TEST(certificates_are_inline_or_in_files)
{
    struct fixture f;
    setup(&f);
    SW_AUTO(char, sw_free) ca = base64_of(TEST_CA_1);
    SW_AUTO(char, sw_free) certificate = base64_of(TEST_CLIENT_1);
    SW_AUTO(char, sw_free) key = base64_of(TEST_CLIENT_1_KEY);
    SW_AUTO(char, sw_free)
    cluster = sw_asprintf(
        HTTPS "    certificate-authority: /nowhere\n    certificate-authority-data: %s\n"
              "    tls-server-name: kubernetes.default.svc\n",
        ca);
    SW_AUTO(char, sw_free)
    user = sw_asprintf("    client-certificate-data: %s\n"
                       "    client-certificate: /nowhere\n"
                       "    client-key-data: %s\n",
                       certificate, key);
    assert_int_equal(parse_with(&f, cluster, user), 0); /* data wins over files */
    assert_non_null(sw_credentials_tls(f.credentials));
    assert_string_equal(sw_credentials_tls_name(f.credentials), "kubernetes.default.svc");
    assert_string_equal(sw_credentials_server(f.credentials)->path, "/prefix");
    assert_null(sw_credentials_authorization(f.credentials));
    assert_true(sw_tls_config_not_after(sw_credentials_tls(f.credentials)) != INT64_MAX);

    write_text(&f, "ca.pem", TEST_CA_1);
    write_text(&f, "c.pem", TEST_CLIENT_1);
    write_text(&f, "c.key", TEST_CLIENT_1_KEY);
    assert_int_equal(parse_with(&f, HTTPS "    certificate-authority: ca.pem\n",
                                "    client-certificate: c.pem\n    client-key: ./c.key\n"),
                     0); /* relative to its folder */
    assert_non_null(sw_credentials_tls(f.credentials));
    teardown(&f);
}

TEST(what_cannot_be_honoured_is_refused_with_what_to_do)
{
    struct fixture f;
    setup(&f);
    static const struct {
        const char *cluster, *user, *says;
    } cases[] = {
        {HTTP, "    exec: {}\n", "user \"u\": exec: it names no command"},
        {HTTP, "    exec: {command: a}\n", "its apiVersion is missing"},
        {HTTP, "    exec: {command: a, apiVersion: client.authentication.k8s.io/v1alpha1}\n",
         "v1alpha1\", not client.authentication.k8s.io/v1 or v1beta1; update the plugin"},
        {HTTP, "    exec: {command: a, apiVersion: client.authentication.k8s.io/v1}\n",
         "its interactiveMode is missing; write Never or IfAvailable"},
        {HTTP, EXEC("a", ", interactiveMode: Always"), "wants to ask a person"},
        {HTTP, EXEC("a", ", interactiveMode: never"), "interactiveMode is \"never\""},
        {HTTP, EXEC("a", ", env: [{value: x}]"), "a variable of env has no name"},
        {HTTP, EXEC("a", ", env: [{name: a=b}]"), "a variable of env has no name"},
        {HTTP, "    auth-provider:\n      name: gcp\n", "auth-provider is not supported: use a "},
        {HTTP, "    as-groups: [a]\n", "but does not say as whom; add as"},
        {HTTP, "    as-uid: x\n", "as-uid"},
        {HTTP, "    as-user-extra: {a: [b]}\n", "as-user-extra"},
        {HTTP, "    as: \"a\\nb\"\n", "a value for Impersonate-User has characters"},
        {HTTPS "    insecure-skip-tls-verify: true\n    certificate-authority: x\n", "",
         "exclude each other"},
        {HTTP, "    client-key: x\n", "client-key is there, but no client-certificate"},
        {HTTP, "    client-certificate: x\n", "client-certificate is there, but no client-key"},
        {HTTP, "    token: a\n    username: b\n", "both a token and a username"},
        {HTTP, "    username: \"a:b\"\n", "colon"},
        {"    insecure-skip-tls-verify: false\n", "", "it has no server"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        assert_error(&f, parse_with(&f, cases[i].cluster, cases[i].user), SW_E_CONFIG,
                     cases[i].says);
        assert_non_null(strstr(f.error.text, "some/config"));
    }
    teardown(&f);
}

TEST(mistakes_are_named_where_they_are)
{
    struct fixture f;
    setup(&f);
    static const struct {
        const char *text;
        int code;
        const char *says;
    } cases[] = {
        {"", SW_E_CONFIG, "it is empty"},
        {"just text", SW_E_SYNTAX, "some/config:1:"},
        {"- a\n", SW_E_SYNTAX, "not a kubeconfig"},
        {"a: [\n", SW_E_SYNTAX, "some/config:"},
        {"a: b\n", SW_E_CONFIG, "no current-context"},
        {"contexts: [{name: x}, {name: y}]\n", SW_E_CONFIG, "there are: \"x\", \"y\""},
        {"current-context: [a]\n", SW_E_SYNTAX, "some/config:1: current-context is not a text"},
        {"current-context: z\n", SW_E_CONFIG, "there is no list \"contexts\""},
        {"current-context: z\ncontexts: [{name: x}]\n", SW_E_CONFIG,
         "there is no context \"z\"; there are: \"x\""},
        {"current-context: z\ncontexts: [{name: z}]\n", SW_E_CONFIG,
         "context \"z\": it names no cluster"},
        {"current-context: z\ncontexts: [{name: z, context: {cluster: k}}]\nclusters: []\n",
         SW_E_CONFIG, "there is no cluster \"k\"; there are: none"},
        {"current-context: z\ncontexts: [{name: z, context: {cluster: k, user: u}}]\n"
         "clusters: [{name: k, cluster: {server: 'http://x'}}]\nusers: [{name: v}]\n",
         SW_E_CONFIG, "there is no user \"u\"; there are: \"v\""},
        {"current-context: z\ncontexts: [{name: z, context: {cluster: k}}]\n"
         "clusters: [{name: k, cluster: {server: 'api.example:6443'}}]\n",
         SW_E_SYNTAX, "server \"api.example:6443\""},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        assert_error(&f, parse(&f, cases[i].text), cases[i].code, cases[i].says);
    }
    static const struct {
        const char *cluster, *user, *says;
    } values[] = {
        {HTTPS "    insecure-skip-tls-verify: maybe\n", "", "neither true nor false"},
        {HTTPS "    certificate-authority-data: '***'\n", "", "is not base64"},
        {HTTPS "    certificate-authority-data: AAAA\n", "", "not the base64 of PEM"},
        {HTTPS "    certificate-authority-data: Zm9v\n", "", "some/config: "},
        {HTTPS, "    token: [a]\n", "token is not a text"},
        {HTTPS, "    token: \"a b\"\n", "characters no token has"},
        {HTTPS, "    token: \"a\\nX: y\"\n", "characters no token has"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(values); i++) {
        int rc = parse_with(&f, values[i].cluster, values[i].user);
        assert_error(&f, rc, SW_E_SYNTAX, values[i].says);
        assert_null(strstr(f.error.text, "a b")); /* no secret in a message */
    }
    teardown(&f);
}

TEST(insecure_is_said_aloud)
{
    struct fixture f;
    setup(&f);
    assert_int_equal(parse_with(&f, HTTPS "    insecure-skip-tls-verify: true\n", ""), 0);
    assert_non_null(sw_credentials_tls(f.credentials));
    assert_true(fake_log_has(&f.log, "certificate is not verified"));
    teardown(&f);
}

/* ---- tokens ---- */

#define JWT(payload) "eyJhbGciOiJub25lIn0." payload ".c2ln"
/* {"sub":"system:serviceaccount:kube-system:slipway"} */
#define JWT_SLIPWAY JWT("eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6a3ViZS1zeXN0ZW06c2xpcHdheSJ9")

TEST(the_subject_of_a_token_is_known)
{
    struct fixture f;
    setup(&f);
    assert_int_equal(parse_with(&f, HTTP, "    token: " JWT_SLIPWAY "\n"), 0);
    assert_string_equal(sw_credentials_subject(f.credentials),
                        "system:serviceaccount:kube-system:slipway");
    static const char *const opaque[] = {"abc", "a.b.c", "..", JWT("e30"), JWT("bm9wZQ"), "a.e30"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(opaque); i++) {
        SW_AUTO(char, sw_free) user = sw_asprintf("    token: \"%s\"\n", opaque[i]);
        assert_int_equal(parse_with(&f, HTTP, user), 0);
        assert_null(sw_credentials_subject(f.credentials));
    }
    teardown(&f);
}

TEST(a_token_file_is_read_again)
{
    struct fixture f;
    setup(&f);
    char big[12 * 1024 + 1];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    write_text(&f, "token", " \n first\r\n\n");
    assert_int_equal(parse_with(&f, HTTP, "    token: beside\n    tokenFile: token\n"), 0);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer first");
    assert_false(sw_credentials_reload(f.credentials));

    write_text(&f, "token", "second");
    const char *borrowed = sw_credentials_authorization(f.credentials);
    assert_true(sw_credentials_reload(f.credentials)); /* at a 401 */
    assert_int_equal(f.changes, 1);
    assert_string_equal(borrowed, "Bearer first"); /* until the loop turns */
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer second");

    write_text(&f, "token", "third");
    sw_loop_virtual_advance(f.loop, 60000); /* by itself */
    assert_int_equal(f.changes, 2);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer third");

    static const char *const useless[] = {"", " \n", "a b", "a\nb: c", "caf\xc3\xa9"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(useless); i++) {
        write_text(&f, "token", useless[i]);
        assert_false(sw_credentials_reload(f.credentials));
        assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer third");
    }
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/token", f.folder);
    assert_int_equal(unlink(path), 0);
    assert_false(sw_credentials_reload(f.credentials));
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer third");
    assert_int_equal(fake_log_count(&f.log, "keeping the one that was there"), 6);

    write_text(&f, "token", big);
    assert_true(sw_credentials_reload(f.credentials));
    assert_int_equal(strlen(sw_credentials_authorization(f.credentials)), 7 + 12 * 1024);
    assert_false(fake_log_has(&f.log, "second"));
    assert_false(fake_log_has(&f.log, "xxxx"));
    teardown(&f);
}

TEST(a_transport_numbers_the_credentials)
{
    struct fixture f;
    struct sw_transport *transport;
    setup(&f);
    write_text(&f, "token", "first");
    assert_int_equal(parse_with(&f, HTTP, "    tokenFile: token\n"), 0);
    assert_int_equal(
        sw_transport_http_open(f.loop, f.credentials, "test", &f.log.log, &transport, &f.error), 0);
    const struct sw_transport_ops *ops = transport->ops;
    unsigned number = ops->credentials_number(transport);
    assert_false(ops->refresh_credentials(transport));
    assert_int_equal(ops->credentials_number(transport), number);
    write_text(&f, "token", "second");
    sw_loop_virtual_advance(f.loop, 60000); /* by itself */
    assert_int_not_equal(ops->credentials_number(transport), number);
    number = ops->credentials_number(transport);
    write_text(&f, "token", "third");
    assert_true(ops->refresh_credentials(transport));
    assert_int_not_equal(ops->credentials_number(transport), number);
    ops->close(transport);
    sw_loop_virtual_advance(f.loop, 0);
    teardown(&f);
}

TEST(a_token_beside_an_unreadable_file_is_taken)
{
    struct fixture f;
    setup(&f);
    assert_int_equal(parse_with(&f, HTTP, "    token: beside\n    tokenFile: token\n"), 0);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer beside");
    write_text(&f, "token", "inside");
    assert_true(sw_credentials_reload(f.credentials));
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer inside");
    assert_error(&f, parse_with(&f, HTTP, "    tokenFile: nowhere\n"), -ENOENT, "nowhere");
    write_text(&f, "empty", "\n");
    assert_error(&f, parse_with(&f, HTTP, "    tokenFile: empty\n"), -ENODATA, "empty");
    teardown(&f);
}

/* ---- certificates that are replaced ---- */

TEST(replaced_certificates_make_a_new_configuration)
{
    struct fixture f;
    setup(&f);
    write_text(&f, "ca", TEST_CA_1);
    write_text(&f, "cert", TEST_CLIENT_1);
    write_text(&f, "key", TEST_CLIENT_1_KEY);
    assert_int_equal(parse_with(&f, HTTPS "    certificate-authority: ca\n",
                                "    client-certificate: cert\n    client-key: key\n"),
                     0);
    struct sw_tls_config *first = sw_tls_config_ref(sw_credentials_tls(f.credentials));
    write_text(&f, "ca", TEST_CA_1 TEST_CA_2);
    sw_loop_virtual_advance(f.loop, 60000);
    assert_int_equal(f.changes, 1);
    assert_ptr_not_equal(sw_credentials_tls(f.credentials), first);
    sw_tls_config_unref(first);

    /* One of two files: it does not fit yet. */
    first = sw_tls_config_ref(sw_credentials_tls(f.credentials));
    write_text(&f, "cert", TEST_CLIENT_2);
    sw_loop_virtual_advance(f.loop, 60000);
    assert_int_equal(f.changes, 1);
    assert_ptr_equal(sw_credentials_tls(f.credentials), first);
    assert_true(fake_log_has(&f.log, "keeping those in use"));
    write_text(&f, "key", TEST_CLIENT_2_KEY);
    sw_loop_virtual_advance(f.loop, 60000);
    assert_int_equal(f.changes, 2);
    assert_ptr_not_equal(sw_credentials_tls(f.credentials), first);
    sw_tls_config_unref(first);

    first = sw_tls_config_ref(sw_credentials_tls(f.credentials));
    write_text(&f, "ca", "rubbish");
    assert_false(sw_credentials_reload(f.credentials));
    assert_ptr_equal(sw_credentials_tls(f.credentials), first);
    sw_tls_config_unref(first);
    assert_false(fake_log_has(&f.log, "MIGHAgEA")); /* how the keys begin */
    teardown(&f);
}

/* ---- in a Pod ---- */

static int open_pod(struct fixture *f, const char *host)
{
    close_credentials(f);
    memset(&f->error, 0, sizeof(f->error));
    return sw_credentials_open_pod(f->loop, host, "443", f->folder, &f->log.log, &f->credentials,
                                   &f->error);
}

TEST(a_pod_uses_its_service_account)
{
    struct fixture f;
    setup(&f);
    assert_error(&f, open_pod(&f, "10.0.0.1"), -ENOENT, "automountServiceAccountToken");
    assert_non_null(strstr(f.error.text, "ca.crt"));
    write_text(&f, "ca.crt", TEST_CA_1);
    assert_error(&f, open_pod(&f, "10.0.0.1"), -ENOENT, "/token");
    write_text(&f, "token", JWT_SLIPWAY "\n");
    assert_int_equal(open_pod(&f, "10.0.0.1"), 0);
    assert_string_equal(sw_credentials_namespace(f.credentials), "default");
    write_text(&f, "namespace", "kube-system\n");
    assert_int_equal(open_pod(&f, "fd00::1"), 0);
    assert_string_equal(sw_credentials_namespace(f.credentials), "kube-system");
    assert_string_equal(sw_credentials_server(f.credentials)->host, "fd00::1");
    assert_int_equal(sw_credentials_server(f.credentials)->port, 443);
    assert_true(sw_credentials_server(f.credentials)->is_https);
    assert_non_null(sw_credentials_tls(f.credentials));
    assert_string_equal(sw_credentials_subject(f.credentials),
                        "system:serviceaccount:kube-system:slipway");
    teardown(&f);
}

/* As the kubelet does it: token -> ..data/token, ..data -> a folder that is swapped. */
TEST(a_swapped_volume_is_noticed)
{
    struct fixture f;
    setup(&f);
    SW_AUTO(char, sw_free) one = sw_asprintf("%s/..1", f.folder);
    SW_AUTO(char, sw_free) two = sw_asprintf("%s/..2", f.folder);
    SW_AUTO(char, sw_free) data = sw_asprintf("%s/..data", f.folder);
    SW_AUTO(char, sw_free) next = sw_asprintf("%s/..data_tmp", f.folder);
    SW_AUTO(char, sw_free) token = sw_asprintf("%s/token", f.folder);
    assert_int_equal(mkdir(one, 0700), 0);
    assert_int_equal(mkdir(two, 0700), 0);
    write_text(&f, "..1/token", "one");
    write_text(&f, "..2/token", "two");
    assert_int_equal(symlink("..1", data), 0);
    assert_int_equal(symlink("..data/token", token), 0);
    assert_int_equal(parse_with(&f, HTTP, "    tokenFile: token\n"), 0);
    assert_int_equal(symlink("..2", next), 0);
    assert_int_equal(rename(next, data), 0);
    sw_loop_virtual_advance(f.loop, 60000);
    assert_int_equal(f.changes, 1);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer two");
    teardown(&f);
}

/* ---- where they are looked for ---- */

static void clear_environment(void)
{
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    unsetenv("HOME");
}

static int open_in(struct fixture *f, const char *flag, const char *context)
{
    struct sw_credentials_options options = {flag, context};
    close_credentials(f);
    memset(&f->error, 0, sizeof(f->error));
    return sw_credentials_open(f->loop, &options, &f->log.log, &f->credentials, &f->error);
}

static int open_as(struct fixture *f, const char *flag)
{
    return open_in(f, flag, NULL);
}

static char *write_named(struct fixture *f, const char *name, const char *token)
{
    SW_AUTO(char, sw_free)
    text = sw_asprintf("current-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"
                       "clusters: [{name: x, cluster: {server: 'http://x'}}]\n"
                       "users: [{name: x, user: {token: %s}}]\n",
                       token);
    write_text(f, name, text);
    return sw_asprintf("%s/%s", f->folder, name);
}

TEST(places_are_searched_in_order)
{
    struct fixture f;
    setup(&f);
    clear_environment();
    assert_error(&f, open_as(&f, NULL), -ENOENT, "this is not a Pod");
    setenv("HOME", f.folder, 1);
    assert_error(&f, open_as(&f, NULL), -ENOENT, "/.kube/config");
    SW_AUTO(char, sw_free) kube = sw_asprintf("%s/.kube", f.folder);
    assert_int_equal(mkdir(kube, 0700), 0);
    sw_free(write_named(&f, ".kube/config", "home"));
    assert_int_equal(open_as(&f, NULL), 0);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer home");

    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    assert_error(&f, open_as(&f, NULL), -ENOENT, "/var/run/secrets/kubernetes.io/serviceaccount");
    assert_error(&f, open_in(&f, NULL, "x"), SW_E_CONFIG, "a context (\"x\") is of a kubeconfig");

    SW_AUTO(char, sw_free) env = write_named(&f, "env", "env");
    setenv("KUBECONFIG", env, 1);
    assert_int_equal(open_as(&f, NULL), 0);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer env");
    setenv("KUBECONFIG", "/nowhere", 1);
    assert_error(&f, open_as(&f, NULL), -ENOENT, "KUBECONFIG: "); /* named, so nothing else */
    setenv("KUBECONFIG", "/a::/b", 1);
    assert_error(&f, open_as(&f, NULL), -ENOENT, "KUBECONFIG: none of /a::/b is there");
    SW_AUTO(char, sw_free) list = sw_asprintf("/a:%s:/b", env);
    setenv("KUBECONFIG", list, 1);
    assert_int_equal(open_as(&f, NULL), 0);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer env");
    assert_error(&f, open_in(&f, NULL, "y"), SW_E_CONFIG, "there is no context \"y\"");

    SW_AUTO(char, sw_free) flag = write_named(&f, "flag", "flag");
    assert_int_equal(open_as(&f, flag), 0);
    assert_string_equal(sw_credentials_authorization(f.credentials), "Bearer flag");
    assert_error(&f, open_as(&f, "/nowhere"), -ENOENT, "--kubeconfig: /nowhere");
    setenv("KUBECONFIG", "", 1);
    clear_environment();
    teardown(&f);
}

TEST(a_kubeconfig_has_its_limit)
{
    struct fixture f;
    setup(&f);
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/huge", f.folder);
    size_t len = (1 << 20) + 1;
    SW_AUTO(char, sw_free) text = sw_malloc(len);
    memset(text, '#', len);
    test_write_file(path, text, len);
    assert_error(&f, open_as(&f, path), SW_E_TOO_LARGE, "huge");
    teardown(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("base64", base64_is_written_with_padding),
        CASE("base64", base64_is_read_in_both_alphabets),
        CASE("credentials", a_kubeconfig_with_a_token),
        CASE("credentials", a_kubeconfig_may_be_json),
        CASE("credentials", username_and_password_are_basic),
        CASE("credentials", certificates_are_inline_or_in_files),
        CASE("credentials", what_cannot_be_honoured_is_refused_with_what_to_do),
        CASE("credentials", mistakes_are_named_where_they_are),
        CASE("credentials", insecure_is_said_aloud),
        CASE("credentials", the_subject_of_a_token_is_known),
        CASE("credentials", a_token_file_is_read_again),
        CASE("credentials", a_transport_numbers_the_credentials),
        CASE("credentials", a_token_beside_an_unreadable_file_is_taken),
        CASE("credentials", replaced_certificates_make_a_new_configuration),
        CASE("credentials", a_pod_uses_its_service_account),
        CASE("credentials", a_swapped_volume_is_noticed),
        CASE("credentials", places_are_searched_in_order),
        CASE("credentials", a_kubeconfig_has_its_limit),
    };
    return RUN(tests);
}
