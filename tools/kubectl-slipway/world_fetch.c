/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists are read in pages, as the API server wants it.
 */
#include <stdint.h>
#include <string.h>

#include <slipway/arena.h>

#include "base/util.h"
#include "kube/decode.h"
#include "net/url.h"
#include "session.h"
#include "world.h"

enum { PAGE_SIZE = 500, TRIES_MAX = 3 };

struct collected {
    struct sw_decoder *decoder;
    const struct sw_object **at;
    size_t count, room;
};

static void collected_free(void *arg)
{
    struct collected *collected = arg;

    for (size_t i = 0; i < collected->count; i++)
        sw_object_free(collected->decoder, (struct sw_object *)(uintptr_t)collected->at[i]);
    sw_free(collected->at);
    sw_decoder_free(collected->decoder);
}

static void on_item(void *arg, struct sw_object *object)
{
    struct collected *collected = arg;

    if (collected->count == collected->room) {
        collected->room = collected->room ? 2 * collected->room : 64;
        collected->at =
            sw_realloc(collected->at, collected->room, sizeof(const struct sw_object *));
    }
    collected->at[collected->count++] = object;
}

static void on_bad(void *arg, const struct sw_bad_item *bad)
{
    (void)arg;
    ks_complain("left out, since it cannot be read: %s", bad->error->text);
}

/* *ret_next: the token of the next page, in the arena; NULL: this was the last. */
static int read_page(struct ks_session *session, struct collected *collected,
                     const struct ks_answer *answer, const char **ret_next, struct sw_error *error)
{
    static const struct sw_list_events events = {.on_item = on_item, .on_bad = on_bad};
    struct sw_list_reader *reader =
        sw_list_reader_new(collected->decoder, SW_DECODE_LIMIT_BYTES, &events, collected);
    const char *version, *next = "";
    int code = sw_list_reader_feed(reader, answer->body, answer->body_len, error);

    if (!code)
        code = sw_list_reader_finish(reader, &version, &next, error);
    *ret_next = !code && next[0] ? sw_arena_strdup(session->arena, next) : NULL;
    sw_list_reader_free(reader);
    return code;
}

static const char *page_path(struct ks_session *session, const char *path, const char *next)
{
    struct sw_buf text;

    sw_buf_init(&text, SIZE_MAX);
    sw_buf_printf(&text, "%s?limit=%d", path, PAGE_SIZE);
    if (next) {
        sw_buf_puts(&text, "&continue=");
        sw_url_encode(&text, next);
    }
    const char *copy = sw_arena_strdup(session->arena, text.bytes);
    sw_buf_done(&text);
    return copy;
}

static void forget(struct collected *collected)
{
    for (size_t i = 0; i < collected->count; i++)
        sw_object_free(collected->decoder, (struct sw_object *)(uintptr_t)collected->at[i]);
    collected->count = 0;
}

bool ks_list(struct ks_session *session, const struct sw_kind *kind, const char *namespace_,
             const struct sw_object *const **ret_objects, size_t *ret_count,
             struct ks_answer *ret_answer)
{
    struct collected *collected = SW_ARENA_NEW(session->arena, struct collected);
    const char *path = ks_path(session, kind, namespace_, NULL), *next = NULL;
    struct sw_error error = {0};

    *ret_answer = (struct ks_answer){.body = "", .reason = "", .message = "no such namespace"};
    if (!path)
        return false;
    collected->decoder = sw_decoder_new(kind, session->intern);
    sw_arena_on_free(session->arena, collected_free, collected);
    for (unsigned tries = 0;;) {
        bool is_good =
            ks_ask(session, "GET", page_path(session, path, next), NULL, NULL, 0, ret_answer);
        if (!is_good && ret_answer->status == 410 && next && ++tries < TRIES_MAX) {
            /* The token has expired: what was read does not fit what would come. */
            forget(collected);
            next = NULL;
            continue;
        }
        if (!is_good)
            return false;
        if (read_page(session, collected, ret_answer, &next, &error)) {
            ret_answer->message = sw_arena_strdup(session->arena, error.text);
            return false;
        }
        if (!next)
            break;
    }
    *ret_objects = collected->at;
    *ret_count = collected->count;
    return true;
}

static void complain_of_list(const struct sw_kind *kind, const struct ks_answer *answer)
{
    if (answer->status == 404)
        ks_complain("the cluster has no %s: is slipway's CRD installed? kubectl slipway doctor "
                    "says what is missing",
                    kind->plural);
    else
        ks_complain("cannot list %s: %s", kind->plural, answer->message);
}

/* A cluster without the kind has none; who may not see them sees the rest. */
static void fetch_rollouts(struct ks_session *session, const char *namespace_,
                           struct ks_world *world)
{
    const struct sw_object *const *objects;
    struct ks_answer answer;
    size_t count;

    if (ks_list(session, &step_kind, namespace_, &objects, &count, &answer))
        ks_world_set_rollouts(session->arena, world,
                              (const struct stepped *const *)(const void *)objects, count);
    else if (answer.status != 404)
        complain_of_list(&step_kind, &answer);
}

struct ks_world *ks_world_fetch(struct ks_session *session, const char *namespace_)
{
    static const struct sw_kind *const kinds[] = {&coord_kind, &sw_kind_deployment};
    const struct sw_object *const *objects[2];
    size_t counts[2];
    struct ks_answer answer;

    for (size_t i = 0; i < SW_ARRAY_SIZE(kinds); i++)
        if (!ks_list(session, kinds[i], namespace_, &objects[i], &counts[i], &answer)) {
            complain_of_list(kinds[i], &answer);
            return NULL;
        }
    struct ks_world *world = ks_world_new(
        session->arena, (const struct coordination *const *)(const void *)objects[0], counts[0],
        (const struct sw_deployment *const *)(const void *)objects[1], counts[1]);
    fetch_rollouts(session, namespace_, world);
    return world;
}
