/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status -w: lists and watches, and shows each change. On a terminal the table is drawn anew, at
 * most five times a second, and each second for the times in it; elsewhere one line for each
 * coordination whose line has changed. Ends at SIGINT or SIGTERM, with the last table left on the
 * terminal.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <slipway/arena.h>

#include "base/loop.h"
#include "base/map.h"
#include "base/time.h"
#include "base/util.h"
#include "kube/decode.h"
#include "kube/reflector.h"
#include "kube/store.h"
#include "rollout.h"
#include "run.h"
#include "session.h"
#include "text.h"
#include "view.h"
#include "world.h"

/* A quiet watch has a bookmark a minute; who has heard nothing for longer sees an old picture. */
enum { DRAW_MS = 200, TICK_MS = 1000, SILENCE_MS = 90000 };

/* Of one kind. */
struct source {
    struct watcher *watcher;
    struct sw_decoder *decoder;
    struct sw_store *store;
    struct sw_reflector *reflector;
};

struct watcher {
    struct ks_session *session;
    struct source groups, deployments, rollouts;
    bool has_rollouts; /* the cluster knows the kind, and we may see it */
    struct sw_timer draw;
    struct sw_signal *interrupt, *terminate;
    bool is_terminal, is_over, is_lost;
    struct told *told; /* the lines that were shown last */
};

struct told {
    struct told *next;
    char *key, *line;
};

/* ---- the world as it is now ---- */

struct gathering {
    struct sw_arena *arena;
    const struct sw_object **at;
    size_t count, room;
};

static bool gather(void *arg, const struct sw_object *object)
{
    struct gathering *gathering = arg;

    if (gathering->count == gathering->room) {
        size_t room = gathering->room ? 2 * gathering->room : 64;
        const struct sw_object **at =
            SW_ARENA_ARRAY(gathering->arena, room, const struct sw_object *);
        if (gathering->at)
            memcpy(at, gathering->at, gathering->count * sizeof(*at));
        gathering->at = at;
        gathering->room = room;
    }
    gathering->at[gathering->count++] = object;
    return true;
}

static struct ks_world *look(struct watcher *watcher, struct sw_arena *arena)
{
    struct gathering groups = {.arena = arena}, deployments = {.arena = arena};
    struct gathering rollouts = {.arena = arena};

    sw_store_each(watcher->groups.store, NULL, gather, &groups);
    sw_store_each(watcher->deployments.store, NULL, gather, &deployments);
    struct ks_world *world = ks_world_new(
        arena, (const struct coordination *const *)(const void *)groups.at, groups.count,
        (const struct sw_deployment *const *)(const void *)deployments.at, deployments.count);
    if (watcher->has_rollouts) {
        sw_store_each(watcher->rollouts.store, NULL, gather, &rollouts);
        ks_world_set_rollouts(
            arena, world, (const struct stepped *const *)(const void *)rollouts.at, rollouts.count);
    }
    return world;
}

/* ---- lines ---- */

static const char *told_before(struct watcher *watcher, const char *key, const char *line)
{
    struct told **at = &watcher->told;

    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    if (!*at) {
        *at = SW_NEW(struct told);
        (*at)->key = sw_strdup(key);
        (*at)->line = sw_strdup("");
    }
    if (strcmp((*at)->line, line) == 0)
        return line;
    sw_free((*at)->line);
    (*at)->line = sw_strdup(line);
    return NULL;
}

static void tell(struct watcher *watcher, const char *key, const char *line)
{
    char now[SW_TIME_SIZE];

    if (told_before(watcher, key, line))
        return;
    sw_time_format(ks_now_us(watcher->session), now);
    sw_buf_printf(&watcher->session->out, "%s %s\n", now, line);
}

/* ---- drawing ---- */

static size_t columns(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Home, then each line over what was there, then what is left below goes: nothing flickers. */
static void put_screen(struct sw_buf *out, const char *text)
{
    sw_buf_puts(out, "\033[H");
    for (const char *p = text, *end; *p; p = end + 1) {
        end = strchr(p, '\n');
        sw_buf_append(out, p, (size_t)(end - p));
        sw_buf_puts(out, "\033[K\r\n");
    }
    sw_buf_puts(out, "\033[J");
}

static void print(struct watcher *watcher, struct sw_arena *arena, size_t cut, struct sw_buf *out)
{
    struct ks_session *session = watcher->session;
    const struct ks_world *world = look(watcher, arena);
    struct ks_group_view **views =
        SW_ARENA_ARRAY(arena, world->group_count + 1, struct ks_group_view *);
    const struct ks_look how = {
        .now_us = ks_now_us(session),
        .is_coloured = session->is_coloured,
        .is_utf8 = session->is_utf8,
        .has_namespaces = ks_flag(session, KS_ALL_NAMESPACES),
        .columns = cut,
    };
    const struct stepped **rollouts =
        SW_ARENA_ARRAY(arena, world->rollout_count + 1, const struct stepped *);
    size_t count = 0, rollout_count = 0;

    for (size_t i = 0; i < world->group_count; i++)
        if (ks_is_wanted(session, coord_kind.kind, world->groups[i].c->meta.name))
            views[count++] = ks_view(arena, world, &world->groups[i]);
    for (size_t i = 0; i < world->rollout_count; i++)
        if (ks_is_wanted(session, step_kind.kind, world->rollouts[i]->meta.name))
            rollouts[rollout_count++] = world->rollouts[i];
    if (watcher->is_terminal && count + rollout_count == 0)
        sw_buf_puts(out, "no coordinations and no SteppedRollouts\n");
    else if (watcher->is_terminal)
        ks_status_print(arena, views, count, rollouts, rollout_count, &how, out);
    if (watcher->is_terminal)
        return;
    for (size_t i = 0; i < count; i++)
        tell(watcher, sw_arena_printf(arena, "%s/%s", views[i]->namespace_, views[i]->name),
             ks_view_line(arena, views[i]));
    for (size_t i = 0; i < rollout_count; i++)
        tell(watcher,
             sw_arena_printf(arena, "%s/%s/%s", rollouts[i]->meta.namespace_, step_kind.plural,
                             rollouts[i]->meta.name),
             ks_rollout_line(arena, rollouts[i]));
}

static void put_age(const struct watcher *watcher, struct sw_buf *out)
{
    uint64_t age_ms = SW_MAX(sw_reflector_age_ms(watcher->groups.reflector),
                             sw_reflector_age_ms(watcher->deployments.reflector));
    if (watcher->has_rollouts)
        age_ms = SW_MAX(age_ms, sw_reflector_age_ms(watcher->rollouts.reflector));
    char age[KS_DURATION_SIZE];

    if (age_ms < SILENCE_MS)
        return;
    ks_duration((int64_t)age_ms * 1000, age);
    sw_buf_printf(out, "\nno word from the API server for %s: this is how it was then\n", age);
}

static bool is_synced(const struct watcher *watcher)
{
    return sw_reflector_is_synced(watcher->groups.reflector) &&
           sw_reflector_is_synced(watcher->deployments.reflector) &&
           (!watcher->has_rollouts || sw_reflector_is_synced(watcher->rollouts.reflector));
}

static void draw(struct watcher *watcher)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_buf text;

    sw_buf_init(&text, SIZE_MAX);
    print(watcher, arena, columns(), &text);
    if (watcher->is_terminal)
        put_age(watcher, &text);
    if (watcher->is_terminal)
        put_screen(&watcher->session->out, text.bytes);
    sw_buf_done(&text);
    sw_arena_free(arena);
    if (!ks_flush(watcher->session)) {
        watcher->is_lost = watcher->is_over = true;
        sw_loop_stop(watcher->session->loop);
    }
}

static void on_draw(struct sw_timer *timer)
{
    struct watcher *watcher = container_of(timer, struct watcher, draw);

    if (is_synced(watcher))
        draw(watcher);
    if (watcher->is_terminal)
        sw_timer_start(timer, TICK_MS);
}

static void draw_soon(struct watcher *watcher)
{
    uint64_t due_ms = sw_now_ms(watcher->session->loop) + DRAW_MS;

    if (!sw_timer_is_active(&watcher->draw) || watcher->draw.due_ms > due_ms)
        sw_timer_start_at(&watcher->draw, due_ms);
}

/* ---- its life ---- */

static void on_change(void *arg, const struct sw_change *change)
{
    struct source *source = arg;

    (void)change;
    draw_soon(source->watcher);
}

static void on_listed(void *arg, bool is_consistent)
{
    struct source *source = arg;

    (void)is_consistent;
    draw_soon(source->watcher);
}

static void on_signal(void *arg, int signum)
{
    struct watcher *watcher = arg;

    (void)signum;
    watcher->is_over = true;
    sw_loop_stop(watcher->session->loop);
}

static void source_open(struct watcher *watcher, struct source *source, const struct sw_kind *kind)
{
    struct ks_session *session = watcher->session;
    const struct sw_reflector_options options = {.kind = kind, .namespace_ = ks_namespace(session)};

    source->watcher = watcher;
    source->decoder = sw_decoder_new(kind, session->intern);
    source->store = sw_store_new(session->loop, source->decoder, on_change, source);
    source->reflector =
        sw_reflector_new(session->loop, session->client, source->decoder, source->store, &options,
                         session->metrics, &session->log, on_listed, source);
}

static void source_close(struct source *source)
{
    sw_reflector_free(source->reflector);
    sw_store_free(source->store);
    sw_decoder_free(source->decoder);
}

static void forget_told(struct watcher *watcher)
{
    while (watcher->told) {
        struct told *told = watcher->told;
        watcher->told = told->next;
        sw_free(told->key);
        sw_free(told->line);
        sw_free(told);
    }
}

/* Alternate screen and no cursor; back again, with the last table where the command was typed. */
static void set_screen(struct watcher *watcher, bool is_on)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_buf *out = &watcher->session->out;

    if (watcher->is_terminal)
        sw_buf_puts(out, is_on ? "\033[?1049h\033[?25l\033[H\033[J" : "\033[?25h\033[?1049l");
    if (watcher->is_terminal && !is_on && is_synced(watcher))
        print(watcher, arena, 0, out);
    sw_arena_free(arena);
    if (!watcher->is_lost)
        ks_flush(watcher->session);
}

/* What a watch would try again for ever, a person wants to know at once. */
static bool may_begin(struct watcher *watcher)
{
    const struct ks_world *world = ks_world_fetch(watcher->session, ks_namespace(watcher->session));

    watcher->has_rollouts = world && world->has_rollouts;
    return world != NULL;
}

enum ks_exit ks_watch(struct ks_session *session)
{
    struct watcher watcher = {.session = session, .is_terminal = isatty(STDOUT_FILENO)};

    if (!may_begin(&watcher))
        return KS_FAILED;
    sw_timer_init(&watcher.draw, session->loop, on_draw);
    source_open(&watcher, &watcher.groups, &coord_kind);
    source_open(&watcher, &watcher.deployments, &sw_kind_deployment);
    if (watcher.has_rollouts)
        source_open(&watcher, &watcher.rollouts, &step_kind);
    sw_signal_open(session->loop, SIGINT, on_signal, &watcher, &watcher.interrupt);
    sw_signal_open(session->loop, SIGTERM, on_signal, &watcher, &watcher.terminate);
    set_screen(&watcher, true);
    draw_soon(&watcher);
    while (!watcher.is_over)
        sw_loop_run(session->loop);
    set_screen(&watcher, false);
    sw_signal_close(watcher.interrupt);
    sw_signal_close(watcher.terminate);
    sw_timer_stop(&watcher.draw);
    source_close(&watcher.groups);
    source_close(&watcher.deployments);
    if (watcher.has_rollouts)
        source_close(&watcher.rollouts);
    forget_told(&watcher);
    return watcher.is_lost ? KS_FAILED : KS_DONE;
}
