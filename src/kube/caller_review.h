/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents by which the API server says who a caller of ours is, and what he may: TokenReview
 * (authentication.k8s.io/v1) and SubjectAccessReview (authorization.k8s.io/v1). Text in, text out;
 * who sends them and when is others' business.
 * https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/
 * https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/
 */
#ifndef SW_KUBE_CALLER_REVIEW_H
#define SW_KUBE_CALLER_REVIEW_H

#include <stdbool.h>
#include <stddef.h>

struct sw_arena;
struct sw_buf;
struct sw_json;

#define SW_TOKEN_REVIEWS "/apis/authentication.k8s.io/v1/tokenreviews"
#define SW_SUBJECT_ACCESS_REVIEWS "/apis/authorization.k8s.io/v1/subjectaccessreviews"

/* What may stand in an Authorization field as a bearer's token (RFC 6750 section 2.1), and so in a
 * JSON string as it is. The API server would cut at a space, and call what is left of it
 * system:anonymous where nothing is. */
bool sw_is_bearer_token(const char *text);
/* Appends the question; the token is one by the rule above. -ENOBUFS. */
int sw_token_review_put(struct sw_buf *out, const char *token);
/* Who it is, as the answer says it: with "username", "uid", "groups" and "extra", in the arena;
 * NULL: the token is nobody's. -EINVAL: it is no such answer. */
int sw_token_review_read(struct sw_arena *arena, const char *text, size_t len,
                         const struct sw_json **ret_user);

/* May that user do this to a path that is no resource? In the arena. */
const char *sw_access_review_text(struct sw_arena *arena, const struct sw_json *user,
                                  const char *path, const char *verb, size_t *ret_len);
/* -EINVAL: it is no such answer. */
int sw_access_review_read(struct sw_arena *arena, const char *text, size_t len,
                          bool *ret_is_allowed);

#endif
