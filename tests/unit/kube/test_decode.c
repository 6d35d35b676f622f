/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: views of real documents, what is refused and with which words, and the edges. */
#include "test.h"

#include <slipway/apps.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "documents.h"
#include "kube/decode.h"
#include "oracle.h"
#include "widget.h"

struct bench {
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    const struct sw_kind *kind;
    struct sw_error error;
};

static struct bench bench_new(const struct sw_kind *kind)
{
    struct bench b = {.intern = sw_intern_new(), .kind = kind};
    b.decoder = sw_decoder_new(kind, b.intern);
    return b;
}

static void bench_done(struct bench *b)
{
    sw_decoder_free(b->decoder);
    assert_int_equal(sw_intern_size(b->intern), 0);
    sw_intern_free(b->intern);
}

/* NULL where it is refused; b->error says why. */
static struct sw_object *decode(struct bench *b, const char *text, size_t len)
{
    struct sw_object *object = NULL;
    char *copy = exact_copy(text, len);
    b->error = (struct sw_error){0};
    int code = sw_decode_object(b->decoder, copy, len, NULL, &object, &b->error);
    assert_int_equal(code, object ? 0 : SW_E_SYNTAX);
    const char *why = oracle_check(b->kind, copy, len, object);
    if (why) {
        fail_msg("%s\n%.*s", why, (int)SW_MIN(len, (size_t)2000), text);
    }
    free(copy); /* nothing points into the text */
    return object;
}

/* {"metadata":{"name":"w" META},"spec":{SPEC},"status":{STATUS}} */
static struct widget *widget(struct bench *b, const char *meta, const char *spec,
                             const char *status)
{
    char *text = sw_asprintf("{\"metadata\":{\"name\":\"w\"%s},\"spec\":{%s},\"status\":{%s}}",
                             meta, spec, status);
    struct widget *w = (struct widget *)(void *)decode(b, text, strlen(text));
    sw_free(text);
    return w;
}

static void widget_free(struct bench *b, struct widget *w)
{
    sw_object_free(b->decoder, w ? &w->meta : NULL);
}

static struct sw_deployment *deployment(struct bench *b, const char *name)
{
    struct document document = document_read(name);
    struct sw_object *object = decode(b, document.text, document.len);
    if (!object) {
        fail_msg("%s: %s", name, b->error.text);
    }
    document_done(&document);
    return (struct sw_deployment *)(void *)object;
}

/* ---- Deployments ---- */

TEST(views_a_deployment)
{
    struct bench b = bench_new(&sw_kind_deployment);
    struct sw_deployment *d = deployment(&b, "deployment-applied.json");
    assert_ptr_equal(d->meta.kind, &sw_kind_deployment);
    assert_string_equal(d->meta.namespace_, "shop");
    assert_string_equal(d->meta.name, "frontend-web");
    assert_string_equal(d->meta.uid, "5bdc1f0e-7a55-4e35-9d21-b3b0b8d4c9a1");
    assert_string_equal(d->meta.resource_version, "1048213");
    assert_int_equal(d->meta.generation, 12);
    assert_int_equal(d->meta.created_us, INT64_C(1706781601000000));
    assert_int_equal(d->meta.deleted_us, 0);
    assert_int_equal(d->meta.labels.count, 5);
    assert_string_equal(sw_labels_get(&d->meta.labels, "app.kubernetes.io/name"), "frontend");
    assert_string_equal(d->meta.owner_uid, "");
    assert_int_equal(d->replicas, 3);
    assert_false(d->is_paused);
    assert_string_equal(d->strategy, "RollingUpdate");
    assert_true(d->max_surge.is_set && d->max_surge.is_percent);
    assert_int_equal(d->max_surge.value, 25);
    assert_true(d->max_unavailable.is_set && !d->max_unavailable.is_percent);
    assert_int_equal(d->max_unavailable.value, 0);
    assert_int_equal(d->min_ready_seconds, 5);
    assert_int_equal(d->progress_deadline_seconds, 600);
    assert_int_equal(d->observed_generation, 12);
    assert_int_equal(d->status_replicas, 3);
    assert_int_equal(d->updated_replicas, 3);
    assert_int_equal(d->ready_replicas, 3);
    assert_int_equal(d->available_replicas, 3);
    sw_object_free(b.decoder, &d->meta);
    bench_done(&b);
}

TEST(views_conditions)
{
    struct bench b = bench_new(&sw_kind_deployment);
    struct sw_deployment *d = deployment(&b, "deployment-applied.json");
    const struct sw_condition *c = sw_condition_get(&d->conditions, "Progressing");
    assert_int_equal(d->conditions.count, 2);
    assert_non_null(c);
    assert_string_equal(c->status, "True");
    assert_string_equal(c->reason, "NewReplicaSetAvailable");
    assert_string_equal(c->message,
                        "ReplicaSet \"frontend-web-6c5f7b9d8f\" has successfully progressed.");
    assert_int_equal(c->last_update_us, INT64_C(1710145295000000));
    assert_int_equal(c->last_transition_us, INT64_C(1706781601000000));
    assert_true(sw_condition_is(&d->conditions, "Available", "True"));
    assert_false(sw_condition_is(&d->conditions, "ReplicaFailure", "True"));
    sw_object_free(b.decoder, &d->meta);
    bench_done(&b);
}

TEST(keeps_only_the_annotations_of_the_kind)
{
    struct bench b = bench_new(&sw_kind_deployment);
    struct sw_deployment *d = deployment(&b, "deployment-applied.json");
    assert_int_equal(d->meta.annotations.count, 2);
    assert_string_equal(sw_annotation(&d->meta, "deployment.kubernetes.io/revision"), "7");
    assert_string_equal(sw_annotation(&d->meta, "slipway.dev/held-by"), "coordination/shop");
    assert_null(sw_annotation(&d->meta, "kubectl.kubernetes.io/last-applied-configuration"));
    sw_object_free(b.decoder, &d->meta);
    bench_done(&b);
}

TEST(views_what_is_absent_by_its_default)
{
    struct bench b = bench_new(&sw_kind_deployment);
    struct sw_object *object = decode(&b, "{\"metadata\":{\"name\":\"d\"}}", 25);
    const struct sw_deployment *d = (const struct sw_deployment *)(const void *)object;
    assert_non_null(object);
    assert_string_equal(object->namespace_, "");
    assert_string_equal(object->uid, "");
    assert_int_equal(d->replicas, 1);
    assert_int_equal(d->progress_deadline_seconds, 600);
    assert_string_equal(d->strategy, "");
    assert_false(d->max_surge.is_set);
    assert_int_equal(d->template_hash.high | d->template_hash.low, 0);
    assert_null(d->conditions.at);
    sw_object_free(b.decoder, object);
    bench_done(&b);
}

TEST(views_an_owned_deployment_that_is_going)
{
    struct bench b = bench_new(&sw_kind_deployment);
    struct sw_deployment *d = deployment(&b, "deployment-new.json");
    assert_string_equal(d->meta.owner_uid, "11111111-2222-3333-4444-555555555555");
    assert_int_equal(d->meta.deleted_us, INT64_C(1710145800000000));
    assert_int_equal(d->replicas, 0);
    assert_string_equal(d->strategy, "Recreate");
    assert_int_equal(d->progress_deadline_seconds, INT32_MAX);
    assert_int_equal(d->conditions.count, 0);
    sw_object_free(b.decoder, &d->meta);
    bench_done(&b);
}

TEST(hashes_the_template_whatever_else_changes)
{
    struct bench b = bench_new(&sw_kind_deployment);
    struct sw_deployment *applied = deployment(&b, "deployment-applied.json");
    struct sw_deployment *helm = deployment(&b, "deployment-helm.json");
    struct document document = document_read("deployment-applied.json");
    char *replicas = strstr(document.text, "\"spec\":{\"replicas\":3,");
    char *image = strstr(document.text, "\"image\":\"registry"); /* not in the annotation */
    assert_non_null(replicas);
    assert_non_null(image);
    replicas[19] = '4';
    struct sw_object *scaled = decode(&b, document.text, document.len);
    image[9] = 'R';
    struct sw_object *changed = decode(&b, document.text, document.len);
    struct sw_hash128 hash = ((const struct sw_deployment *)(const void *)scaled)->template_hash;
    assert_true(sw_hash128_equal(hash, applied->template_hash));
    hash = ((const struct sw_deployment *)(const void *)changed)->template_hash;
    assert_false(sw_hash128_equal(hash, applied->template_hash));
    assert_false(sw_hash128_equal(helm->template_hash, applied->template_hash));
    sw_object_free(b.decoder, scaled);
    sw_object_free(b.decoder, changed);
    sw_object_free(b.decoder, &applied->meta);
    sw_object_free(b.decoder, &helm->meta);
    document_done(&document);
    bench_done(&b);
}

static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    size_t head = (size_t)(at - text);
    size_t len = strlen(text) - strlen(from) + strlen(to);
    char *result = malloc(len + 1);
    snprintf(result, len + 1, "%.*s%s%s", (int)head, text, to, at + strlen(from));
    return result;
}

/* Kubernetes 1.33 writes creationTimestamp null into a template, 1.34 nothing. */
TEST(hashes_a_template_the_same_after_an_upgrade_of_the_server)
{
    static const char old[] = "\"template\":{\"metadata\":{\"creationTimestamp\":null,";
    static const char new[] = "\"template\":{\"metadata\":{";
    struct bench b = bench_new(&sw_kind_deployment);
    struct sw_deployment *before = deployment(&b, "deployment-applied.json");
    struct document document = document_read("deployment-applied.json");
    char *text = replaced(document.text, old, new);
    struct sw_object *after = decode(&b, text, strlen(text));
    assert_true(sw_hash128_equal(
        before->template_hash, ((const struct sw_deployment *)(const void *)after)->template_hash));
    sw_object_free(b.decoder, after);
    sw_object_free(b.decoder, &before->meta);
    free(text);
    document_done(&document);
    bench_done(&b);
}

TEST(takes_little_memory)
{
    static const char *const names[] = {"deployment-applied.json", "deployment-helm.json"};
    struct bench b = bench_new(&sw_kind_deployment);
    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        struct sw_deployment *d = deployment(&b, names[i]);
        assert_in_range(sw_object_size(&d->meta), sizeof(*d), 1200);
        sw_object_free(b.decoder, &d->meta);
    }
    bench_done(&b);
}

TEST(refuses_every_part_of_a_document)
{
    struct bench b = bench_new(&sw_kind_deployment);
    struct document document = document_read("deployment-applied.json");
    for (size_t len = 0; len + 1 < document.len; len++) {
        struct sw_object *object = NULL;
        char *copy = exact_copy(document.text, len);
        assert_int_equal(sw_decode_object(b.decoder, copy, len, NULL, &object, &b.error),
                         SW_E_SYNTAX);
        assert_null(object);
        free(copy);
    }
    document_done(&document);
    bench_done(&b);
}

/* ---- values ---- */

static bool hashes_alike(struct bench *b, const char *one, const char *other)
{
    struct widget *x = widget(b, "", one, ""), *y = widget(b, "", other, "");
    bool is_alike = sw_hash128_equal(x->hash, y->hash);
    widget_free(b, x);
    widget_free(b, y);
    return is_alike;
}

#define UNSET "\"creationTimestamp\":null"

TEST(hashes_no_time_that_is_not_set)
{
    static const char *const alike[][2] = {
        {"\"template\":{" UNSET "}", "\"template\":{}"},
        {"\"template\":{" UNSET ",\"a\":1}", "\"template\":{\"a\":1}"},
        {"\"template\":{\"a\":1," UNSET "}", "\"template\":{\"a\":1}"},
        {"\"template\":{\"a\":1," UNSET ",\"b\":2}", "\"template\":{\"a\":1,\"b\":2}"},
        {"\"template\":{" UNSET "," UNSET "," UNSET ",\"a\":{" UNSET "}}",
         "\"template\":{\"a\":{}}"},
        {"\"template\":{\"a\":1," UNSET "," UNSET "}", "\"template\":{\"a\":1}"},
        {"\"template\":{ \"a\": 1 , \"creationTimestamp\" : null }", "\"template\":{\"a\":1}"},
    };
    static const char *const different[][2] = {
        {"\"template\":{\"creationTimestamp\":1}", "\"template\":{}"},
        {"\"template\":{\"creationTimestamp\":\"\"}", "\"template\":{}"},
        {"\"template\":{\"x\\" UNSET "}", "\"template\":{}"},
        {"\"template\":{\"x\\" UNSET "}", "\"template\":{\"x\\\"creationTimestamp\":1}"},
        {"\"template\":{\"a\":\"{\\\"creationTimestamp\\\":null}\"}",
         "\"template\":{\"a\":\"{}\"}"},
    };
    struct bench b = bench_new(&widget_kind);
    for (size_t i = 0; i < SW_ARRAY_SIZE(alike); i++)
        assert_true(hashes_alike(&b, alike[i][0], alike[i][1]));
    for (size_t i = 0; i < SW_ARRAY_SIZE(different); i++)
        assert_false(hashes_alike(&b, different[i][0], different[i][1]));
    bench_done(&b);
}

TEST(hashes_tokens_and_not_white_space)
{
    struct bench b = bench_new(&widget_kind);
    struct widget *tight = widget(&b, "", "\"template\":{\"a b\":[1,2,{}],\"c\":\" \\\" x\"}", "");
    struct widget *loose =
        widget(&b, "", "\"template\" : { \"a b\":[ 1 ,\n2,{ }]\t, \"c\" :\" \\\" x\" }", "");
    struct widget *other = widget(&b, "", "\"template\":{\"a b\":[1,2,{}],\"c\":\" \\\"  x\"}", "");
    char text[33];
    assert_true(sw_hash128_equal(tight->hash, loose->hash));
    assert_false(sw_hash128_equal(tight->hash, other->hash));
    widget_free(&b, other);
    other = widget(&b, "", "\"template\":{\"a\":1}", "");
    sw_hash128_text(other->hash, text);
    assert_string_equal(text, "22aa35171700a86976b4f87bf2edc4d9"); /* as OpenSSL has it */
    widget_free(&b, tight);
    widget_free(&b, loose);
    widget_free(&b, other);
    bench_done(&b);
}

TEST(lets_the_last_of_equal_keys_count)
{
    struct bench b = bench_new(&widget_kind);
    struct widget *w = widget(&b, ",\"labels\":{\"a\":\"1\",\"b\":\"2\",\"a\":\"3\",\"b\":null}",
                              "\"small\":1,\"small\":2,\"large\":5,\"large\":null", "");
    assert_int_equal(w->small, 2);
    assert_int_equal(w->large, INT64_MAX);
    assert_int_equal(w->meta.labels.count, 1);
    assert_string_equal(sw_labels_get(&w->meta.labels, "a"), "3");
    widget_free(&b, w);
    /* A whole subtree goes with the first one. */
    w = widget(&b, "", "\"small\":1,\"text\":\"x\",\"strings\":[\"a\"]",
               "},\"spec\":{\"large\":2},\"status\":{");
    assert_int_equal(w->small, -7);
    assert_int_equal(w->large, 2);
    assert_string_equal(w->text, "");
    assert_int_equal(w->strings.count, 0);
    widget_free(&b, w);
    bench_done(&b);
}

TEST(reads_keys_written_with_escapes)
{
    struct bench b = bench_new(&widget_kind);
    struct widget *w = widget(&b, ",\"\\u0061nnotations\":{\"exampl\\u0065.com/x\":\"1\"}",
                              "\"sm\\u0061ll\":4,\"a\\/b~c\":{\"odd\\u0020key\":\"yes\"}", "");
    assert_int_equal(w->small, 4);
    assert_string_equal(w->odd, "yes");
    assert_string_equal(sw_annotation(&w->meta, "example.com/x"), "1");
    widget_free(&b, w);
    bench_done(&b);
}

TEST(interns_what_repeats)
{
    struct bench b = bench_new(&widget_kind);
    struct widget *one =
        widget(&b, ",\"labels\":{\"a\":\"v\"}", "\"colour\":\"red\",\"text\":\"t\"", "");
    struct widget *two =
        widget(&b, ",\"labels\":{\"a\":\"v\"}", "\"colour\":\"r\\u0065d\",\"text\":\"t\"", "");
    assert_ptr_equal(one->colour, two->colour);
    assert_ptr_equal(one->meta.labels.at[0].key, two->meta.labels.at[0].key);
    assert_ptr_equal(one->meta.labels.at[0].value, two->meta.labels.at[0].value);
    assert_ptr_not_equal(one->text, two->text);
    widget_free(&b, one);
    assert_string_equal(two->colour, "red");
    widget_free(&b, two);
    bench_done(&b);
}

TEST(reads_lists_in_lists)
{
    struct bench b = bench_new(&widget_kind);
    struct widget *w = widget(&b, "", "",
                              "\"parts\":[{\"name\":\"a\",\"look\":{\"colour\":\"red\"},\"screws\":"
                              "[{\"size\":3},{},{\"size\":5}]},"
                              "null,{\"tags\":[\"x\",null,\"y\"],\"count\":2}]");
    const struct widget_part *parts = w->parts.at;
    const struct widget_screw *screws = parts[0].screws.at;
    assert_int_equal(w->parts.count, 2);
    assert_string_equal(parts[0].colour, "red");
    assert_int_equal(parts[0].count, 1);
    assert_int_equal(parts[0].screws.count, 3);
    assert_int_equal(screws[0].size, 3);
    assert_int_equal(screws[1].size, 8);
    assert_int_equal(screws[2].size, 5);
    assert_string_equal(parts[1].name, "");
    assert_int_equal(parts[1].tags.count, 2);
    assert_string_equal(parts[1].tags.at[1], "y");
    widget_free(&b, w);
    bench_done(&b);
}

TEST(keeps_raw_text_as_it_came)
{
    struct bench b = bench_new(&widget_kind);
    struct widget *w = widget(&b, "", "\"raw\": {\"a\" : [1.50, \"\\u0041\"]} ", "");
    assert_string_equal(w->raw.text, "{\"a\" : [1.50, \"\\u0041\"]}");
    assert_int_equal(w->raw.len, strlen(w->raw.text));
    widget_free(&b, w);
    bench_done(&b);
}

/* ---- sizes ---- */

TEST(reads_an_annotation_of_a_mebibyte)
{
    enum { SIZE = 1 << 20 };
    struct bench b = bench_new(&widget_kind);
    char *value = malloc(SIZE + 1);
    assert_non_null(value);
    memset(value, 'x', SIZE);
    value[SIZE] = 0;
    char *meta = sw_asprintf(",\"annotations\":{\"whole\":\"%s\"}", value);
    struct widget *w = widget(&b, meta, "", "");
    assert_string_equal(sw_annotation(&w->meta, "whole"), value);
    assert_in_range(sw_object_size(&w->meta), SIZE, SIZE + 4096);
    widget_free(&b, w);
    memcpy(strstr(meta, "whole"), "other", 5);
    w = widget(&b, meta, "", "");
    assert_in_range(sw_object_size(&w->meta), sizeof(*w), 4096);
    widget_free(&b, w);
    sw_free(meta);
    free(value);
    bench_done(&b);
}

TEST(limits_the_nesting)
{
    struct bench b = bench_new(&widget_kind);
    char deep[512];
    for (size_t depth = 198; depth <= 199; depth++) { /* within "spec" within the object */
        memcpy(deep, "\"x\":", 4);
        memset(deep + 4, '[', depth);
        memset(deep + 4 + depth, ']', depth);
        deep[4 + 2 * depth] = 0;
        struct widget *w = widget(&b, "", deep, "");
        assert_int_equal(w != NULL, depth == 198);
        widget_free(&b, w);
    }
    bench_done(&b);
}

TEST(limits_the_number_of_entries)
{
    struct bench b = bench_new(&widget_kind);
    for (int count = 40; count <= 41; count++) {
        char strings[1000] = "\"strings\":[\"\"";
        for (int i = 1; i < count; i++) {
            strcat(strings, ",\"s\"");
        }
        strcat(strings, "]");
        struct widget *w = widget(&b, "", strings, "");
        assert_int_equal(w != NULL, count == 40);
        widget_free(&b, w);
    }
    assert_non_null(strstr(b.error.text, "/spec/strings: more entries"));
    bench_done(&b);
}

TEST(sorts_many_labels)
{
    struct bench b = bench_new(&widget_kind);
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    assert_int_equal(sw_buf_puts(&buf, ",\"labels\":{"), 0);
    for (int i = 9999; i >= 0; i--) { /* from the last to the first, each twice */
        assert_int_equal(sw_buf_printf(&buf, "\"k%04d\":\"old\",\"k%04d\":\"v%d\"%s", i / 2, i / 2,
                                       i / 2, i ? "," : "}"),
                         0);
    }
    struct widget *w = widget(&b, buf.bytes, "", "");
    assert_null(w); /* 20 000 entries */
    assert_non_null(strstr(b.error.text, "/metadata/labels: more entries"));
    sw_buf_clear(&buf);
    assert_int_equal(sw_buf_puts(&buf, ",\"labels\":{"), 0);
    for (int i = 9999; i >= 0; i--) {
        assert_int_equal(sw_buf_printf(&buf, "\"k%04d\":\"v%d\"%s", i / 2, i % 2, i ? "," : "}"),
                         0);
    }
    w = widget(&b, buf.bytes, "", "");
    assert_int_equal(w->meta.labels.count, 5000);
    assert_string_equal(sw_labels_get(&w->meta.labels, "k0000"), "v0");
    assert_string_equal(sw_labels_get(&w->meta.labels, "k4999"), "v0");
    widget_free(&b, w);
    sw_buf_done(&buf);
    bench_done(&b);
}

/* ---- words ---- */

static void refused(struct bench *b, const char *text, const char *words)
{
    assert_null(decode(b, text, strlen(text)));
    if (!strstr(b->error.text, words)) {
        fail_msg("%s\nsays: %s\nnot:  %s", text, b->error.text, words);
    }
}

#define NAMED "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"w\"},"

TEST(says_whose_where_and_what)
{
    struct bench b = bench_new(&widget_kind);
    refused(&b, NAMED "\"spec\":{\"small\":\"3\"}}",
            "ns/w: /spec/small: expected an integer, found a string (byte 58)");
    refused(&b, NAMED "\"spec\":{\"small\":3.5}}", "/spec/small: expected an integer (");
    refused(&b, NAMED "\"spec\":{\"small\":2147483648}}", "/spec/small: integer out of range");
    refused(&b, NAMED "\"spec\":{\"large\":9223372036854775808}}", "out of range");
    refused(&b, NAMED "\"spec\":{\"isOn\":\"true\"}}", "expected a boolean, found a string");
    refused(&b, NAMED "\"spec\":{\"text\":{}}}", "/spec/text: expected a string, found an object");
    refused(&b, NAMED "\"spec\":{\"text\":\"a\\u0000b\"}}", "/spec/text: \\u0000 in a string");
    refused(&b, NAMED "\"spec\":{\"text\":\"\xff\"}}", "/spec/text: a string that is not UTF-8");
    refused(&b, NAMED "\"spec\":{\"since\":\"yesterday\"}}", "/spec/since: not a time of RFC 3339");
    refused(&b, NAMED "\"spec\":{\"share\":\"25\"}}", "neither an integer nor a percentage");
    refused(&b, NAMED "\"spec\":{\"strings\":{}}}", "expected an array, found an object");
    refused(&b, NAMED "\"spec\":{\"map\":{\"a\":1}}}",
            "/spec/map: expected a string, found a number");
    refused(&b, NAMED "\"spec\":[]}", "ns/w: /spec: expected an object, found an array");
    refused(&b, NAMED "\"status\":{\"parts\":[{},{\"count\":true}]}}",
            "/status/parts/1/count: expected an integer, found a boolean");
    refused(&b, NAMED "\"status\":{\"parts\":[{\"screws\":[{},{\"size\":[]}]}]}}",
            "/status/parts/0/screws/1/size: expected an integer, found an array");
    refused(&b, NAMED "\"status\":{\"parts\":[1]}}", "/status/parts/0: expected an object");
    refused(&b, NAMED "\"spec\":{\"template\":{\"a\":01}}}", "/spec/template: not a number");
    refused(&b, NAMED "\"spec\":{\"a/b~c\":[]}}", "/spec/a~1b~0c: expected an object");
    refused(&b, NAMED "\"spec\":{\"x\":[}}}", "/spec: brackets do not match");
    refused(&b, NAMED "\"spec\":{}", "ns/w: ends too early");
    refused(&b, "{\"spec\":{\"small\":[]},\"metadata\":{\"name\":\"late\"}}",
            "late: /spec/small: ");
    refused(&b, "{\"metadata\":{\"namespace\":\"ns\"}}", "no metadata.name");
    refused(&b, "{\"kind\":\"Status\",\"code\":404}", "a Status, not a Widget");
    refused(&b, "{\"metadata\":{\"name\":\"w\"}} x", "something follows the value");
    refused(&b, "<html>", "not a value (byte 0)");
    refused(&b, "[]", "expected an object, found an array");
    refused(&b, "", "ends too early");
    bench_done(&b);
}

TEST(accepts_mistakes_where_nobody_looks)
{
    /* decode.h says which. */
    struct bench b = bench_new(&widget_kind);
    struct widget *w =
        widget(&b, ",\"managedFields\":[{:,,nonsense}]", "\"other\":{\"a\":\"\xff\"}", "");
    assert_non_null(w);
    widget_free(&b, w);
    bench_done(&b);
}

TEST(takes_the_namespace_it_is_given)
{
    struct bench b = bench_new(&widget_kind);
    static const char without[] = "{\"metadata\":{\"name\":\"w\"}}";
    static const char with[] = NAMED "\"spec\":{}}";
    struct sw_object *object;
    assert_int_equal(
        sw_decode_object(b.decoder, without, sizeof(without) - 1, "given", &object, NULL), 0);
    assert_string_equal(object->namespace_, "given");
    sw_object_free(b.decoder, object);
    assert_int_equal(sw_decode_object(b.decoder, with, sizeof(with) - 1, "given", &object, NULL),
                     0);
    assert_string_equal(object->namespace_, "ns");
    sw_object_free(b.decoder, object);
    bench_done(&b);
}

/* ---- mistakes in a table ---- */

static void compile(const struct sw_bind *fields)
{
    struct sw_kind kind = widget_kind;
    kind.fields = fields;
    sw_decoder_free(sw_decoder_new(&kind, NULL));
}

TEST(asserts_on_mistakes_in_a_table)
{
    static const struct sw_bind no_pointer[] = {
        SW_BIND("spec", SW_BIND_STRING, struct widget, text), SW_BIND_END};
    static const struct sw_bind bad_escape[] = {
        SW_BIND("/a~2", SW_BIND_STRING, struct widget, text), SW_BIND_END};
    static const struct sw_bind outside[] = {
        {.path = "/a", .type = SW_BIND_INT64, .offset = sizeof(struct widget) + 64}, SW_BIND_END};
    static const struct sw_bind no_element[] = {SW_BIND("/a", SW_BIND_LIST, struct widget, parts),
                                                SW_BIND_END};
    static const struct sw_bind no_default[] = {
        SW_BIND("/a", SW_BIND_STRING, struct widget, text, .otherwise = 1), SW_BIND_END};
    static const struct sw_bind no_type[] = {SW_BIND("/a", SW_BIND_NONE, struct widget, text),
                                             SW_BIND_END};
    assert_aborts(compile(no_pointer));
    assert_aborts(compile(bad_escape));
    assert_aborts(compile(outside));
    assert_aborts(compile(no_element));
    assert_aborts(compile(no_default));
    assert_aborts(compile(no_type));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("deployment", views_a_deployment),
        CASE("deployment", views_conditions),
        CASE("deployment", keeps_only_the_annotations_of_the_kind),
        CASE("deployment", views_what_is_absent_by_its_default),
        CASE("deployment", views_an_owned_deployment_that_is_going),
        CASE("deployment", hashes_the_template_whatever_else_changes),
        CASE("deployment", hashes_a_template_the_same_after_an_upgrade_of_the_server),
        CASE("deployment", takes_little_memory),
        CASE("deployment", refuses_every_part_of_a_document),
        CASE("decoder", hashes_no_time_that_is_not_set),
        CASE("decoder", hashes_tokens_and_not_white_space),
        CASE("decoder", lets_the_last_of_equal_keys_count),
        CASE("decoder", reads_keys_written_with_escapes),
        CASE("decoder", interns_what_repeats),
        CASE("decoder", reads_lists_in_lists),
        CASE("decoder", keeps_raw_text_as_it_came),
        CASE("decoder", reads_an_annotation_of_a_mebibyte),
        CASE("decoder", limits_the_nesting),
        CASE("decoder", limits_the_number_of_entries),
        CASE("decoder", sorts_many_labels),
        CASE("decoder", says_whose_where_and_what),
        CASE("decoder", accepts_mistakes_where_nobody_looks),
        CASE("decoder", takes_the_namespace_it_is_given),
        CASE("decoder", asserts_on_mistakes_in_a_table),
    };
    return RUN(tests);
}
