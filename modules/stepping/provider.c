/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a metric to the request that asks for it. No message here contains an address as it was
 * written: it may have a password in it.
 */
#include "provider.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <slipway/json.h>
#include <slipway/workloads.h>

#define API_PATH "/api/v1/query"
#define WHY_BYTES 256

/* ---- the model ---- */

/* PromQL knows whole numbers of each unit; one unit is understood by every version. */
static const char *promql_duration(struct sw_arena *arena, uint64_t ms)
{
    if (ms % 1000)
        return sw_arena_printf(arena, "%llums", (unsigned long long)ms);
    if (ms % 60000)
        return sw_arena_printf(arena, "%llus", (unsigned long long)(ms / 1000));
    if (ms % 3600000)
        return sw_arena_printf(arena, "%llum", (unsigned long long)(ms / 60000));
    return sw_arena_printf(arena, "%lluh", (unsigned long long)(ms / 3600000));
}

void step_metric_model(const struct stepped *object, const struct step_measure *measure,
                       struct sw_arena *arena, struct step_template_model *ret_model)
{
    *ret_model = (struct step_template_model){
        .name = object->meta.name,
        .namespace_ = object->meta.namespace_,
        .target = object->target_name,
        .service = object->target_name,
        .ingress = object->target_name,
        .route = object->target_name,
        .interval = promql_duration(arena, measure->interval_ms),
        .variables = measure->object->variables,
    };
}

/* ---- the URL ---- */

/* The parts of an address that sw_url_check has found good. */
struct address {
    const char *scheme; /* with "://" */
    size_t scheme_len;
    const char *user; /* with "@"; user_len 0: none */
    size_t user_len;
    const char *host; /* and port */
    size_t host_len;
    const char *path;
    size_t path_len; /* without slashes at its end */
    const char *query;
    size_t query_len;
};

static struct address split(const char *text)
{
    struct address address = {.scheme = text};
    const char *at = strstr(text, "://") + 3;
    size_t authority_len = strcspn(at, "/?#");
    const char *sign = memrchr(at, '@', authority_len);

    address.scheme_len = (size_t)(at - text);
    address.user = at;
    address.user_len = sign ? (size_t)(sign + 1 - at) : 0;
    address.host = at + address.user_len;
    address.host_len = authority_len - address.user_len;
    address.path = at + authority_len;
    address.path_len = strcspn(address.path, "?#");
    address.query = address.path + address.path_len;
    if (*address.query == '?')
        address.query_len = strcspn(++address.query, "#");
    while (address.path_len && address.path[address.path_len - 1] == '/')
        address.path_len--;
    return address;
}

/* What the address has as a query is kept (some gateways want a tenant there). A user in it stays
 * there: an Authorization that we set goes before it. */
static void make_url(const char *text, const char *query, struct sw_arena *arena,
                     struct step_query *ret_query)
{
    struct address a = split(text);

    ret_query->place =
        sw_arena_printf(arena, "%.*s%.*s", (int)a.scheme_len, a.scheme, (int)a.host_len, a.host);
    ret_query->url = sw_arena_printf(
        arena, "%.*s%.*s%.*s%.*s" API_PATH "?%.*s%squery=%s", (int)a.scheme_len, a.scheme,
        (int)a.user_len, a.user, (int)a.host_len, a.host, (int)a.path_len, a.path, (int)a.query_len,
        a.query, a.query_len ? "&" : "", sw_url_escape(arena, query));
}

/* ---- the headers ---- */

struct headers {
    struct sw_fetch_field *fields;
    size_t count;
    bool has_secret; /* which is the Authorization then */
    bool is_bad;
};

static void add_header(struct headers *headers, const char *name, const char *value)
{
    if (!value || headers->count == STEP_QUERY_FIELDS)
        headers->is_bad = true;
    else if (!headers->has_secret || strcasecmp(name, "Authorization") != 0)
        headers->fields[headers->count++] = (struct sw_fetch_field){name, value};
}

/* A list of texts, as Go's http.Header has it; one text is understood as well. */
static bool visit_header(void *arg, const char *name, const struct sw_json *value)
{
    struct headers *headers = arg;

    if (sw_json_type(value) != SW_JSON_ARRAY)
        add_header(headers, name, sw_json_text(value));
    for (size_t i = 0; i < sw_json_size(value) && !headers->is_bad; i++)
        add_header(headers, name, sw_json_text(sw_json_element(value, i)));
    return !headers->is_bad;
}

static int read_headers(const struct sw_raw *raw, struct sw_arena *arena,
                        struct step_query *ret_query)
{
    struct headers headers = {.has_secret = ret_query->secret[0] != 0};
    struct sw_json *object = NULL;

    if (!raw->text)
        return 0;
    if (sw_json_parse(arena, raw->text, raw->len, &object, NULL))
        return -EINVAL;
    if (sw_json_type(object) != SW_JSON_OBJECT)
        return -EINVAL;
    headers.fields = SW_ARENA_ARRAY(arena, STEP_QUERY_FIELDS, struct sw_fetch_field);
    sw_json_each(object, visit_header, &headers);
    ret_query->fields = headers.fields;
    ret_query->field_count = headers.count;
    return headers.is_bad ? -EINVAL : 0;
}

/* ---- the request ---- */

/* Where a metric says how it is asked for: itself, or a MetricTemplate. */
struct source {
    const char *namespace_, *type, *address, *secret, *query;
    const struct sw_raw *headers;
    bool insecure_skip_verify;
};

static int make(const struct source *source, const struct step_template_model *model,
                struct sw_arena *arena, struct step_query *ret_query, const char **ret_why)
{
    char wrong[WHY_BYTES];
    const char *query = NULL;
    const char *why = NULL;

    /* Flagger takes a template without a type for Prometheus. */
    if (source->type[0] && strcmp(source->type, "prometheus") != 0) {
        *ret_why = sw_arena_printf(
            arena, "provider.type: \"%.64s\" is unknown; prometheus is known", source->type);
        return -EINVAL;
    }
    if (sw_url_check(source->address, wrong, sizeof(wrong))) {
        *ret_why = sw_arena_printf(arena, "provider.address: %s", wrong);
        return -EINVAL;
    }
    if (step_template_render(source->query, model, arena, &query, &why)) {
        *ret_why = sw_arena_printf(arena, "query: %s", why);
        return -EINVAL;
    }
    if (!query[strspn(query, " \t\r\n")]) {
        *ret_why = "query: there is none";
        return -EINVAL;
    }
    *ret_query = (struct step_query){
        .secret_namespace = sw_arena_strdup(arena, source->namespace_),
        .secret = sw_arena_strdup(arena, source->secret),
        .insecure_skip_verify = source->insecure_skip_verify,
    };
    make_url(source->address, query, arena, ret_query);
    if (source->headers && read_headers(source->headers, arena, ret_query)) {
        *ret_why =
            sw_arena_printf(arena, "provider.headers: must be lists of texts, %d at most in all",
                            STEP_QUERY_FIELDS);
        return -EINVAL;
    }
    return 0;
}

int step_query_make(const struct stepped *object, const struct step_measure *measure,
                    const struct step_metric_template *metric_template, struct sw_arena *arena,
                    struct step_query *ret_query, const char **ret_why)
{
    const struct step_metric *metric = measure->object;
    struct step_template_model model;

    step_metric_model(object, measure, arena, &model);
    if (!metric_template) {
        const struct source own = {
            .namespace_ = object->meta.namespace_,
            .type = metric->provider_type,
            .address = metric->provider_address,
            .secret = metric->provider_secret,
            .query = metric->query,
            .insecure_skip_verify = metric->insecure_skip_verify,
        };
        return make(&own, &model, arena, ret_query, ret_why);
    }
    const struct source source = {
        .namespace_ = metric_template->meta.namespace_,
        .type = metric_template->type,
        .address = metric_template->address,
        .secret = metric_template->secret,
        .query = metric_template->query,
        .headers = &metric_template->headers,
        .insecure_skip_verify = metric_template->insecure_skip_verify,
    };
    int code = make(&source, &model, arena, ret_query, ret_why);
    if (code)
        *ret_why = sw_arena_printf(arena, "MetricTemplate %s/%s: %s", source.namespace_,
                                   metric_template->meta.name, *ret_why);
    return code;
}

/* ---- credentials ---- */

struct secret_text {
    char *at;
    size_t len;
};

static void wipe(void *arg)
{
    struct secret_text *text = arg;

    explicit_bzero(text->at, text->len);
}

/* Zeroed memory of the arena that is overwritten before it is freed. */
static char *secret_alloc(struct sw_arena *arena, size_t len)
{
    struct secret_text *text = SW_ARENA_NEW(arena, struct secret_text);

    *text = (struct secret_text){sw_arena_alloc(arena, len), len};
    sw_arena_on_free(arena, wipe, text);
    return text->at;
}

/* RFC 4648 section 4. */
static void base64(const char *from, size_t len, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = (const unsigned char *)from;

    for (size_t i = 0; i < len; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16;
        three |= i + 1 < len ? (uint32_t)bytes[i + 1] << 8 : 0;
        three |= i + 2 < len ? bytes[i + 2] : 0;
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = i + 1 < len ? digits[three >> 6 & 63] : '=';
        *to++ = i + 2 < len ? digits[three & 63] : '=';
    }
    *to = 0;
}

/* A line end behind a token is what `echo TOKEN >file` leaves; everything else that a header
 * cannot carry (RFC 9110, 5.5) is a mistake to be told. */
static int bearer(const char *token, size_t len, struct sw_arena *arena, const char **ret_value,
                  const char **ret_why)
{
    static const char scheme[] = "Bearer ";

    while (len && (token[len - 1] == '\n' || token[len - 1] == '\r'))
        len--;
    bool is_good = len > 0;
    for (size_t i = 0; i < len && is_good; i++)
        is_good = token[i] > 0x20 && token[i] < 0x7f;
    if (!is_good) {
        *ret_why = "its token is empty, or has characters that no header can carry";
        return -EINVAL;
    }
    char *value = secret_alloc(arena, strlen(scheme) + len + 1);
    memcpy(value, scheme, strlen(scheme));
    memcpy(value + strlen(scheme), token, len);
    *ret_value = value;
    return 0;
}

/* RFC 7617. */
static int basic(const char *user, size_t user_len, const char *password, size_t password_len,
                 struct sw_arena *arena, const char **ret_value, const char **ret_why)
{
    static const char scheme[] = "Basic ";
    size_t len = user_len + 1 + password_len;

    if (memchr(user, ':', user_len)) {
        *ret_why = "its username has a colon, which basic authentication cannot carry";
        return -EINVAL;
    }
    char *both = secret_alloc(arena, len);
    memcpy(both, user, user_len);
    both[user_len] = ':';
    memcpy(both + user_len + 1, password, password_len);
    char *value = secret_alloc(arena, strlen(scheme) + (len + 2) / 3 * 4 + 1);
    memcpy(value, scheme, strlen(scheme));
    base64(both, len, value + strlen(scheme));
    *ret_value = value;
    return 0;
}

int step_query_authorization(const struct sw_secret *secret, struct sw_arena *arena,
                             const char **ret_value, const char **ret_why)
{
    size_t len = 0;
    size_t user_len = 0;
    const char *token = sw_secret_value(secret, "token", arena, &len);

    if (token)
        return bearer(token, len, arena, ret_value, ret_why);
    const char *user = sw_secret_value(secret, "username", arena, &user_len);
    const char *password = sw_secret_value(secret, "password", arena, &len);
    if (!user || !password) {
        *ret_why = "it needs token, or username and password";
        return -EINVAL;
    }
    return basic(user, user_len, password, len, arena, ret_value, ret_why);
}

/* ---- the answer ---- */

#define WORDS_BYTES 200
#define VALUE_BYTES 32

const char *step_body_words(struct sw_arena *arena, const char *body, size_t len)
{
    while (len && (unsigned char)*body <= ' ') {
        body++;
        len--;
    }
    char *words = sw_arena_strndup(arena, body, len < WORDS_BYTES ? len : WORDS_BYTES);
    size_t end = strlen(words);
    /* Not in the middle of a character of UTF-8. */
    if (end == WORDS_BYTES) {
        while (end && ((unsigned char)words[end - 1] & 0xc0) == 0x80)
            end--;
        if (end && (unsigned char)words[end - 1] >= 0xc0)
            end--;
    }
    for (size_t i = 0; i < end; i++) {
        if ((unsigned char)words[i] < ' ' || words[i] == 0x7f)
            words[i] = ' ';
    }
    while (end && words[end - 1] == ' ')
        end--;
    words[end] = 0;
    return words;
}

static int is_no_answer(const struct sw_fetch_answer *answer, const struct sw_json *body,
                        struct sw_arena *arena, const char **ret_why)
{
    const char *type = sw_json_get_string(body, "errorType");
    const char *error = sw_json_get_string(body, "error");
    const char *status = sw_json_get_string(body, "status");
    bool is_good = answer->status >= 200 && answer->status < 300;

    if (error || (status && strcmp(status, "error") == 0)) {
        type = type ? type : "error";
        error = error ? error : "";
        *ret_why = sw_arena_printf(arena, "HTTP %d: %s: %s", answer->status,
                                   step_body_words(arena, type, strlen(type)),
                                   step_body_words(arena, error, strlen(error)));
        return -EINVAL;
    }
    if (!is_good || !status || strcmp(status, "success") != 0) {
        const char *words = step_body_words(arena, answer->body, answer->body_len);
        *ret_why = sw_arena_printf(arena, "HTTP %d%s%s%s", answer->status,
                                   is_good ? ": not an answer of Prometheus" : "",
                                   words[0] ? ": " : "", words);
        return -EINVAL;
    }
    return 0;
}

/* [ 1435781451.781, "0.52" ] */
static const char *value_text(const struct sw_json *pair)
{
    return sw_json_size(pair) == 2 ? sw_json_text(sw_json_element(pair, 1)) : NULL;
}

static int find_value(const struct sw_json *data, struct sw_arena *arena, const char **ret_text,
                      size_t *ret_count, const char **ret_why)
{
    const char *type = sw_json_get_string(data, "resultType");
    const struct sw_json *result = sw_json_get(data, "result");
    const struct sw_json *pair = result;
    size_t count = 1;

    if (!type || sw_json_type(result) != SW_JSON_ARRAY) {
        *ret_why = "not an answer of Prometheus: it has no data.result";
        return -EINVAL;
    }
    if (strcmp(type, "vector") == 0) {
        count = sw_json_size(result);
        if (!count) {
            *ret_why = "the query yields no value";
            return -EINVAL;
        }
        pair = sw_json_get(sw_json_element(result, count - 1), "value");
    } else if (strcmp(type, "scalar") != 0) {
        *ret_why = sw_arena_printf(
            arena, "the query yields a %s; it must yield one number, a vector or a scalar",
            step_body_words(arena, type, strlen(type)));
        return -EINVAL;
    }
    if (!(*ret_text = value_text(pair))) {
        *ret_why = "not an answer of Prometheus: its value is no text";
        return -EINVAL;
    }
    *ret_count = count;
    return 0;
}

/* strtod reads more than Prometheus writes: hexadecimal, "nan(...)", white space before. */
static int read_number(const char *text, double *ret_number, const char **ret_why)
{
    char *end = NULL;

    if (strcasecmp(text, "NaN") == 0) {
        *ret_why =
            "the query yields NaN, which is no value: as by a division of nothing by nothing";
        return -EINVAL;
    }
    const char *digits = text + (*text == '+' || *text == '-');
    if (strcasecmp(digits, "Inf") == 0 || strcasecmp(digits, "Infinity") == 0) {
        *ret_why = "the query yields an infinite value: as by a division by nothing";
        return -EINVAL;
    }
    *ret_number = strtod(text, &end);
    if (text[strspn(text, "+-0123456789.eE")] || !strpbrk(text, "0123456789") || *end) {
        *ret_why = "the value is no number";
        return -EINVAL;
    }
    if (isinf(*ret_number)) {
        *ret_why = "the value is larger than any number";
        return -EINVAL;
    }
    return 0;
}

int step_prometheus_read(const struct sw_fetch_answer *answer, struct sw_arena *arena,
                         struct step_value *ret_value, const char **ret_text, const char **ret_why)
{
    struct sw_json *body = NULL;
    const char *text = NULL;
    size_t count = 0;
    double number = 0;
    int code;

    *ret_text = "";
    if (!answer->status) {
        *ret_why = sw_arena_strdup(arena, answer->why);
        return -EINVAL;
    }
    /* What is no JSON is told by its first words. */
    (void)!sw_json_parse(arena, answer->body, answer->body_len, &body, NULL);
    if ((code = is_no_answer(answer, body, arena, ret_why)) ||
        (code = find_value(sw_json_get(body, "data"), arena, &text, &count, ret_why)))
        return code;
    *ret_text = sw_arena_strndup(arena, text, strnlen(text, VALUE_BYTES));
    if ((code = read_number(text, &number, ret_why)))
        return code;
    *ret_value = (struct step_value){number, *ret_text, count};
    return 0;
}

bool step_value_is_within(const struct step_value *value, const struct step_measure *measure,
                          struct sw_arena *arena, const char **ret_why)
{
    bool is_below = measure->has_min && value->number < measure->min;
    bool is_above = measure->has_max && value->number > measure->max;

    if (!is_below && !is_above)
        return true;
    *ret_why =
        sw_arena_printf(arena, "%s is %s %.15g", value->text, is_below ? "less than" : "more than",
                        is_below ? measure->min : measure->max);
    if (value->count > 1)
        *ret_why = sw_arena_printf(arena, "%s (the last of %zu values)", *ret_why, value->count);
    return false;
}
