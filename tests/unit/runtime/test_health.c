/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes: which checks count for what, and how the answer reads.
 */
#include "runtime/health.h"

#include "base/buf.h"

#include "../test.h"

static bool well(void *arg, struct sw_buf *why)
{
    const bool *is_well = arg;

    if (!*is_well)
        sw_buf_puts(why, "the reason");
    return *is_well;
}

struct probed {
    struct sw_health health;
    bool alive, listed, listens;
    struct sw_buf out;
};

static void begin(struct probed *p)
{
    *p = (struct probed){.alive = true, .listed = true, .listens = true};
    sw_buf_init(&p->out, 10000);
    sw_health_add(&p->health, &(struct sw_check){"alive", true, well, &p->alive});
    sw_health_add(&p->health, &(struct sw_check){"informers", false, well, &p->listed});
    sw_health_add(&p->health, &(struct sw_check){"webhook", false, well, &p->listens});
}

static void expect(struct probed *p, const char *path, const char *query, int status,
                   const char *body)
{
    sw_buf_clear(&p->out);
    assert_int_equal(sw_health_answer(&p->health, path, query, &p->out), status);
    assert_string_equal(p->out.bytes, body);
}

TEST(answer_ok_when_all_is_well)
{
    struct probed p;

    begin(&p);
    expect(&p, "/healthz", "", 200, "ok");
    expect(&p, "/livez", "", 200, "ok");
    expect(&p, "/readyz", "", 200, "ok");
    expect(&p, "/readyz/", "", 200, "ok");
    expect(&p, "/readyz/webhook", "", 200, "ok");
    expect(&p, "/readyz", "verbose", 200, "[+]informers ok\n[+]webhook ok\nreadyz check passed\n");
    expect(&p, "/healthz", "a=b&verbose=true", 200, "[+]alive ok\nhealthz check passed\n");
    expect(&p, "/healthz", "verbosely", 200, "ok");
    sw_buf_done(&p.out);
}

TEST(name_what_failed)
{
    struct probed p;

    begin(&p);
    p.listens = false;
    expect(&p, "/healthz", "", 200, "ok");
    expect(&p, "/readyz", "", 500,
           "[+]informers ok\n[-]webhook failed: the reason\nreadyz check failed\n");
    expect(&p, "/readyz/informers", "", 200, "ok");
    expect(&p, "/readyz/webhook", "", 500, "internal server error: the reason\n");
    p.alive = false;
    expect(&p, "/healthz", "", 500, "[-]alive failed: the reason\nhealthz check failed\n");
    sw_buf_clear(&p.out);
    assert_false(sw_health_is_ready(&p.health, &p.out));
    assert_string_equal(p.out.bytes, "the reason");
    sw_buf_done(&p.out);
}

/* Word for word what kube-apiserver answers, but for its order of several unknown names. */
TEST(leave_out_what_is_excluded)
{
    struct probed p;

    begin(&p);
    p.listens = false;
    expect(&p, "/readyz", "exclude=webhook", 200, "ok");
    expect(&p, "/readyz", "exclude=webh%6Fok&verbose", 200,
           "[+]informers ok\n[+]webhook excluded: ok\nreadyz check passed\n");
    expect(&p, "/readyz", "exclude=informers", 500,
           "[+]informers excluded: ok\n[-]webhook failed: the reason\nreadyz check failed\n");
    expect(&p, "/readyz", "exclude=informers&exclude=webhook", 200, "ok");
    expect(&p, "/readyz", "exclude=web&exclude=&exclude=webhook&verbose", 200,
           "[+]informers ok\n[+]webhook excluded: ok\nwarn: some health checks cannot be excluded: "
           "no matches for \"web\",\"\"\nreadyz check passed\n");
    expect(&p, "/readyz", "excluded=webhook&exclude=%zz", 500,
           "[+]informers ok\n[-]webhook failed: the reason\nreadyz check failed\n");
    expect(&p, "/healthz", "exclude=webhook&verbose", 200,
           "[+]alive ok\nwarn: some health checks cannot be excluded: no matches for \"webhook\"\n"
           "healthz check passed\n");
    /* One alone is what was asked for. */
    expect(&p, "/readyz/webhook", "exclude=webhook&verbose", 500,
           "internal server error: the reason\n");
    expect(&p, "/readyz/informers", "verbose", 200, "ok");
    sw_buf_done(&p.out);
}

TEST(know_no_other_paths)
{
    struct probed p;

    begin(&p);
    expect(&p, "/readyz/alive", "", 404, "there is no check alive; /readyz?verbose names them\n");
    expect(&p, "/readyzz", "", 404, "try /healthz, /readyz, /readyz?verbose\n");
    expect(&p, "/", "", 404, "try /healthz, /readyz, /readyz?verbose\n");
    sw_buf_done(&p.out);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("probes", answer_ok_when_all_is_well),
        CASE("probes", name_what_failed),
        CASE("probes", leave_out_what_is_excluded),
        CASE("probes", know_no_other_paths),
    };
    return RUN(tests);
}
